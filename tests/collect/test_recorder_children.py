"""Processes and threads that share work by other means than MPI and OpenMP. No time is asserted."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from interpreters import SUPPORTED, find_interpreter
from recorded_runs import LIBRARIES, SOURCES, compile_program, record_run

from advisor.formats import recording
from advisor.formats.recording.contents import read_recording
from advisor.trace.events import Role
from advisor.trace.recordings.families import read_processes
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile


def waits_in(profile: Profile, name: str) -> float:
    rows = [number for number, region in enumerate(profile.regions) if region.name == name]
    assert classify_region(name)[1] == Role.OMP_LOCK
    return sum(
        float(phase.arrays["wait_s"][row].sum())
        for phase in profile.phases
        for row, region in enumerate(phase.regions.tolist())
        if region in rows
    )


def newest_interpreter() -> str:
    found = next((path for version in reversed(SUPPORTED) if (path := find_interpreter(version))), None)
    return str(found or sys.executable)


def test_children_of_fork_are_further_processors_of_their_program(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "children.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    found = read_recording(folder)
    assert [process.forked_ns is not None for process in found.processes] == [False, True, True]
    assert all(process.ended for process in found.processes)
    assert all(process.used_s > 0.1 for process in found.processes[1:])
    profile = recording.advisor_read(folder)
    assert [one.rank for one in profile.processors] == [0, 0], "one takes the place of the parent, which reads a pipe"
    assert not [note.name for note in profile.notes if note.name in ("recording died", "other programs started")]
    sampled = {region.name: region for n, region in enumerate(profile.regions) if profile.counts["samples"][n].any()}
    assert sampled["compute"].file == "children.c"


def test_a_program_started_in_a_clean_environment_is_recorded(tmp_path: Path) -> None:
    shutil.copy(SOURCES / "clean.py", tmp_path)
    folder, _, err = record_run(tmp_path, newest_interpreter(), str(tmp_path / "clean.py"))
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    assert len(read_recording(folder).processes) == 2
    assert not [note.text for note in profile.notes if note.name == "other programs started"]
    assert len(profile.processors) == 1, "who waits for the only child is no processor"


def test_a_program_started_behind_an_emptied_environment_is_recorded(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "clean.c")
    folder, out, err = record_run(tmp_path, str(program))
    assert out.strip(), err
    assert len(read_recording(folder).processes) == 2
    assert not [note.text for note in recording.advisor_read(folder).notes if note.name == "other programs started"]


def test_what_a_child_waits_for_in_a_pipe_is_no_input(tmp_path: Path) -> None:
    shutil.copy(SOURCES / "pool.py", tmp_path)
    folder, out, err = record_run(tmp_path, newest_interpreter(), str(tmp_path / "pool.py"), "fork")
    assert "recorded into" in err, err
    assert out.split()[0] == str(sum(n * n for n in range(8)))
    profile = recording.advisor_read(folder)
    assert waits_in(profile, "pipe_read") + waits_in(profile, "sem_wait") > 0
    assert any(region.name == "pipe_read" for region in profile.regions)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_that_are_ended_by_a_signal_are_read_to_their_end(tmp_path: Path, method: str) -> None:
    shutil.copy(SOURCES / "pool.py", tmp_path)
    folder, _, err = record_run(tmp_path, newest_interpreter(), str(tmp_path / "pool.py"), method)
    assert "recorded into" in err, err
    found = read_recording(folder)
    busy = [process for process in found.processes[1:] if process.used_s > 0.1]
    assert len(busy) == 2
    profile = recording.advisor_read(folder)
    assert profile.program == "pool.py"
    assert not any(note.name == "recording died" for note in profile.notes if method == "fork")
    sampled = {region.name for n, region in enumerate(profile.regions) if profile.counts["samples"][n].any()}
    assert "spin" in sampled


def test_a_program_that_was_started_is_no_worker_and_is_named(tmp_path: Path) -> None:
    for name in ("pool.py", "loops.py"):
        shutil.copy(SOURCES / name, tmp_path)
    command = (sys.executable, str(tmp_path / "pool.py"), "fork", str(tmp_path / "loops.py"))
    folder, _, err = record_run(tmp_path, *command)
    assert "recorded into" in err, err
    notes = recording.advisor_read(folder).notes
    told = [note.text for note in notes if note.name == "other programs started"]
    assert len(told) == 1, (notes, sorted((path.name, path.stat().st_size) for path in folder.iterdir()))
    assert "pool.py" in told[0] or "loops.py" in told[0]


def test_brief_children_leave_no_files_and_count(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "children.c")
    folder, _, err = record_run(tmp_path, str(program), "300")
    assert "recorded into" in err, err
    assert 3 <= len(list(folder.glob("*.process"))) < 150
    found = read_recording(folder)
    assert len({process.pid for process in found.processes}) == len(found.processes)
    children = [one for one in (*found.threads, *found.helpers) if one.span.number]
    assert len(children) == 302
    assert found.threads[0].folding.calls > 0
    assert not any(one.folding.calls or len(one.registers) > len(one.samples) for one in children)
    assert len({one.processor for one in children}) < 10


def test_child_of_a_brief_child_belongs_to_the_program(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "orphan.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    found = read_recording(folder)
    root, orphan = found.processes
    assert (orphan.parent, orphan.program) == (root.pid, root.program)
    assert orphan.used_s > 0.1
    profile = recording.advisor_read(folder)
    assert not [note.name for note in profile.notes if note.name in ("recording died", "other programs started")]
    sampled = {region.name: region for n, region in enumerate(profile.regions) if profile.counts["samples"][n].any()}
    assert sampled["compute"].file == "orphan.c"


def test_killed_child_has_not_the_time_of_its_own_children(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "killed_child.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    _, child, grandchild = read_recording(folder).processes
    assert 0.1 <= child.used_s < 0.3 < grandchild.used_s


def test_brief_children_of_a_worker_follow_each_other(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "children.c")
    folder, _, err = record_run(tmp_path, str(program), "100", "by-a-worker")
    assert "recorded into" in err, err
    found = read_recording(folder)
    assert len({one.processor for one in (*found.threads, *found.helpers)}) < 10


def test_threads_of_c_wait_for_semaphores_and_futexes(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "waits.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    found = read_recording(folder)
    assert {one.span.number for one in (*found.threads, *found.helpers)} == {0, 1, 2}
    functions = set(found.processes[0].functions.values())
    assert functions >= {"thrd_create", "thrd_join", "sem_wait", "futex_wait"}


def test_threads_of_python_wait_for_their_turn_in_the_interpreter(tmp_path: Path) -> None:
    shutil.copy(SOURCES / "turns.py", tmp_path)
    folder, _, err = record_run(tmp_path, newest_interpreter(), str(tmp_path / "turns.py"))
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    assert waits_in(profile, "python_gil") > 0
    assert any(region.name == "python_gil" and region.file == "turns.py" for region in profile.regions)


@pytest.mark.parametrize("library", LIBRARIES)
def test_children_of_a_rank_belong_to_it(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler,), "rank_children.c")
    folder, _, err = record_run(tmp_path, *launcher, "-n", "2", str(program))
    assert "recorded into" in err, err
    found = read_recording(folder)
    assert sorted((one.rank, one.span.number) for one in found.threads if one.is_first) == [
        (0, 0), (0, max(one.span.number for one in found.threads if one.rank == 0)),
        (1, 0), (1, max(one.span.number for one in found.threads if one.rank == 1)),
    ]  # fmt: skip
    assert len(read_processes(folder)) == 4


def test_a_program_that_goes_on_in_the_background_is_waited_for(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "background.c", "-lm")
    folder, _, err = record_run(tmp_path, str(program))
    assert "goes on in the background" in err, err
    profile = recording.advisor_read(folder)
    assert all(process.ended for process in read_processes(folder))
    assert len(profile.processors) == 1
    assert sum(float(phase.arrays["cpu_s"].sum()) for phase in profile.phases) > 0.3
    assert not [note.name for note in profile.notes if note.name == "recording died"]


def test_settings_of_openmp_are_no_part_of_the_command_of_a_program_without_it(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "sweep.c", "-lm")
    folder, _, err = record_run(tmp_path, str(program), "2000", OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    assert recording.advisor_read(folder).parameters["command"] == f"{program} 2000"
