"""Python programs under the recorder: functions and lines of Python, for samples and for calls. No time is asserted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from interpreters import SUPPORTED, find_interpreter
from recorded_runs import SOURCES, compile_program, record_run

from advisor.formats import recording
from advisor.formats.recording.contents import read_recording

if TYPE_CHECKING:
    from pathlib import Path

LINES = (SOURCES / "loops.py").read_text("ascii").splitlines()


@pytest.mark.parametrize("version", SUPPORTED)
def test_functions_and_lines_of_python(tmp_path: Path, version: str) -> None:
    interpreter = find_interpreter(version)
    if interpreter is None:
        pytest.skip(f"there is no Python {version} here: apt-get install python{version} python{version}-venv")
    folder, out, err = record_run(tmp_path, str(interpreter), str(SOURCES / "loops.py"), "12")
    assert "recorded into" in err, err
    assert int(out.split()[0]) == 12 * sum(i * i for i in range(200000))
    assert [process.interpreter for process in read_recording(folder).processes] == [f"Python {version} lines"]
    assert not list(folder.glob("*.program")), "neither an interpreter nor what scripts around it start"
    profile = recording.advisor_read(folder)
    assert profile.program == "loops.py"
    sampled = {region.name: region for n, region in enumerate(profile.regions) if profile.counts["samples"][n].any()}
    assert sampled["add_squares"].file == "loops.py"
    assert (sampled["add_squares"].line or 0) in (9, 10)
    library = [region for region in sampled.values() if region.file == "loops.py" and "iterencode" in region.name]
    assert {LINES[(region.line or 0) - 1].split()[1] for region in library} == {"json.dumps(values,"}
    writes = [region for region in profile.regions if region.name == "write" and region.file == "loops.py"]
    assert {"out" in LINES[(region.line or 0) - 1] for region in writes} >= {True}
    inside, everything = (profile.counts[name].sum() for name in ("code.interpreted_s", "code.all_s"))
    assert 0.3 * everything < inside <= everything
    advice = (tmp_path / "home" / "advice.txt").read_text("utf-8")
    assert "loops.py" in advice


def test_a_compiled_program_has_no_interpreter(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "prints.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    assert [process.interpreter for process in read_recording(folder).processes] == [""]
    assert list(folder.glob("prints-*.program"))
    assert "code.interpreted_s" not in recording.advisor_read(folder).counts


def test_what_python_does_beside_arithmetic_is_told_by_its_lines(tmp_path: Path) -> None:
    found = find_interpreter("3.11") or find_interpreter("3.12")
    if found is None:
        pytest.skip("there is no Python 3.11 or 3.12 here: apt-get install python3.11 python3.11-venv")
    folder, _, err = record_run(tmp_path, str(found), str(SOURCES / "dictionaries.py"), "5")
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)

    def share(function: str, kind: str) -> float:
        rows = [n for n, region in enumerate(profile.regions) if region.name == function]
        mine, everything = (profile.counts[name][rows].sum() for name in (f"code.{kind}_s", "code.all_s"))
        return float(mine / everything)

    assert share("unique", "listed") > 0.8
    assert share("Page.render", "regrown") > 0.5
    assert share("count", "interpreted") + share("count", "keyed") > 0.3, "some of it compares keys in the C library"
    assert share("unique", "interpreted") + share("unique", "keyed") < 0.2
    advice = (tmp_path / "home" / "advice.txt").read_text("utf-8")
    assert "in searching lists of Python" in advice or "searching lists of Python in unique" in advice


def test_a_loop_of_events_is_waited_in_and_its_source_tells_that_it_asks_one_by_one(tmp_path: Path) -> None:
    found = find_interpreter("3.11") or find_interpreter("3.12")
    if found is None:
        pytest.skip("there is no Python 3.11 or 3.12 here: apt-get install python3.11 python3.11-venv")
    folder, out, err = record_run(tmp_path, str(found), str(SOURCES / "asking.py"))
    assert "recorded into" in err, err
    assert out.startswith("20")
    profile = recording.advisor_read(folder)
    waiting = [n for n, region in enumerate(profile.regions) if region.name == "epoll_wait"]
    assert waiting
    asked = profile.counts["wait.answer_s"][waiting].sum()
    assert asked >= 20 * 0.02, "each answer takes so long at least"
    assert asked == pytest.approx(profile.counts["wait.answer_s"].sum(), rel=0.2)


def test_the_lock_of_a_shared_value_is_a_lock_and_no_packing(tmp_path: Path) -> None:
    program = str(SOURCES / "shared_value.py")
    folder, _, err = record_run(tmp_path, sys.executable, program)
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    counts = profile.counts
    assert counts["code.pickled_s"].sum() < 0.05 * counts["code.all_s"].sum(), "to start a process takes some"
    worked = next(row for row, region in enumerate(profile.regions) if region.name == "add")
    assert counts["code.lock_s"][worked].sum() > 0.5 * counts["code.all_s"][worked].sum() > 0
