"""The screen of ``gapwatch watch`` over a history made for a test, driven by Textual's pilot."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from patience import PATIENCE_S

from advisor.history.program_views import HistoryViews
from advisor.output.page import Page

pytest.importorskip("textual", reason="there is no Textual here: pip install textual")

from textual.widgets import DataTable

from advisor.cli.screen.actions import ScreenActions
from advisor.cli.screen.app import WatchApp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.pilot import Pilot


def screen_text(app: WatchApp) -> str:
    """What stands on the terminal."""
    return "\n".join("".join(part.text for part in strip).rstrip() for strip in app.screen._compositor.render_strips())


async def wait_for(pilot: Pilot[None], happened: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = monotonic() + PATIENCE_S
    while not happened():
        assert monotonic() < end, screen_text(pilot.app)  # type: ignore[arg-type]
        await pilot.pause(0.02)


async def wait_for_text(pilot: Pilot[None], *texts: str) -> str:
    """Wait until all of these stand on the screen; return it."""
    app = pilot.app
    assert isinstance(app, WatchApp)
    await wait_for(pilot, lambda: all(text in screen_text(app) for text in texts))
    return screen_text(app)


def app_of(pilot: Pilot[None]) -> WatchApp:
    """The screen that a pilot drives."""
    assert isinstance(pilot.app, WatchApp)
    return pilot.app


def rows_of(app: WatchApp, table: str) -> list[list[str]]:
    """The cells of a table."""
    found = app.screen_stack[0].query_one(f"#{table}", DataTable)
    return [[str(cell).strip() for cell in found.get_row_at(at)] for at in range(found.row_count)]


def drive(
    state: Path,
    steps: Callable[[Pilot[None]], Awaitable[None]],
    size: tuple[int, int] = (130, 40),
    actions: ScreenActions | None = None,
) -> WatchApp:
    """Run the screen over the history in ``state`` and do ``steps``."""

    async def run() -> WatchApp:
        app = WatchApp(HistoryViews(state), actions or ScreenActions(state), Page(), ["runs"])
        async with app.run_test(size=size) as pilot:
            await steps(pilot)
        return app

    return asyncio.run(run())
