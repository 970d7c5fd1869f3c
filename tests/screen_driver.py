"""The screen of ``gapwatch watch`` over a history made for a test, driven by Textual's pilot."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import advice_samples as samples
import pytest
from patience import PATIENCE_S

from advisor.history.database import HistoryWriter
from advisor.history.program_views import HistoryViews
from advisor.history.run_storage import store_run
from advisor.history.runs import ProfileUnit
from advisor.output.page import Page

pytest.importorskip("textual", reason="there is no Textual here: pip install textual")

from textual.widgets import DataTable

from advisor.cli.screen.actions import ScreenActions
from advisor.cli.screen.app import WatchApp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from textual.pilot import Pilot

    from advisor.model.records import Advice

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def make_run(program: str = "jacobi", build: str | None = "v1", run: str = "1", actual_s: float = 47.0) -> Advice:
    """The advice of ``samples.full`` on another run; what it took longer stands in its last gap."""
    advice = samples.full()
    more = actual_s - advice.profile.actual_s
    gaps = (*advice.gaps[:-1], replace(advice.gaps[-1], seconds=advice.gaps[-1].seconds + more))
    bounds = (*advice.bounds[:-1], replace(advice.bounds[-1], seconds=(advice.bounds[-1].seconds or 0.0) + more))
    profile = replace(advice.profile, program=program, build=build, run=run, actual_s=actual_s)
    items = tuple(replace(item, fingerprint=f"{item.fingerprint}-{item.rank}") for item in advice.recommendations)
    return replace(advice, profile=profile, gaps=gaps, bounds=bounds, recommendations=items)


def add_runs(state: Path, runs: Sequence[Advice]) -> None:
    """Add runs to the history in ``state``."""
    writer = HistoryWriter(state)
    try:
        for at, advice in enumerate(runs):
            name = f"{advice.profile.program}-{advice.profile.build}-{advice.profile.run}"
            with writer.transaction() as connection:
                unit = ProfileUnit(Path("/data") / name, "native", name)
                store_run(connection, advice, [unit], NOW + timedelta(seconds=at))
    finally:
        writer.close()


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
