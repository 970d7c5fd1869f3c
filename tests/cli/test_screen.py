"""The screen to work with, driven by Textual's pilot: what it lists, what its keys do, and names that do nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import advice_samples as samples
import pytest
from run_history import add_runs, make_run
from screen_driver import app_of, drive, rows_of, screen_text, wait_for, wait_for_text

from advisor.cli.screen.actions import ScreenActions
from advisor.cli.screen.app import DaemonMessage
from advisor.cli.screen.dialogs import find_day_problem
from advisor.history.access import read_history
from advisor.history.items import ItemStore
from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from advisor.history.items import Item

#: Two builds of a program, four runs each: the second is slower by more than the noise; and another program.
HISTORY = [
    *(make_run(build="v1", run=f"{at}", actual_s=47.0 + at / 10) for at in range(4)),
    *(make_run(build="v2", run=f"{at}", actual_s=60.0 + at / 10) for at in range(4)),
    make_run("solver"),
]
NEWEST = 8


@pytest.fixture
def state(tmp_path: Path) -> Path:
    add_runs(tmp_path / "state", HISTORY)
    return tmp_path / "state"


def items(state: Path, program: str = "jacobi") -> dict[str, Item]:
    with read_history(state) as connection:
        return {item.fingerprint: item for item in ItemStore(connection).items_of_program(program)}


async def open_jacobi(pilot: Pilot[None]) -> None:
    """Choose the second program, and its first item."""
    await wait_for_text(pilot, "solver", "jacobi")
    await pilot.press("down")
    await wait_for_text(pilot, "jacobi v2: 60.3 s")
    await pilot.press("enter")
    await wait_for(pilot, lambda: app_of(pilot).focused is not None and app_of(pilot).focused.id == "items")


def test_programs_stand_in_a_list_with_their_trend_and_their_runs(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "▲ slower", "· first")
        assert rows_of(app_of(pilot), "programs") == [
            ["solver", "· first", "47.0 s", "▁"], ["jacobi", "▲ slower", "60.3 s", "▁▁████"],
        ]  # fmt: skip
        assert "4 new items" in screen_text(app_of(pilot)).split("\n")[0]

    drive(state, steps)


def test_the_chosen_program_shows_where_its_seconds_go(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await open_jacobi(pilot)
        shown = await wait_for_text(pilot, "since v1: run time +13.0 s", "overall load imbalance", "█")
        assert "M'" in shown
        first = rows_of(app_of(pilot), "items")[0]
        assert first[0] == "open"
        assert first[1].startswith("1 Self-scheduling [A-29]")
        await pilot.press("2")
        await wait_for_text(pilot, "twice as slow as in the last run", "Quality of the evidence")
        await pilot.press("3")
        await wait_for_text(pilot, "Run time and gaps over 2 builds", "█", "v2")
        await pilot.press("4")
        await wait_for_text(pilot, "ingested")
        await pilot.press("escape", "up", "1")
        await wait_for_text(pilot, "solver v1: 47.0 s")

    drive(state, steps)


def test_an_item_opens_in_full(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await open_jacobi(pilot)
        await pilot.press("enter")
        shown = await wait_for_text(pilot, "Keep a queue of row blocks", "before:", "evidence", "may increase")
        assert "while (next_block" in shown
        await pilot.press("escape")
        await wait_for_text(pilot, "jacobi v2: 60.3 s")

    drive(state, steps, (130, 60))


def test_an_item_is_acknowledged_suppressed_and_applied(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await open_jacobi(pilot)
        await pilot.press("a")
        await wait_for_text(pilot, "acknowledged")
        await pilot.press("down", "s")
        await wait_for_text(pilot, "Suppress this item")
        await pilot.press(*"known", "enter", *"soon", "enter")
        await wait_for_text(pilot, "Expected a day")
        await pilot.press(*["backspace"] * 4, *"2999-01-31", "enter")
        await wait_for_text(pilot, "suppressed until 2999-01-31")
        await pilot.press("down", "p")
        await wait_for_text(pilot, "the next build will show what it gained")
        await wait_for(
            pilot,
            lambda: [row[0] for row in rows_of(app_of(pilot), "items")][:3]
            == ["acknowledged", "suppressed", "applied"],
        )  # fmt: skip

    drive(state, steps)
    found = items(state)
    assert found["a29-5b1c-1"].state == "acknowledged"
    suppressed = found["a29-5b1c-2"]
    assert (suppressed.state, suppressed.until, suppressed.reason) == ("suppressed", "2999-01-31", "known")
    assert found["a29-5b1c-3"].promised_s == pytest.approx(4 / 3)


def test_an_item_can_be_marked_where_it_is_read(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await open_jacobi(pilot)
        await pilot.press("enter")
        await wait_for_text(pilot, "Keep a queue of row blocks")
        await pilot.press("a")
        await wait_for_text(pilot, "Keep a queue of row blocks", "acknowledged")
        await pilot.press("s")
        await wait_for_text(pilot, "Suppress this item")
        await pilot.press("escape")

    drive(state, steps)
    assert items(state)["a29-5b1c-1"].state == "acknowledged"


@pytest.mark.parametrize("tab", ["2", "3", "4"])
def test_no_item_is_marked_that_another_tab_hides(state: Path, tab: str) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await open_jacobi(pilot)
        await pilot.press(tab)
        await wait_for(pilot, lambda: not app_of(pilot).query_one("#items").region)
        for key in ("a", "s", "p", "x"):
            await pilot.press(key)
            await wait_for_text(pilot, "1 shows the items")

    drive(state, steps)
    assert {item.state for item in items(state).values()} == {"open"}


def test_the_newest_run_is_compared_with_the_build_before(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "solver v1: 47.0 s")
        await pilot.press("c")
        await wait_for_text(pilot, "this is the first run of the program")
        await open_jacobi(pilot)
        await pilot.press("c")
        await wait_for_text(pilot, "from v1 (4 runs) to v2 (4 runs)", "more than noise")
        await pilot.press("escape")

    drive(state, steps)


@dataclass(frozen=True, slots=True)
class _Actions(ScreenActions):
    """Actions that answer at once."""

    def explain_run(self, number: int, what: str | None, width: int) -> str:
        if number == NEWEST:
            return f"run {number}, {what}: L = IPCOL - IPCO [red]\n"
        raise AdvisorError("the profile is gone")


def test_an_item_is_explained(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await open_jacobi(pilot)
        await pilot.press("x")
        await wait_for_text(pilot, "run 8, A-29: L = IPCOL - IPCO [red]")
        await pilot.press("escape", "escape", "up")
        await wait_for_text(pilot, "solver v1: 47.0 s")
        await pilot.press("x")
        await wait_for_text(pilot, "the profile is gone")

    drive(state, steps, actions=_Actions(state))


def test_the_page_of_the_run_is_written_and_named(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)

    async def steps(pilot: Pilot[None]) -> None:
        await open_jacobi(pilot)
        await pilot.press("o")
        await wait_for_text(pilot, "the page of the run:")

    drive(state, steps)
    [page] = (tmp_path / "cache").rglob("run-8.html")
    assert page.stat().st_mode & 0o777 == 0o600
    assert "jacobi" in page.read_text(encoding="utf-8")


def test_the_filter_leaves_the_programs_that_fit(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "solver", "jacobi")
        await pilot.press("slash", *"JAC", "enter")
        await wait_for(pilot, lambda: [row[0] for row in rows_of(app_of(pilot), "programs")] == ["jacobi"])
        await wait_for_text(pilot, "jacobi v2: 60.3 s")
        await pilot.press("escape")
        await wait_for(pilot, lambda: len(rows_of(app_of(pilot), "programs")) == 2)
        field = app_of(pilot).query_one("#filter")
        for end in ("enter", "escape"):
            await pilot.press("slash")
            await wait_for(pilot, lambda: bool(field.region))
            await pilot.press(end)
            await wait_for(pilot, lambda: not field.region)

    drive(state, steps)


@pytest.mark.parametrize(
    ("build", "said"),
    [(None, "no earlier run names its build"), ("v1", "no other build ran with the same ranks and parameters")],
)
def test_why_nothing_can_be_compared_is_said(tmp_path: Path, build: str | None, said: str) -> None:
    add_runs(tmp_path / "state", [make_run(build=build, run=run) for run in ("1", "2")])

    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "jacobi")
        await wait_for_text(pilot, ": 47.0 s")
        await pilot.press("c")
        await wait_for_text(pilot, said)

    drive(tmp_path / "state", steps)


def test_text_takes_the_place_of_bars(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "solver v1: 47.0 s", "█")
        await pilot.press("t")
        await wait_for_text(pilot, "L: overall load imbalance: 8.00 s, 17.0 %, see 1")
        assert not set(screen_text(app_of(pilot))) & set("▁▂▃▄▅▆▇█")
        assert [row[3] for row in rows_of(app_of(pilot), "programs")] == ["1", "8"]
        await pilot.press("3")
        await wait_for_text(pilot, "Only one build so far")
        await pilot.press("t", "1")
        await wait_for_text(pilot, "█")

    drive(state, steps)


def test_a_narrow_screen_shows_the_list_or_the_program(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "solver", "jacobi")
        assert "Gaps" not in screen_text(app_of(pilot))
        await pilot.press("down", "enter")
        shown = await wait_for_text(pilot, "jacobi v2: 60.3 s", "Self-sch")
        assert "solver" not in shown
        assert max(map(len, shown.split("\n"))) <= 60
        await pilot.press("escape")
        await wait_for_text(pilot, "solver")
        await pilot.resize_terminal(130, 40)
        await wait_for_text(pilot, "solver", "jacobi v2: 60.3 s")
        await pilot.resize_terminal(100, 40)
        await wait_for_text(pilot, "solver", "jacobi v2: 60.3 s")

    drive(state, steps, (60, 20))


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
def test_why_there_are_no_items_takes_their_place(tmp_path: Path, size: tuple[int, int]) -> None:
    short = replace(samples.insufficient(), gaps=())
    add_runs(tmp_path / "state", [short])

    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "jacobi")
        await pilot.press("enter")
        await wait_for_text(pilot, "2 of 4 ranks are missing", "next: ./jacobi -steps 1000")
        assert app_of(pilot).focused is app_of(pilot).query_one("#gaps")

    drive(tmp_path / "state", steps, size)


def test_items_of_one_action_are_told_apart_where_places_have_no_column(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "jacobi")
        await pilot.press("down", "enter")
        await wait_for_text(pilot, "Self-scheduling")
        words = {row[1][2:] for row in rows_of(app_of(pilot), "items") if "Self-sch" in row[1]}
        places = {item.region or item.phase for item in items(state).values() if item.title == "Self-scheduling"}
        assert len(words) == len(places) > 1

    drive(state, steps, (80, 24))


def test_the_mouse_chooses_programs_and_tabs(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "solver v1: 47.0 s", "jacobi")
        await pilot.click("#programs", offset=(3, 2))
        await wait_for_text(pilot, "jacobi v2: 60.3 s")
        await pilot.click("#--content-tab-tab-history")
        await wait_for_text(pilot, "Run time and gaps over 2 builds")

    drive(state, steps)


def test_runs_that_come_are_shown(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "solver v1: 47.0 s")
        add_runs(state, [make_run("solver", "v2", "9", 41.5), make_run("third")])
        await wait_for_text(pilot, "third", "41.5 s", "solver v2: 41.5 s")

    drive(state, steps)


def test_an_empty_history_waits(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await wait_for_text(pilot, "Waiting for the first profile in runs")
        await pilot.press("a", "c", "x", "o", "enter", "t", "question_mark")
        await wait_for_text(pilot, "Keys", "Screen readers")
        await pilot.press("escape")

    drive(tmp_path / "state", steps)


def test_what_the_daemon_says_stands_below(state: Path) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        app_of(pilot).post_message(DaemonMessage("set aside: half.json: [red]cut off"))
        await wait_for_text(pilot, "set aside: half.json: [red]cut off")
        app_of(pilot).post_message(DaemonMessage("another process writes", ended=True))
        await wait_for_text(pilot, "! another process writes")

    drive(state, steps)


def test_days_are_checked() -> None:
    assert find_day_problem("") == ""
    assert find_day_problem("2999-01-31") == ""
    assert "such as" in find_day_problem("2999-02-31")
    assert "such as" in find_day_problem("tomorrow")
    assert "future" in find_day_problem("2001-01-31")
