"""Paraver traces of Extrae: the sums of Paraver's own program, BSC's model factors, and what was injected."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import paraver_files
import pytest
from paraver_files import HERE, event, message, trace_of, write

from advisor.analysis import bounds, efficiencies, gaps, soundness
from advisor.formats import paraver
from advisor.model.errors import InputError, UsageError
from advisor.model.records import Profile
from advisor.support import contract
from advisor.trace import nesting
from advisor.trace.events import Kind, Role

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.trace.events import Trace

CASES = sorted(path.parent.name for path in HERE.glob("*/expected.txt"))
PROGRAMS = [case for case in CASES if case != "faultlab-io256"]
FAULTS = [case for case in CASES if case.startswith("faultlab")]
MPI = (50000001, 50000002, 50000003)


def called(trace: Trace) -> dict[tuple[str, int], tuple[int, float]]:
    """Count and seconds of all calls by name and rank, those inside included."""
    calls = nesting.pair_calls(trace)
    found: dict[tuple[str, int], tuple[int, float]] = {}
    for number, region in enumerate(trace.regions):
        for place, location in enumerate(trace.locations):
            mine = (calls.region == number) & (calls.location == place)
            before = found.get((region.name, location.rank), (0, 0.0))
            seconds = float((calls.end_s - calls.start_s)[mine].sum())
            found[region.name, location.rank] = (before[0] + int(mine.sum()), before[1] + seconds)
    return found


@pytest.mark.parametrize("case", CASES)
def test_calls_and_functions_take_as_long_as_the_records_say(case: str) -> None:
    found = called(paraver.read_trace(trace_of(case)))
    expected = paraver_files.summed(case)
    assert expected
    for key, (count, nanoseconds) in expected.items():
        assert found.get(key, (0, 0.0)) == (count, pytest.approx(nanoseconds * 1e-9, abs=1e-9)), key


@pytest.mark.parametrize("case", CASES)
def test_calls_take_as_long_as_paraver_itself_says(case: str) -> None:
    found = called(paraver.read_trace(trace_of(case)))
    tables = paraver_files.paramedir(case)
    counts = tables["mpi_calls_count"] | tables.get("user_functions_count", {})
    times = tables["mpi_calls_time"] | tables.get("user_functions_time", {})
    assert counts.keys() == times.keys()
    for key in counts:
        assert found[key] == (counts[key], pytest.approx(times[key] * 1e-6, abs=0.0051e-6)), key
    assert paraver.advisor_read(trace_of(case)).actual_s == pytest.approx(
        next(iter(tables["runtime"].values())) * 1e-6, abs=0.0051e-6
    )


@pytest.mark.parametrize("case", CASES)
def test_messages_are_those_that_were_sent(case: str) -> None:
    trace = paraver.read_trace(trace_of(case))
    text = (HERE / case / "expected.txt").read_text()
    expected = re.findall(r"^(\d+)>(\d+)\t(\d+)\t(\d+)$", text, re.MULTILINE)
    rank = np.repeat([location.rank for location in trace.locations], np.diff(trace.first))
    for kinds, here, there in (((Kind.SEND, Kind.ISEND), 0, 1), ((Kind.RECV, Kind.IRECV), 1, 0)):
        rows = np.isin(trace.kind, kinds)
        assert rows.sum() == sum(int(line[2]) for line in expected)
        for line in expected:
            mine = rows & (rank == int(line[here]) - 1) & (trace.partner == int(line[there]) - 1)
            assert (mine.sum(), trace.size[mine].sum()) == (int(line[2]), int(line[3]))


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_wrong_with_recorded_traces(case: str) -> None:
    profile = paraver.advisor_read(trace_of(case))
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert not profile.notes
    assert profile.reader == "paraver"
    assert profile.has_phases
    assert profile.processors[0].host == "vm"


@pytest.mark.parametrize("case", CASES)
def test_efficiencies_are_those_of_the_model_factors(case: str) -> None:
    """Between start-up and shutdown, where they may differ by three things that are known.

    BSC's useful time leaves out calls that talk to nobody (MPI_Comm_rank), and the time in which the tracer writes; its
    trace ends with the first process that shuts down, the phases with the last. Its figures have two digits.
    """
    trace = paraver.read_trace(trace_of(case))
    profile = paraver.advisor_read(trace_of(case))
    factors = paraver_files.factors(case)
    found = {each.name: each.value for each in efficiencies.compute_efficiencies(profile)}
    local = [number for number, region in enumerate(trace.regions) if region.role in (Role.LOCAL, Role.TOOL)]
    calls = nesting.pair_calls(trace)
    beside = np.zeros(len(profile.processors))
    np.add.at(beside, calls.location, (calls.end_s - calls.start_s) * np.isin(calls.region, local))
    elapsed = factors["Runtime (us)"] * 1e-6
    ends = calls.start_s[np.array([trace.regions[region].role == Role.FINALIZE for region in calls.region])]
    slack = 100 * (beside.max() + float(np.ptp(ends))) / elapsed + 0.02
    assert slack < (1 if case in FAULTS else 15)
    for name, theirs in (("load_balance", "  Load balance"), ("parallel", "Parallel efficiency")):
        assert 100 * (found[name] or 0) == pytest.approx(factors[theirs.strip()], abs=slack), name
    assert 100 * (found["communication"] or 0) == pytest.approx(factors["Communication efficiency"], abs=slack)


@pytest.mark.parametrize("case", CASES)
def test_efficiencies_of_the_states_are_the_model_factors_to_the_last_digit(case: str) -> None:
    """The same two figures by BSC's own definition, from what this reader keeps of a trace."""
    trace = paraver.read_trace(trace_of(case))
    calls = nesting.pair_calls(trace)
    role = np.array([region.role for region in trace.regions])[calls.region]
    begin, finish = calls.end_s[role == Role.INIT].max(), calls.start_s[role == Role.FINALIZE].min()
    outer = (calls.anchor == np.arange(len(role))) | (role == Role.LOCAL)
    span = np.clip(calls.end_s, begin, finish) - np.clip(calls.start_s, begin, finish)
    useful = np.full(len(trace.locations), finish - begin)
    np.subtract.at(useful, calls.location[outer], span[outer])
    factors = paraver_files.factors(case)
    assert finish - begin == pytest.approx(factors["Runtime (us)"] * 1e-6, abs=0.2e-6)
    assert 100 * useful.mean() / useful.max() == pytest.approx(factors["Load balance"], abs=0.0051)
    assert 100 * useful.mean() / (finish - begin) == pytest.approx(factors["Parallel efficiency"], abs=0.0051)


