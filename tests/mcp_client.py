"""The SDK's own client, talking to ``gapwatch mcp`` in a process of its own as an agent's program does."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from command_line import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

pytest.importorskip("mcp", reason="the extra mcp is not installed")

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

RECORDED = ROOT / "examples" / "tutorial" / "recorded"
FIG4 = ROOT / "tests" / "profiles" / "fig4.json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered: its text, and the JSON in it."""

    text: str
    failed: bool

    @property
    def value(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.text)
        return parsed


class Agent:
    """A connected client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: object) -> Answer:
        result = await self.client.call_tool(tool, dict(arguments))
        [content] = result.content
        return Answer(content.text, result.is_error)


@asynccontextmanager
async def connect(root: Path, home: Path, *options: str) -> AsyncIterator[Agent]:
    """An agent whose server may read ``root``, with a history in ``home``."""
    words = ["-m", "gapwatch", "mcp", "--root", str(root), "--state", str(home / "state"), *options]
    parameters = StdioServerParameters(command=sys.executable, args=words, env=environment(home), cwd=home)
    async with Client(parameters) as client:
        yield Agent(client)


def run_agent(use: Callable[[Agent], Awaitable[None]], root: Path, home: Path, *options: str) -> None:
    """Let an agent that may see ``root`` use a server that was started in ``home``."""

    async def session() -> None:
        async with connect(root, home, *options) as agent:
            await use(agent)

    anyio.run(session)
