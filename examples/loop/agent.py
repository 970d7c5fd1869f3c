"""A coding agent without a model: it speaks MCP as one would, and edits by applying the patch prepared for an action.

``python examples/loop/agent.py [FOLDER]`` copies the slow program into FOLDER (default: a temporary one), then
measures, asks, edits, marks, measures and compares, three times, and prints the transcript. Needs gcc, make, patch, and
``pip install "gapwatch[mcp]"``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

HERE = Path(__file__).parent
#: A tenth of a second, so that three rounds take no minute; larger numbers tell more.
COMMAND = ["./grid", *os.environ.get("GRID", "15 300").split()]
REPEATS = int(os.environ.get("REPEATS", "5"))
ROUNDS = 3


class Agent:
    """One session: the program's folder, the client, and what was said."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.folder = client, folder

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return what a tool answers, and print both."""
        result = await self.client.call_tool(tool, arguments)
        [content] = result.content
        print(f"> {tool} {json.dumps(arguments)}\n{content.text}\n")
        answer: dict[str, Any] = json.loads(content.text)
        if result.is_error:
            raise SystemExit(f"{tool}: {answer['error']}")
        return answer

    async def measure(self, build: str) -> dict[str, Any]:
        """Return the runs of the program as it is."""
        return await self.call("measure", command=COMMAND, build=build, repeats=REPEATS)

    def edit(self, patch: Path, *, back: bool = False) -> None:
        """Apply the patch, or take it back, and build."""
        for command in (["patch", "-p1", "-s", *(["-R"] if back else []), "-i", str(patch)], ["make", "-s"]):
            subprocess.run(command, cwd=self.folder, check=True)

    async def improve(self, number: int, build: str, run: int, tried: set[str]) -> tuple[str, int] | None:
        """Carry out the item of least effort that a patch is there for; return build and run after it, or None."""
        advice = await self.call("get_advice", run=str(run), limit=5, language="c")
        items = [item for item in advice["items"] if (HERE / "patches" / f"{item['action']}.patch").is_file()]
        untried = (item for item in items if item["action"] not in tried)
        item = min(untried, key=lambda item: item["effort"], default=None)
        if item is None:
            print("# no item that a patch is there for\n")
            return None
        tried.add(item["action"])
        patch = HERE / "patches" / f"{item['action']}.patch"
        print(f"# round {number}: {item['action']} {item['title']} at {item.get('at')}\n{patch.read_text()}")
        self.edit(patch)
        await self.call("mark_applied", item=item["fingerprint"])
        changed = f"round-{number}"
        measured = await self.measure(changed)
        verdict = await self.call("compare", before=build, after=changed)
        if verdict["verdict"] == "hurt":
            self.edit(patch, back=True)
            print("# taken back\n")
            return build, run
        return changed, measured["runs"][-1]["run"]


async def run_loop(folder: Path) -> None:
    """Go through the rounds, and compare the first build with the last."""
    program = folder / "program"
    shutil.copytree(HERE / "program", program)
    subprocess.run(["make", "-s"], cwd=program, check=True)
    words = ["-m", "gapwatch", "mcp", "--root", str(program), "--allow", "./grid", "--state", str(folder / "state")]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ), cwd=program)
    async with Client(server) as client:
        agent = Agent(client, program)
        build, run, tried = "start", (await agent.measure("start"))["runs"][-1]["run"], set[str]()
        for number in range(1, ROUNDS + 1):
            after = await agent.improve(number, build, run, tried)
            if after is None:
                break
            build, run = after
        if build != "start":
            await agent.call("compare", before="start", after=build)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        anyio.run(run_loop, Path(sys.argv[1] if len(sys.argv) > 1 else temporary).resolve())