def injected(case: str) -> dict[str, float]:
    """The gaps that the program was told to have: barriers end phase1 and phase2, a reduction the rest."""
    truth = json.loads((HERE / case / "truth.json").read_text())["injected_s"]
    loads = [np.array(truth[name]) for name in ("phase1", "phase2", "exchange") if name in truth]
    total = sum(load.sum(axis=1) for load in loads)
    multiphase = sum(load.sum(axis=1).max() for load in loads)
    dynamic = sum(load.max(axis=0).sum() for load in loads)
    return {"P": 0.0, "L": total.max() - total.mean(), "M'": multiphase - total.max(), "D": dynamic - multiphase}


@pytest.mark.parametrize("case", FAULTS)
def test_the_gaps_are_what_was_injected(case: str) -> None:
    profile = paraver.advisor_read(trace_of(case))
    found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile))}
    for name, seconds in injected(case).items():
        assert found[name] == pytest.approx(seconds, abs=0.05 * seconds + 0.005), name
    truth = json.loads((HERE / case / "truth.json").read_text())
    loop = sum(
        phase.duration_s.sum() for phase in profile.phases if phase.iterations > 1 and phase.duration_s is not None
    )
    assert loop == pytest.approx(truth["loop_wall_s"], abs=0.03 * truth["loop_wall_s"] + 0.005)


