"""Paraver traces of Extrae: the sums of Paraver's own program, BSC's model factors, and what was injected."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import paraver_files
import pytest
from paraver_files import HERE, trace_of

from advisor.analysis import bounds, efficiencies, gaps, soundness
from advisor.formats import paraver
from advisor.model.records import Profile
from advisor.support import contract
from advisor.trace import nesting
from advisor.trace.events import Kind, Role

if TYPE_CHECKING:
    from pathlib import Path


from paraver_rows import called

CASES = sorted(path.parent.name for path in HERE.glob("*/expected.txt"))
PROGRAMS = [case for case in CASES if case != "faultlab-io256"]
FAULTS = [case for case in CASES if case.startswith("faultlab")]
MPI = (50000001, 50000002, 50000003)


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
