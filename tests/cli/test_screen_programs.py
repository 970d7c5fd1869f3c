"""The list of programs on the screen to work with: room for names, many of them, and names that do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import advice_samples as samples
import pytest
from run_history import NOW, add_runs, make_run
from screen_driver import app_of, drive, rows_of, screen_text, wait_for, wait_for_text
from stored_runs import unit

from advisor.history.database import HistoryWriter
from advisor.history.run_storage import store_run

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot


def test_a_program_without_a_visible_name_is_listed(tmp_path: Path) -> None:
    add_runs(tmp_path / "state", [make_run(" ")])

    async def steps(pilot: Pilot[None]) -> None:
        await wait_for(pilot, lambda: [row[0] for row in rows_of(app_of(pilot), "programs")] == ["' '"])

    drive(tmp_path / "state", steps)


@pytest.mark.parametrize(("columns", "room"), [(60, 25), (80, 45), (120, 13), (200, 24)])
def test_names_have_the_room_that_the_list_leaves(tmp_path: Path, columns: int, room: int) -> None:
    name = "a_program_with_quite_a_long_name_of_fifty_letters__"
    add_runs(tmp_path / "state", [make_run(name)])

    async def steps(pilot: Pilot[None]) -> None:
        await wait_for(pilot, lambda: [len(row[0]) for row in rows_of(app_of(pilot), "programs")] == [room])
        (shown,) = (row[0] for row in rows_of(app_of(pilot), "programs"))
        assert (shown[:5], shown[-5:], "…" in shown) == (name[:5], name[-5:], True)

    drive(tmp_path / "state", steps, (columns, 30))


def test_fifty_programs_scroll(tmp_path: Path) -> None:
    add_runs(tmp_path / "state", [make_run(f"program{number:02}") for number in range(50)])

    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "program49")
        assert "program00" not in screen_text(app_of(pilot))
        await pilot.press("end")
        await wait_for_text(pilot, "program00 v1: 47.0 s")
        await wait_for(pilot, lambda: "program49" not in screen_text(app_of(pilot)))
        await pilot.press(*"kkk")
        await wait_for_text(pilot, "program03 v1: 47.0 s")

    drive(tmp_path / "state", steps, (130, 30))


@pytest.mark.parametrize("text", ["[red]x[/]", "[/]", "\x1b[2J", "größer→", "x" * 3000, "[@click=app.exit]y", "{}%s"])
def test_names_are_never_markup(text: str, tmp_path: Path) -> None:
    advice = samples.hostile(text)
    writer = HistoryWriter(tmp_path / "state")
    with writer.transaction() as connection:
        store_run(connection, advice, [unit("one")], NOW)
    writer.close()

    async def steps(pilot: Pilot[None]) -> None:
        app = app_of(pilot)
        await wait_for_text(pilot, "47.0 s", "Self-sch")
        shown = screen_text(app)
        assert "\x1b" not in shown
        if len(text) < 12 and text.isprintable():
            assert text in shown
        await pilot.press("2", "3", "4", "1")
        await pilot.pause()
        await pilot.press("enter")
        await wait_for_text(pilot, "1  Self-scheduling [A-29]")
        if len(text) < 12 and text.isprintable():
            assert text in screen_text(app)
        await pilot.press("escape", "c")

    drive(tmp_path / "state", steps)
