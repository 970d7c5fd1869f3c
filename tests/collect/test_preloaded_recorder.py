"""The preloaded recorder on real programs: what they did is what was recorded. No time is asserted."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from recorded_runs import LIBRARIES, SOURCES, compile_program, record_run

from advisor.collect.binaries.executables import attach_executable
from advisor.formats import recording
from advisor.formats.recording.contents import read_recording
from advisor.trace import matching, nesting
from advisor.trace.events import Kind, Role
from advisor.trace.recordings.layout import CALL, FOLDED, map_records
from advisor.trace.recordings.processes import read_process

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

SOME = 4


def closed_accounts(profile: Profile) -> bool:
    """Whether phases and outside add up to the run for every processor."""
    total = sum(phase.arrays["wall_s"].sum(axis=(0, 2)) for phase in profile.phases) + sum(profile.outside.values())
    return bool(np.allclose(total, profile.actual_s, rtol=1e-9, atol=0.0))


def used_and_counted_s(folder: Path) -> list[tuple[float, float]]:
    """CPU seconds of each process: of its recorded threads, and by getrusage."""
    found = []
    for process in read_recording(folder).processes:
        assert process.begin is not None
        assert process.end is not None
        begin, end = process.begin, process.end
        found.append((process.used_s, end.user_s + end.system_s - begin.user_s - begin.system_s))
    return found


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_message_has_both_ends(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler,), "messages.c")
    folder, out, err = record_run(tmp_path, *launcher, "-n", str(SOME), str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    calls = nesting.pair_calls(trace)
    found = matching.match_messages(trace, calls)
    assert (len(found.send), found.unmatched_ends) == (int(out.split()[0]), 0)
    nonblocking = int((trace.kind == Kind.ISEND).sum())
    freed = 20 * SOME  # MPI_Request_free: nobody hears of their completion
    assert int((found.send_end >= 0).sum()) == nonblocking - freed == int((trace.kind == Kind.ISEND_DONE).sum())
    assert matching.match_collectives(trace, calls).unmatched == 0
    assert (calls.leave >= 0).all()
    assert set(trace.communicators) >= {tuple(range(SOME)), (0, 2), (1, 3)}
    sites = {region.line for region in trace.regions if region.name == "MPI_Waitall"}
    assert len(sites) > 3
    assert {region.file for region in trace.regions if region.name == "MPI_Waitall"} == {"messages.c"}
    profile = recording.advisor_read(folder)
    assert closed_accounts(profile)
    assert profile.has_measure("cpu_s")


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_message_arrives_before_it_is_sent(tmp_path: Path, library: str) -> None:
    """MPI_Waitsome and MPI_Testall complete messages at their end, however long they have waited."""
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler,), "late_arrivals.c")
    folder, _, err = record_run(tmp_path, *launcher, "-n", "2", str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    sent = np.sort(trace.time_s[trace.kind == Kind.SEND])
    received = np.sort(trace.time_s[trace.kind == Kind.IRECV])
    assert len(sent) == len(received) == 4
    assert (received > sent).all()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("binding", ["mpifh", "mpi", "f08"])
def test_fortran_is_recorded_at_its_lines(tmp_path: Path, library: str, binding: str) -> None:
    _, compiler, launcher, _ = LIBRARIES[library]
    flags = (compiler, "-fallow-argument-mismatch")
    program = compile_program(tmp_path, flags, f"ring_{binding}.f90")
    folder, _, err = record_run(tmp_path, *launcher, "-n", "2", str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    found = matching.match_messages(trace, nesting.pair_calls(trace))
    assert (len(found.send), found.unmatched_ends) == (400, 0)
    lines = (SOURCES / f"ring_{binding}.f90").read_text("ascii").splitlines()
    waits = [region for region in trace.regions if region.name == "MPI_Waitall"]
    assert [region.file for region in waits] == [f"ring_{binding}.f90"]
    assert "MPI_Waitall" in lines[(waits[0].line or 0) - 1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_killed_rank_leaves_what_it_did(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler,), "killed.c")
    folder, _, err = record_run(tmp_path, *launcher, "-n", "2", str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    assert len(matching.match_collectives(trace, nesting.pair_calls(trace))) == 5001
    died = next(note for note in recording.advisor_read(folder).notes if note.name == "recording died")
    assert "rank 1" in died.text
    assert (tmp_path / "home" / "advice.txt").read_text("utf-8").index("died") < 600  # at the top
    advice = " ".join((tmp_path / "home" / "advice.txt").read_text("utf-8").split())
    assert "Evidence" in advice
    assert "the recording died: rank 0 and rank 1" in advice


def test_a_limit_stops_all_ranks_at_the_same_time(tmp_path: Path) -> None:
    compiler, _, launcher, _ = LIBRARIES["Open MPI"]
    program = compile_program(tmp_path, (compiler,), "killed.c")
    folder, _, err = record_run(tmp_path, *launcher, "-n", "2", str(program), "40000", options=("--limit", "1 MiB"))
    assert "recorded into" in err, err
    assert max(path.stat().st_size for path in folder.glob("*.records")) <= 1 << 20
    trace = recording.read_trace(folder)
    assert 5000 < int((trace.kind == Kind.COLLECTIVE).sum()) / 2 < 16384
    assert matching.match_collectives(trace, nesting.pair_calls(trace)).unmatched <= 2
    profile = recording.advisor_read(folder)
    assert any(note.name == "recording cut short" for note in profile.notes)
    assert not any(note.name == "recording died" for note in profile.notes)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_teams_of_threads(tmp_path: Path, compiler: str) -> None:
    program = compile_program(tmp_path, (compiler, "-fopenmp"), "threads.c")
    folder, _, err = record_run(tmp_path, str(program), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    assert int((trace.kind == Kind.FORK).sum()) == int((trace.kind == Kind.JOIN).sum()) == 10
    entered = [trace.regions[region] for region in trace.region[trace.kind == Kind.ENTER].tolist()]
    parts = [region for region in entered if region.role == Role.OMP_PARALLEL]
    assert len(parts) == 20
    assert {region.file for region in parts} == {"threads.c"}
    barriers = [region for region in entered if region.name == "omp barrier"]
    assert len(barriers) == 20
    sleeping = next(region for region in entered if region.name == "usleep")
    assert (sleeping.role, sleeping.file) == (Role.OS, "threads.c")
    assert any(name.endswith("threads.out") for name in trace.files)
    profile = recording.advisor_read(folder)
    assert closed_accounts(profile)
    assert profile.paradigms == ("openmp",)
    for used, counted in used_and_counted_s(folder):
        assert used == pytest.approx(counted, rel=0.01, abs=0.005)


def test_sampled_functions_have_lines(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-fopenmp"), "threads.c")
    folder, _, err = record_run(tmp_path, str(program), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    work = next(region for region in profile.regions if region.name == "work")
    assert work.file == "threads.c"
    assert work.line in range(5, 10)
    assert profile.counts["samples"].sum() > 0
    assert any(note.name == "functions sampled" for note in profile.notes)


def test_a_thread_that_only_waits_for_others_is_no_processor(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-pthread"), "locks.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    first, second = (processor.thread for processor in profile.processors)
    # One of the two may be in the place of the first thread, which waits; it is left out where both begin at once.
    assert (first, second) in ((0, 1), (0, 2), (1, 2))
    assert closed_accounts(profile)
    assert all(region.threaded for region in profile.regions if region.name == "usleep")
    coded = attach_executable(profile, None, [tmp_path])
    assert coded.counts["code.lock_s"].sum() > 0.2 * coded.counts["code.all_s"].sum()


def test_a_child_that_waits_for_its_threads_is_no_processor(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-pthread"), "forked_team.c", "-lm")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    computed = sum(phase.arrays["cpu_s"].sum(axis=(0, 2)) for phase in profile.phases)
    assert len(profile.processors) == 2
    assert computed.min() > 0.5 * computed.max()


def test_threads_of_many_steps_share_files_and_processors(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-pthread"), "steps.c")
    folder, _, err = record_run(tmp_path, str(program), "150")
    assert "recorded into" in err, err
    (process,) = (read_process(file) for file in folder.glob("*.process"))
    assert len(process.threads) == 301
    assert len(list(folder.glob("*.records"))) < 100, "those that have ended leave their files to the next ones"
    profile = recording.advisor_read(folder)
    assert closed_accounts(profile)
    assert len(profile.processors) <= 4, "never more than two of them run at a time"
    assert profile.sum_by_region("cpu_s").sum() > 0


def test_threads_that_live_for_less_than_a_period_are_sampled(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-O1", "-g", "-pthread"), "brief_threads.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    profile = attach_executable(recording.advisor_read(folder), None, [tmp_path])
    rows = [row for row, region in enumerate(profile.regions) if region.name == "add_up"]
    assert profile.counts["samples"][rows].sum() > 0.5 * profile.counts["samples"].sum()
    assert profile.sum_by_region("cpu_s")[rows].sum() > 0.5 * profile.sum_by_region("cpu_s").sum()


def test_a_first_thread_that_works_runs_beside_the_others(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-pthread"), "locks.c")
    folder, _, err = record_run(tmp_path, str(program), "too")
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    assert [processor.thread for processor in profile.processors] == [0, 1, 2]
    sleeping = [region for region in profile.regions if region.name == "usleep"]
    assert sleeping
    assert all(region.threaded for region in sleeping)


def test_the_code_of_inlined_functions_is_found(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-O3"), "sweep.c", "-lm")
    folder, _, err = record_run(tmp_path, str(program), "20000")
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    assert profile.executable == str(program)
    assert str(profile.parameters["command"]).endswith("sweep 20000")
    found = attach_executable(profile, None, [tmp_path])
    assert found.counts["code.known_s"].sum() > 0.9 * found.counts["code.all_s"].sum()
    assert found.counts["code.division_s"].sum() > 0.5 * found.counts["code.all_s"].sum()
    program.unlink()
    assert not attach_executable(profile, None, [tmp_path]).counts.get("code.division_s")
    kept = attach_executable(profile, None, [tmp_path], [folder])
    assert kept.counts["code.division_s"].sum() == found.counts["code.division_s"].sum()


def test_short_writes_into_a_buffer_are_folded(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "prints.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    records = map_records(next(folder.glob("*.0.records")))
    folded = records[records["kind"] == FOLDED]
    assert folded["tag"].sum() > 50_000
    assert (folded["end_ns"] - folded["start_ns"]).max() > 100_000


def test_calls_that_a_buffer_serves_are_no_input(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-D_GNU_SOURCE"), "pieces.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    records = map_records(next(folder.glob("*.0.records")))
    trace = recording.read_trace(folder)
    names = [trace.regions[region].name for region in trace.region[trace.kind == Kind.ENTER].tolist()]
    assert 0 < names.count("fread") < 60, "one in 4,096 asks the kernel, and nothing is lost"
    assert 0 < names.count("fgets") < 60
    moved = records["size"][np.isin(records["kind"], (CALL, FOLDED)) & (records["event"] == Kind.IO)].sum()
    assert moved == 3 * 200_000, "written, read by characters, and read by lines"


def test_reading_the_random_device_is_no_input(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc",), "random_devices.c")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    assert [name.rsplit("/", 1)[-1] for name in trace.files] == ["numbers.out"]
    names = [trace.regions[region].name for region in trace.region[trace.kind == Kind.ENTER].tolist()]
    assert [names.count(name) for name in ("fopen", "fclose", "open", "read", "fread", "close")] == [1, 1, 0, 0, 0, 0]


def test_a_program_of_mpi4py(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="needs mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("needs mpirun")
    folder, _, err = record_run(tmp_path, "mpirun", "-n", "2", sys.executable, str(SOURCES / "ring.py"))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    assert matching.match_messages(trace, nesting.pair_calls(trace)).unmatched_ends == 0


def test_a_program_that_cannot_be_recorded_is_sampled(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-static", "-fopenmp"), "threads.c")
    for number, options in enumerate(((), ("--deep",))):
        folder, _, err = record_run(tmp_path / str(number), str(program), options=options, OMP_NUM_THREADS="2")
        assert "only sampled from outside: nothing was recorded" in err
        assert folder.is_file()
