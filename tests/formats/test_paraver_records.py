"""Paraver traces written by hand: what each kind of record becomes, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import paraver_files
import pytest
from paraver_files import event, message, trace_of, write

from advisor.analysis import soundness
from advisor.formats import paraver
from advisor.model.errors import InputError, UsageError
from advisor.trace.events import Kind, Role

if TYPE_CHECKING:
    from pathlib import Path


from paraver_rows import called, rows

P2P, JOINT, OTHER, FUNCTION, LINE = 50000001, 50000002, 50000003, 60000019, 60000119


def test_functions_nest_and_messages_lie_in_their_calls(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        event(1, 10, (FUNCTION, 1), (LINE, 1)),
        event(1, 20, (FUNCTION, 2), (LINE, 2)),
        event(1, 30, (P2P, 3)),
        message(1, 30, 2, 5, 80, 4096, 7),
        event(1, 40, (P2P, 0)),
        event(1, 50, (FUNCTION, 0), (LINE, 0)),
        event(1, 1000, (FUNCTION, 0), (LINE, 0)),
        event(2, 5, (P2P, 4)),
        event(2, 9, (P2P, 0)),
        event(2, 60, (P2P, 5)),
        event(2, 80, (P2P, 0)),
    )
    trace = paraver.read_trace(path)
    long = "std::map<int, T>::operator[](int&&) [with T = int] [clone .cold]"
    assert rows(trace, 0) == [
        ("ENTER", "the program", 10),
        ("ENTER", "solve", 10),
        ("ENTER", long, 20),
        ("ENTER", "MPI_Isend", 30),
        ("ISEND", "", 30),
        ("LEAVE", "MPI_Isend", 40),
        ("LEAVE", long, 50),
        ("LEAVE", "solve", 1000),
        ("LEAVE", "the program", 1000),
    ]
    assert [kind for kind, *_ in rows(trace, 1)] == [
        "ENTER", "ENTER", "IRECV_POST", "LEAVE", "ENTER", "IRECV", "LEAVE", "LEAVE",
    ]  # fmt: skip
    received = trace.kind == Kind.IRECV
    assert (trace.partner[received], trace.size[received], trace.tag[received]) == (0, 4096, 7)
    assert trace.request[received] == trace.request[trace.kind == Kind.IRECV_POST]
    assert {(region.name, region.file, region.line) for region in trace.regions if region.role == Role.USER} == {
        ("solve", "/src/solve.c", 12),
        (long, None, None),
    }


def test_a_root_is_known_to_all_and_members_to_each(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        event(1, 10, (JOINT, 7), (50100001, 0), (50100002, 8), (50100004, 2)),
        event(2, 10, (JOINT, 7), (50100001, 8), (50100002, 0), (50100003, 1), (50100004, 2)),
        event(1, 1000, (JOINT, 0)),
        event(2, 1000, (JOINT, 0)),
        comms=("c:1:1:1:1", "c:1:2:2:2:1"),
    )
    trace = paraver.read_trace(path)
    joint = trace.kind == Kind.COLLECTIVE
    assert trace.partner[joint].tolist() == [1, 1]
    assert [trace.communicators[number] for number in trace.comm[joint]] == [(1, 0), (1, 0)]
    assert (trace.time_s[joint] == 1e-6).all()


def test_threads_work_in_the_parallel_regions_of_the_first_one(tmp_path: Path) -> None:
    def part(thread: int, begin: int, end: int) -> list[str]:
        return [
            event(1, begin, (60000018, 1), (60000118, 1), thread=thread),
            event(1, end, (60000005, 1), thread=thread),
            event(1, 480, (60000005, 0), thread=thread),
            event(1, 490, (60000018, 0), (60000118, 0), thread=thread),
        ]

    path = write(
        tmp_path,
        event(1, 0, (40000001, 1)),
        event(1, 0, (40000001, 1), thread=2),
        event(1, 100, (60000001, 1)),
        *part(1, 110, 200),
        *part(2, 120, 450),
        event(1, 500, (60000001, 0)),
        event(1, 1000, (40000001, 0)),
        event(1, 1000, (40000001, 0), thread=2),
        tasks=(2,),
        comms=(),
    )
    trace = paraver.read_trace(path)
    assert [kind for kind, *_ in rows(trace, 0)].count("FORK") == 1
    profile = paraver.advisor_read(path)
    assert [(each.rank, each.thread) for each in profile.processors] == [(0, 0), (0, 1)]
    assert profile.paradigms == ("openmp",)
    region = [each.name for each in profile.regions].index("OpenMP barrier")
    waited = sum(phase.arrays["wait_s"][phase.regions == region].sum(axis=(0, 2)) for phase in profile.phases)
    assert waited == pytest.approx([250e-9, 0.0])
    assert next(each for each in profile.regions if each.name == "loop._omp_fn.0").line == 20


NEWER = """\
EVENT_TYPE
0 60100002  OpenMP Parallel
VALUES
0 End
1 PARALLEL REGION Fork/Join
2 PARALLEL REGION

