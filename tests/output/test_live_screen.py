"""The live screen on real terminals: what it shows, how it is drawn, and what stands in for it where there is none."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import advice_samples
import pytest
from daemon_runs import PATIENCE_S, profile
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from advisor.output.page import Page
from advisor.output.watch_screen import ProgramScreen, WatchScreen, render_watch_screen

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WATCH = (sys.executable, "-m", "gapwatch", "watch", "runs")
LIVE = (*WATCH, "--format", "live")


@pytest.fixture(scope="module")
def screencast() -> ModuleType:
    spec = importlib.util.spec_from_file_location("screencast", ROOT / "examples" / "faults" / "screencast.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines(frame: str) -> list[str]:
    """The lines of a screen without colours, and without the empty ones below."""
    return [line.rstrip() for line in CONTROL.sub("", frame).replace("\r", "").rstrip().split("\n")]


def settled(screencast: ModuleType, number: int, counted: str, frame: str) -> bool:
    """Whether a run is shown and nothing is to be done; files are counted a moment later, or two on a busy machine."""
    return screencast.settled(number, frame) and lines(frame)[-1] == f"files: {counted}"


def test_the_screen_follows_runs_sizes_and_problems(screencast: ModuleType, tmp_path: Path) -> None:
    env = screencast.environment(tmp_path)
    with screencast.Terminal(LIVE, tmp_path, env, (100, 40)) as terminal:
        terminal.until(lambda frame: "Waiting for the first profile" in frame)
        profile(tmp_path / "runs" / "one.json", build="v1", actual_s=47.0)
        shown = lines(terminal.until(lambda frame: settled(screencast, 1, "1 ingested", frame)))
        assert shown[0].startswith("fig4 v1: 47.0 s")
        assert any(line.startswith("M' ") and "multiphase imbalance" in line for line in shown)
        assert any("to do next" in line for line in shown)
        drawn = len(terminal.frames)
        terminal.read(2.5)  # the daemon turns at least once in a second; on a slow machine less is seen, never more
        assert len(terminal.frames) == drawn, "nothing changed, so nothing is drawn"
        profile(tmp_path / "runs" / "one.json", build="v1", actual_s=48.0)
        assert lines(terminal.until(lambda frame: "48.0 s" in frame))[0].startswith("fig4 v1: 48.0 s")
        profile(tmp_path / "runs" / "two.json", build="v2", actual_s=52.0)
        shown = lines(terminal.until(lambda frame: settled(screencast, 2, "2 ingested", frame)))
        assert "since v1: run time +4.00 s (one run each: noise unknown)" in shown
        (tmp_path / "runs" / "half.json").write_bytes((tmp_path / "runs" / "one.json").read_bytes()[:150])
        shown = lines(terminal.until(lambda frame: "set aside" in frame))
        assert any("half.json" in line for line in shown)
        terminal.resize(60, 20)
        narrow = lines(terminal.until(lambda frame: max(map(cell_len, lines(frame))) <= 60))
        assert len(narrow) <= 20
        assert narrow[0].startswith("fig4 v2: 52.0 s")
        assert any("to do next" in line for line in narrow)
        assert any(line.startswith("files: ") for line in narrow)
        assert terminal.end() == 0
    assert COLOUR.search(terminal.text)
    after = terminal.text.rpartition("\x1b[?1049l")[2]
    assert lines(after)[0].startswith("fig4 v2: 52.0 s"), "the last state stays on the terminal"


def test_without_colour_the_screen_has_none(screencast: ModuleType, tmp_path: Path) -> None:
    env = screencast.environment(tmp_path) | {"NO_COLOR": "1"}
    profile(tmp_path / "runs" / "one.json", build="v1")
    with screencast.Terminal((*WATCH, "--once"), tmp_path, env, (60, 24)) as terminal:
        terminal.wait()
    assert terminal.process.returncode == 0
    assert "fig4 v1: 47.0 s" in terminal.text
    assert not re.search(r"\x1b\[(\d+;)*[1-9]\d*m", terminal.text)
    assert max(cell_len(line) for frame in terminal.frames for line in lines(frame)) <= 60


def test_a_terminal_that_can_do_nothing_gets_lines(screencast: ModuleType, tmp_path: Path) -> None:
    env = screencast.environment(tmp_path) | {"TERM": "dumb"}
    profile(tmp_path / "runs" / "one.json", build="v1")
    with screencast.Terminal((*WATCH, "--once"), tmp_path, env) as terminal:
        terminal.wait()
    assert terminal.text.startswith("run 1: fig4 v1: 47.0 s: ")
    assert "\x1b" not in terminal.text


def test_without_a_terminal_there_is_a_line_for_each_event(screencast: ModuleType, tmp_path: Path) -> None:
    env = screencast.environment(tmp_path)
    for number in range(2):
        profile(tmp_path / "runs" / f"{number}.json", build=f"v{number}")
    (tmp_path / "runs" / "half.json").write_text('{"schema": "gapwatch/profile/1", ')
    command = [*WATCH, "--once", "--format", "live"]
    made = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert "\x1b" not in made.stdout
    assert [line.split(":")[0] for line in made.stdout.splitlines() if not line.startswith("  ")] == [
        "run 1", "run 2", "set aside",
    ]  # fmt: skip


def test_documents_are_one_a_line_and_problems_stand_elsewhere(screencast: ModuleType, tmp_path: Path) -> None:
    env = screencast.environment(tmp_path)
    for number in range(2):
        profile(tmp_path / "runs" / f"{number}.json")
    (tmp_path / "runs" / "half.json").write_text('{"schema": "gapwatch/profile/1", ')
    command = [*WATCH, "--once", "--format", "json"]
    made = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert [json.loads(line)["profile"]["run"] for line in made.stdout.splitlines()] == ["0", "1"]
    assert "set aside" in made.stderr


def test_a_backlog_says_how_long_it_takes() -> None:
    from advisor.cli.watchers import _BacklogPace

    pace = _BacklogPace()
    assert pace.describe_time_left(1000, 0.0) is None
    assert pace.describe_time_left(900, 1.0) is None, "too early to tell"
    assert pace.describe_time_left(500, 10.0) == "10 s"
    assert pace.describe_time_left(5, 20.0) is None, "not worth a word"
    assert pace.describe_time_left(2000, 30.0) is None, "more came"
    assert pace.describe_time_left(1000, 1030.0) == "17 min"


def test_the_recording_of_the_documentation_is_what_the_screen_shows_today(
    screencast: ModuleType, tmp_path: Path
) -> None:
    written, screens = screencast.record(tmp_path)
    assert written[-1][0] > 0
    head, *rows = [json.loads(line) for line in (ROOT / "docs" / "live.cast").read_text("utf-8").splitlines()]
    assert (head["version"], head["width"], head["height"]) == (2, screencast.COLUMNS, screencast.LINES)
    shown = "".join(text for _, _, text in rows).partition(screencast.LEFT)[0]
    kept = ["\n".join(said(lines(frame))) for frame in shown.split(screencast.HOME)]
    picture = (ROOT / "docs" / "live.svg").read_text("utf-8")
    drawn = "".join(html.unescape(re.sub(r"<[^>]+>", "", picture)).split())
    for screen in screens:
        assert "\n".join(said(lines(screen))) in kept, "run: python examples/faults/screencast.py"
        for line in said(lines(screen)):
            assert "".join(line.split()) in drawn, "run: python examples/faults/screencast.py"
    assert "http" not in re.sub(r'xmlns="[^"]*"|<!--.*?-->', "", picture)
    assert "](docs/live.svg)" in (ROOT / "README.md").read_text("utf-8")


def said(shown: list[str]) -> list[str]:
    """The lines of a screen but the one that counts files, which may be a moment behind."""
    return [line for line in shown if not line.startswith("files: ")]


def test_every_program_has_a_line() -> None:
    shown = screen_of(12)
    frame = render(shown, 40)
    assert len(frame) <= 40
    for number in range(1, 13):
        assert any(f"program{number:02} " in line or f"program{number:02}:" in line for line in frame), number
    assert [number for number in range(1, 12) if frame[number - 1].startswith(f"run {number}: program{number:02}")]
    assert "to do next" in "\n".join(frame[12:])


def test_the_oldest_of_too_many_programs_are_counted() -> None:
    frame = render(screen_of(50), 30)
    assert len(frame) <= 30
    listed = sum(line.startswith("run ") for line in frame)
    assert frame[0] == f"… {49 - listed} more programs"
    assert listed >= 15


@given(st.integers(1, 60), st.integers(1, 80), st.integers(20, 200))
@settings(deadline=None, max_examples=40)
def test_the_screen_fits_and_ends_with_the_newest(programs: int, height: int, width: int) -> None:
    frame = render(screen_of(programs), height, width)
    assert len(frame) <= height
    assert all(cell_len(line) <= width for line in frame)
    if height >= 20:
        last = [number for number, line in enumerate(frame) if f"program{programs:02}" in line][-1]
        assert not any(f"program{other:02}" in line for line in frame[last + 1 :] for other in range(1, programs))


def test_the_last_state_tells_all_of_three_programs() -> None:
    frame = render(screen_of(6), None)
    assert sum(line.startswith("run ") for line in frame) == 3
    assert sum("to do next" in line for line in frame) == 3


def screen_of(programs: int) -> WatchScreen:
    """A screen of programs 1 to ``programs``, the newest last."""
    advice = advice_samples.full()
    runs = [
        ProgramScreen(number, replace(advice, profile=replace(advice.profile, program=f"program{number:02}")))
        for number in range(1, programs + 1)
    ]
    return WatchScreen(("runs",), runs, {"ingested": programs}, 0, ())


def render(shown: WatchScreen, height: int | None, width: int = 120) -> list[str]:
    page = Page(width=width)
    return str(render_watch_screen(shown, page, height)).splitlines()


def test_beside_a_history_the_empty_screen_waits_for_the_next_profile() -> None:
    page = Page(width=100, encoding="utf-8", color=False)
    empty = WatchScreen(("/runs",), (), {}, 0, ())
    assert render_watch_screen(empty, page).plain.startswith("Waiting for the first profile in /runs\n")
    said = render_watch_screen(replace(empty, known_runs=100), page).plain
    assert said.startswith("Waiting for the next profile in /runs; 'gapwatch history' shows the 100 runs that came")
