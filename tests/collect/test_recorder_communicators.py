"""How programs get at MPI and its communicators, under the recorder. No time is asserted."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from recorded_runs import LIBRARIES, compile_program, record_run

from advisor.collect.recorder.building import _library_of
from advisor.formats import recording
from advisor.trace import matching, nesting

if TYPE_CHECKING:
    from pathlib import Path

SOME, BARRIERS = 3, 5


def count_collectives(folder: Path) -> tuple[int, int, int]:
    """Return the ranks of a recording, its complete collectives, and the calls without partners."""
    trace = recording.read_trace(folder)
    found = matching.match_collectives(trace, nesting.pair_calls(trace))
    return len(trace.locations), len(found), found.unmatched


@pytest.mark.parametrize("library", LIBRARIES)
def test_functions_that_a_program_looks_up_are_recorded(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    if shutil.which(compiler) is None or shutil.which("gcc") is None:
        pytest.skip(f"needs {compiler} and gcc")
    shown = subprocess.run([compiler, "-show"], capture_output=True, text=True, check=True).stdout.split()
    folders = [word for word in shown if word.startswith("-I")]
    program = compile_program(tmp_path, ("gcc", *folders), "by_name.c", "-ldl")
    name = _library_of(compiler)
    assert name is not None
    folder, _, err = record_run(tmp_path, *launcher, "-n", str(SOME), str(program), name)
    assert "recorded into" in err, err
    assert count_collectives(folder) == (SOME, BARRIERS, 0)


@pytest.mark.parametrize("source", ["session.c", "forked_rank.c"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_program_may_begin_with_a_session_or_a_fork(tmp_path: Path, library: str, source: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler,), source)  # skips where the library has no sessions
    folder, _, err = record_run(tmp_path, *launcher, "-n", str(SOME), str(program))
    assert "recorded into" in err, err
    assert count_collectives(folder) == (SOME, BARRIERS, 0)


@pytest.mark.parametrize("library", LIBRARIES)
def test_programs_behind_make_or_a_shell_are_recorded(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler,), "forked_rank.c")
    line = shlex.join((*launcher, "-n", str(SOME), str(program)))
    (tmp_path / "Makefile").write_text(f"run:\n\t{line}\n", encoding="utf-8")
    for number, (options, command) in enumerate(
        (((), ("sh", "-c", f"{line}; true")), (("--mpi", compiler), ("make", "-C", str(tmp_path), "run")))
    ):
        place = tmp_path / str(number)
        place.mkdir()
        folder, _, err = record_run(place, *command, options=options)
        assert "recorded into" in err, err
        assert count_collectives(folder) == (SOME, BARRIERS, 0)


@pytest.mark.parametrize("library", LIBRARIES)
def test_messages_in_communicators_that_come_and_go_have_both_ends(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler, "-Wno-stringop-overflow"), "communicators.c")
    folder, out, err = record_run(tmp_path, *launcher, "-n", str(SOME), str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    found = matching.match_messages(trace, nesting.pair_calls(trace))
    assert (len(found.send), found.unmatched_ends) == (int(out.split()[0]), 0)