EVENT_TYPE
0 60100004 OpenMP Synchronization
VALUES
0 End
1 BARRIER
2 JOIN (wait)
9 CRITICAL

EVENT_TYPE
0 60100007 OpenMP Outlined function
VALUES
0 End
1 main._omp_fn.0

EVENT_TYPE
0 60100107 OpenMP Outlined function at line/file
VALUES
0 End
1 loop.c:7 [/src/loop.c:7, /bin/loop]

"""


def test_threads_of_newer_versions_are_told_by_the_names_in_the_pcf(tmp_path: Path) -> None:
    parallel, sync, outlined, line = 60100002, 60100004, 60100007, 60100107

    def part(thread: int, begin: int, end: int) -> list[str]:
        return [
            event(1, begin, (parallel, 2), (outlined, 1), (line, 1), thread=thread),
            event(1, end, (outlined, 0), (line, 0), (sync, 2), thread=thread),
            event(1, 480, (sync, 0), (parallel, 0), thread=thread),
        ]

    path = write(
        tmp_path,
        event(1, 0, (40000001, 1)),
        event(1, 0, (40000001, 1), thread=2),
        event(1, 100, (parallel, 1)),
        *part(1, 110, 200),
        *part(2, 120, 450),
        event(1, 500, (parallel, 0)),
        event(1, 1000, (40000001, 0)),
        event(1, 1000, (40000001, 0), thread=2),
        tasks=(2,),
        comms=(),
        names=NEWER,
    )
    trace = paraver.read_trace(path)
    assert [kind for kind, *_ in rows(trace, 0)] == [
        "ENTER", "FORK", "ENTER", "ENTER", "LEAVE", "ENTER", "LEAVE", "LEAVE", "JOIN", "LEAVE",
    ]  # fmt: skip
    profile = paraver.advisor_read(path)
    region = [each.name for each in profile.regions].index("OpenMP implicit barrier")
    waited = sum(phase.arrays["wait_s"][phase.regions == region].sum(axis=(0, 2)) for phase in profile.phases)
    assert waited == pytest.approx([250e-9, 0.0])
    work = next(each for each in profile.regions if each.name == "main._omp_fn.0")
    assert (work.file, work.line, work.threaded) == ("/src/loop.c", 7, True)


def test_own_events_enclose_calls_or_are_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        event(1, 10, (1000, 1), (2000, 300)),
        event(1, 20, (FUNCTION, 1), (LINE, 1)),
        event(1, 30, (2000, 310), (42000050, 12345)),
        event(1, 40, (FUNCTION, 0), (LINE, 0)),
        event(1, 50, (1000, 0)),
        event(1, 60, (1000, 2)),
        event(1, 1000, (1000, 0)),
        tasks=(1,),
        comms=(),
    )
    trace = paraver.read_trace(path)
    assert called(trace)["step", 0] == (2, pytest.approx(980e-9))
    notes = {note.name: note.text for note in trace.notes}
    assert "temperature" in notes["events not used"]
    assert notes["counters not used"] == "hardware counter values ignored: 1"


def test_without_names_the_states_tell_what_threads_do(tmp_path: Path) -> None:
    source = trace_of("faultlab-imbalance30")
    (tmp_path / "trace.prv").write_bytes(source.read_bytes())
    profile = paraver.advisor_read(tmp_path / "trace.prv")
    soundness.check_profile(profile)
    assert "calls not named" in {note.name for note in profile.notes}
    expected = paraver_files.paramedir("faultlab-imbalance30")["timings"]
    found = called(paraver.read_trace(tmp_path / "trace.prv"))
    for task in (0, 1):
        for ours, theirs in (("send and receive", "Send Receive"), ("group communication", "Group Communication")):
            assert found[ours, task][1] == pytest.approx(expected[theirs, task] * 1e-6, abs=0.0051e-6)


def test_several_applications_and_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "run.prv"
    path.write_text(
        "#Paraver (01/01/2026 at 00:00):50:0:2:1(1:1),0:2(1:1,1:1),1\nc:2:1:2:1:2\n"
        "2:0:1:1:1:0:60000019:1\n2:0:2:2:1:10:60000019:1\n2:0:1:1:1:50:60000019:0\n2:0:2:2:1:50:60000019:0\n"
    )
    (tmp_path / "run.pcf").write_text(paraver_files.NAMES, errors="surrogateescape")
    trace = paraver.read_trace(path)
    assert [location.rank for location in trace.locations] == [0, 1, 2]
    assert trace.communicators == ((1, 2),)
    assert called(trace)["solve", 2] == (1, pytest.approx(40e-6))


def test_compiled_reading_needs_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paraver.hooks, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match="numba"):
        paraver.read_trace(write(tmp_path, event(1, 5, (1000, 1))), compiled=True)


@pytest.mark.parametrize(
    ("line", "reason", "place"),
    [
        ("1:1:1:1:1:0:5", "no record", "line 3"),
        ("2:1:1:1:1:5:1000", "no record", "line 3"),
        ("9:1:1:1:1:5:1000", "no record", "line 3"),
        ("2:1:1:3:1:5:1000:1", "no such application, task or thread", "line 3"),
        ("2:1:1:1:2:5:1000:1", "no such application, task or thread", "line 3"),
        ("2:1:1:1:1:1001:1000:1", "outside of the trace", "line 3"),
        ("2:1:1:1:1:-1:1000:1", "outside of the trace", "line 3"),
        ("2:1:1:1:1:x:1000:1", "numbers between colons", "line 3"),
        ("2:1:1:1:1::1000:1", "numbers between colons", "line 3"),
        ("1:1:1:1:1:9:5:1", "ends before it begins", "line 3"),
        ("3:1:1:1:1:5:6:1:1:2:1:9:8:10:0", "impossible message", "line 3"),
        ("# a comment\n2:1:1:1:1:1001:1000:1", "outside of the trace", "line 4"),
        ("2:1:1:1:1:9:1000:1\n2:1:1:1:1:8:1000:0", "time runs backwards", "thread 1.1.1, time 8"),
    ],
)
def test_damaged_records_are_refused(tmp_path: Path, line: str, reason: str, place: str) -> None:
    with pytest.raises(InputError, match=reason) as refused:
        paraver.read_trace(write(tmp_path, line))
    assert refused.value.place == place


@pytest.mark.parametrize(
    "header",
    [
        "#Paraver (a):10_ns:1(1):1:2(1:1),1",
        "#Paraver (a):10_ns:1(1):2:1(1:1),1",
        "#Paraver (a):10_ns:1(1):1:1(0:1),1",
        "#Paraver (a):10_ns:1(1):1:1(2000000:1),1",
        "#Paraver (a):10_weeks:1(1):1:1(1:1),1",
        "#Paraver (a):10_ns",
    ],
)
def test_damaged_headers_are_refused(tmp_path: Path, header: str) -> None:
    (tmp_path / "run.prv").write_text(f"{header}\n2:1:1:1:1:5:1000:1\n")
    with pytest.raises(InputError) as refused:
        paraver.read_trace(tmp_path / "run.prv")
    assert refused.value.place == "line 1"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        event(1, 0, (40000001, 1)),
        event(1, 10, (P2P, 77)),
        event(1, 20, (JOINT, 8), (50100004, 9)),
        event(1, 30, (P2P, 0)),
        event(1, 40, (OTHER, 0)),
        message(1, 35, 2, 40, 50),
        ticks=10**9,
        comms=(),
    )
    text = path.read_text().replace("),0\n", "),3\n")
    path.write_text(text)
    found = {note.name for note in paraver.read_trace(path).notes}
    assert found == {
        "trace cut off", "ends missing", "names missing", "calls not whole", "messages outside of calls",
        "communicators unknown", "communicators missing", "types missing",
    }  # fmt: skip
