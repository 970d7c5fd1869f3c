"""Several runs of MPI in one recording: told apart, one of them chosen, and the others named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from handmade_recordings import PROCESS, write_rank

from advisor.formats import recording
from advisor.formats.recording.recorded_threads import RecordedThread
from advisor.formats.recording.worlds import split_worlds
from advisor.trace.recordings.layout import SAMPLE
from advisor.trace.recordings.processes import Process, ThreadSpan

if TYPE_CHECKING:
    from pathlib import Path


def start_process(stem: Path, parent: int, rank: int, ranks: int, begin_s: float) -> Process:
    return Process(stem / f"{begin_s}", parent=parent, host="node", rank=rank, ranks=ranks, real_s=begin_s)


def test_runs_one_after_the_other_are_worlds_of_their_own(tmp_path: Path) -> None:
    started = [start_process(tmp_path, 1, rank, 3, 10.0 * run + rank) for run in (1, 2, 3) for rank in (2, 0, 1)]
    worlds = split_worlds(reversed(started))
    assert [[one.rank for one in world] for world in worlds] == [[0, 1, 2]] * 3
    assert [{one.real_s // 10 for one in world} for world in worlds] == [{1.0}, {2.0}, {3.0}]


def test_runs_side_by_side_are_told_apart_by_their_launchers(tmp_path: Path) -> None:
    order = [(7, 0), (8, 1), (7, 1), (8, 0)]
    started = [start_process(tmp_path, parent, rank, 2, float(n)) for n, (parent, rank) in enumerate(order)]
    assert [[(one.parent, one.rank) for one in world] for world in split_worlds(started)] == [
        [(7, 0), (7, 1)],
        [(8, 0), (8, 1)],
    ]


def test_the_parts_of_a_run_on_several_hosts_are_one_world(tmp_path: Path) -> None:
    started = [
        replace(start_process(tmp_path, host, 2 * host + core, 4, 10.0 * run + host), host=str(host))
        for run in (1, 2) for host in (0, 1) for core in (0, 1)
    ]  # fmt: skip
    assert [[one.rank for one in world] for world in split_worlds(started)] == [[0, 1, 2, 3]] * 2


def test_ranks_that_each_start_behind_a_shell_of_their_own_are_one_world(tmp_path: Path) -> None:
    started = [start_process(tmp_path, 100 + rank, rank, 3, 1.0 + rank / 10) for rank in (2, 1, 0)]
    assert [[one.rank for one in world] for world in split_worlds(started)] == [[0, 1, 2]]


def test_spawned_processes_are_no_part_of_the_run_that_spawned_them(tmp_path: Path) -> None:
    started = [start_process(tmp_path, 1, *who) for who in ((0, 1, 1.0), (0, 2, 2.0), (1, 2, 2.1))]
    assert [len(world) for world in split_worlds(started)] == [1, 2]


def test_of_several_runs_the_one_that_computed_most_is_read(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_rank(tmp_path, rank)
        for file in sorted(tmp_path.glob(f"node.{10 + rank}.*")):
            file.with_name(file.name.replace("node.", "node.9")).write_bytes(file.read_bytes())
        later = tmp_path / f"node.9{10 + rank}.process"
        text = later.read_text(encoding="ascii").replace("1700000000.5", "1700000009.5").replace("/app", "/small")
        later.write_text(text.replace("thread-end 0 9000 5100", "thread-end 0 9000 900"), encoding="ascii")
    profile = recording.advisor_read(tmp_path)
    assert (profile.program, len(profile.processors)) == ("app", 2)
    told = next(note for note in profile.notes if note.name == "other runs")
    assert "another run of MPI (small)" in told.text
    assert told.penalty == pytest.approx(0.05)


def start_child(folder: Path, pid: int, parent: int, used_s: float, children_s: float = 0.0) -> None:
    """A recorded process of another program, that ``parent`` started."""
    text = (
        PROCESS.replace("rank {rank} 2\n", "")
        .replace("communicator 1 0-1\n", "")
        .replace("pid 10 1", f"pid {pid} {parent}")
        .replace("/app", "/helper")
    )
    text = text.replace("thread-end 0 9000 5100", f"thread-end 0 9000 {100 + round(used_s * 1e9)}")
    (folder / f"node.{pid}.process").write_text(
        text.replace("end\n", f"children {children_s}\nend\n"), encoding="ascii"
    )
    (folder / f"node.{pid}.0.records").write_bytes((folder / "node.10.0.records").read_bytes())


@pytest.mark.parametrize(
    ("children_s", "share", "penalty"), [(7e-6, "44%", 0.3), (9e-6, "47%", 0.3), (30e-6, "75%", 1.0)]
)
def test_other_programs_that_were_started_are_named_and_missed_most_where_they_are_not_recorded(
    tmp_path: Path, children_s: float, share: str, penalty: float
) -> None:
    """Both ranks used 5 us each; of what their children used, 8 us are those of three recorded processes."""
    for rank in (0, 1):
        path = write_rank(tmp_path, rank).with_name(f"node.{10 + rank}.process")
        text = path.read_text(encoding="ascii").replace("pid 10 1", f"pid {10 + rank} 1")
        path.write_text(text.replace("end\n", f"children {children_s / 2}\nend\n"), encoding="ascii")
    start_child(tmp_path, 50, 11, 4e-6, 3e-6)
    start_child(tmp_path, 51, 50, 3e-6)
    start_child(tmp_path, 52, 52, 1e-6)  # its own parent, in a file that is damaged
    told = [note for note in recording.advisor_read(tmp_path).notes if note.name == "other programs started"]
    assert [note.penalty for note in told] == [penalty]
    assert told[0].text.startswith(f"{share} of the CPU time")
    assert "(helper)" in told[0].text


@pytest.mark.parametrize(("taken_by_others", "is_told"), [(None, False), (0, False), (1000, True)])
def test_other_programs_that_wait_are_not_missed_unless_it_is_for_a_core(
    tmp_path: Path, taken_by_others: int | None, is_told: bool
) -> None:
    """Both ranks live for 8 us; a child of each used 0.3 us of CPU time. Others had all cores then, or none."""
    machine = (
        ""
        if taken_by_others is None
        else f"machine begin 0{' 0' * 7} 100\nmachine end {taken_by_others}{' 0' * 7} 100\n"
    )
    for rank in (0, 1):
        path = write_rank(tmp_path, rank).with_name(f"node.{10 + rank}.process")
        text = path.read_text(encoding="ascii").replace("pid 10 1", f"pid {10 + rank} 1")
        text = text.replace("thread-end 0 9000 5100", "thread-end 0 9000 200")
        path.write_text(text.replace("end\n", f"{machine}children 3e-7\nend\n"), encoding="ascii")
    told = [note for note in recording.advisor_read(tmp_path).notes if note.name == "other programs started"]
    assert bool(told) == is_told


def test_a_killed_process_has_used_what_its_last_sample_says(tmp_path: Path) -> None:
    samples = np.zeros(64, dtype=SAMPLE)
    samples["time_ns"][:3], samples["cpu_ns"][:3] = (1000, 2000, 3000), (400, 800, 1200)
    (tmp_path / "one.0.samples").write_bytes(samples.tobytes())
    killed = Process(tmp_path / "one", threads={0: ThreadSpan(0, 900, 100), 1: ThreadSpan(1, 900, 50, 2000, 250)})
    assert killed.used_s == pytest.approx((1200 - 100 + 250 - 50) / 1e9)
    thread = RecordedThread(killed, killed.threads[0], 0, samples[:0], samples[:3], np.zeros((0, 16), np.uint64), 0)
    assert thread.used_s == pytest.approx((1200 - 100) / 1e9)
    assert replace(thread, samples=samples[:0]).used_s == 0
    killed.threads[2] = ThreadSpan(2, 2500, 30, file=0, first=(1, 1))
    assert killed.used_s == pytest.approx((1200 - 30 + 250 - 50) / 1e9), "the last samples are those of who took over"