def test_every_iteration_is_found() -> None:
    profile = paraver.advisor_read(trace_of("faultlab-imbalance30"))
    assert [phase.iterations for phase in profile.phases] == [1, 20, 20, 20, 1, 1]
    assert profile.phases[1].name == "phase1 to MPI_Barrier"
    assert profile.phases[3].closed_by == "MPI_Allreduce"
    region = next(region for region in profile.regions if region.name == "phase1")
    assert (region.file, region.line) == ("/src/faultlab/fl2.c", 135)
    assert profile.program == "faultlab_extrae"


def test_input_and_output_by_file() -> None:
    trace = paraver.read_trace(trace_of("faultlab-io256"))
    rows = (trace.kind == Kind.IO) & (trace.size == 4096)
    rank = np.repeat([location.rank for location in trace.locations], np.diff(trace.first))
    for number in (0, 1):
        mine = rows & (rank == number)
        assert mine.sum() == 1280
        assert {trace.files[place] for place in trace.partner[mine]} == {f"/tmp/faultlab.{number}.dat"}
    profile = paraver.advisor_read(trace_of("faultlab-io256"))
    assert profile.counts["io_bytes"].sum(axis=0).tolist() == [5243064, 5242880]
    found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile))}
    written = [
        paraver_files.summed("faultlab-io256")[name, task].nanoseconds
        for name in ("write", "open", "close")
        for task in (0, 1)
    ]
    assert found["O"] == pytest.approx(sum(written) / 2e9, rel=0.02)


def test_a_cut_trace_and_a_simulated_one() -> None:
    cut = paraver.advisor_read(HERE / "faultlab-imbalance30" / "trace.cut.prv.gz")
    whole = paraver.advisor_read(trace_of("faultlab-imbalance30"))
    found = {each.name: each.seconds for each in bounds.compute_bounds(cut)}
    for bound in bounds.compute_bounds(whole)[4:-1]:
        assert found[bound.name] == pytest.approx(bound.seconds, abs=0.0005)
    simulated = paraver.advisor_read(trace_of("simulated"))
    assert simulated.actual_s == pytest.approx(0.534713341, abs=1e-9)
    assert [note.name for note in simulated.notes] == ["simulated"]


def test_both_ways_of_reading_give_the_same() -> None:
    pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    for case in CASES:
        plain, compiled = (paraver.read_trace(trace_of(case), way) for way in (False, True))
        assert plain.regions == compiled.regions
        for name in ("first", "time_s", "kind", "region", "comm", "partner", "tag", "size", "request"):
            assert np.array_equal(getattr(plain, name), getattr(compiled, name)), name


def test_what_is_claimed(tmp_path: Path) -> None:
    for case in (*CASES, "simulated"):
        assert paraver.advisor_sniff(trace_of(case)) == 1
        assert paraver.advisor_sniff(HERE / case) is None
        others = [path for path in (HERE / case).iterdir() if not re.search(r"\.prv(\.gz)?$", path.name)]
        assert not any(paraver.advisor_sniff(path) for path in others)
    for content in (b"", b"#Paraver", b"\x1f\x8b", b"\x1f\x8bjunk", b"#Dimemas (", b"\0" * 5000):
        (tmp_path / "odd.prv").write_bytes(content)
        assert paraver.advisor_sniff(tmp_path / "odd.prv") is None


def rows(trace: Trace, location: int) -> list[tuple[Any, ...]]:
    part = slice(int(trace.first[location]), int(trace.first[location + 1]))
    names = [trace.regions[region].name if region >= 0 else "" for region in trace.region[part]]
    columns = (
        [Kind(kind).name for kind in trace.kind[part]],
        names,
        (trace.time_s[part] * 1e9).round().astype(int).tolist(),
    )
    return list(zip(*columns, strict=True))


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
