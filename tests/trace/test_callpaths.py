"""Call-path profiles: nothing is lost or counted twice, and waiting is told from the rest as docs/traces.md says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from advisor.analysis import gaps, soundness
from advisor.analysis.bounds import compute_bounds
from advisor.extension.host import load_plugins
from advisor.model.errors import InputError
from advisor.model.records import Processor, Profile
from advisor.output.advice_document import build_advice_document, to_json
from advisor.pipeline import Options, study_run
from advisor.trace.callpaths.profile import from_call_paths
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role

TWO = (Processor(0), Processor(1))
TREE = (
    CallPathNode("main"),
    CallPathNode("work", file="w.c", line=3, parent=0),
    CallPathNode("MPI_Barrier", Role.BARRIER, parent=0),
    CallPathNode("MPI_Recv", Role.RECV, parent=1),
    CallPathNode("MPI_Init", Role.INIT, parent=0),
)
WALL = np.array([[0.1, 0.1], [5.0, 4.0], [0.05, 1.05], [0.2, 0.3], [0.1, 0.1]])
VISITS = np.array([[1.0, 1], [10, 10], [10, 10], [5, 5], [1, 1]])


def paths(nodes: tuple[CallPathNode, ...] = TREE, processors: tuple[Processor, ...] = TWO, **more: object) -> CallPaths:
    return CallPaths("heat", "1", "test", processors, nodes, **more)  # type: ignore[arg-type]


def total(profile: Profile, name: str) -> list[list[float]]:
    return profile.phases[0].arrays[name][:, :, 0].tolist()


def test_the_shortest_call_is_the_cost_and_the_rest_is_waiting() -> None:
    profile = from_call_paths(paths(wall_s=WALL, visits=VISITS), "x")
    soundness.check_profile(profile)
    assert [region.name for region in profile.regions] == ["main", "work", "MPI_Barrier", "MPI_Recv", "MPI_Init"]
    assert total(profile, "wait_s")[2:4] == [[0.0, pytest.approx(1.0)], [0.0, pytest.approx(0.1)]]
    assert total(profile, "sync_s")[2] == pytest.approx([0.05, 0.05])
    assert total(profile, "transfer_s")[3] == pytest.approx([0.2, 0.2])
    assert profile.status["wait_s"] == "estimated"
    assert profile.outside["start-up"].tolist() == [0.1, 0.1]
    assert profile.outside["not recorded"].tolist() == pytest.approx([0.1, 0.0])
    assert profile.actual_s == pytest.approx(5.55)


def test_bounds_and_gaps_of_a_profile_without_phases() -> None:
    profile = from_call_paths(paths(wall_s=WALL, visits=VISITS), "x")
    bounds = {bound.name: bound.seconds for bound in compute_bounds(profile)}
    assert bounds["IPCO"] == pytest.approx(4.8)
    assert bounds["IPCOL"] == pytest.approx(5.3)
    assert bounds["IPCOLM"] is None
    names = [gap.name for gap in gaps.attribute_gaps(profile, compute_bounds(profile))]
    assert names == ["P+C'", "O", "L", "M'+D+S'+W+X"]


def test_causes_name_calls_and_callers() -> None:
    profile = from_call_paths(paths(wall_s=WALL, visits=VISITS), "x")
    causes = profile.causes
    assert causes is not None
    waits = [
        (profile.regions[causes.call[n]].name, profile.regions[causes.caller[n]].name, causes.kinds[causes.kind[n]])
        for n in np.flatnonzero(causes.category == 1)
    ]
    assert waits == [("MPI_Barrier", "main", "barrier"), ("MPI_Recv", "work", "unmatched")]
    assert causes.seconds.sum() == pytest.approx(1.6)


def test_a_shortest_single_call_that_the_tool_recorded_counts() -> None:
    shortest = np.full((5, 2), math.nan)
    shortest[2] = 0.001, 0.02
    profile = from_call_paths(paths(wall_s=WALL, visits=VISITS, shortest_s=shortest), "x")
    assert total(profile, "sync_s")[2] == pytest.approx([0.01, 0.01])
    assert total(profile, "wait_s")[2] == pytest.approx([0.04, 1.04])


def test_waiting_that_the_tool_measured_is_not_estimated() -> None:
    late = np.zeros((5, 2))
    late[3, 1] = 0.25
    profile = from_call_paths(paths(wall_s=WALL, visits=VISITS, waits={"late sender": late}), "x")
    assert total(profile, "wait_s")[3] == [0.0, 0.25]
    assert total(profile, "transfer_s")[3] == pytest.approx([0.2, 0.05])
    assert profile.status["wait_s"] == "measured"
    assert profile.causes is not None
    assert profile.causes.kinds[profile.causes.kind[profile.causes.category == 1][0]] == "late sender"


def test_what_a_library_does_inside_belongs_to_its_call() -> None:
    nodes = (
        CallPathNode("main"),
        CallPathNode("MPI_File_write", Role.IO, parent=0),
        CallPathNode("memcpy", parent=1),
        CallPathNode("write", Role.IO, parent=2),
    )
    profile = from_call_paths(paths(nodes, wall_s=np.array([[1.0, 1], [0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])), "x")
    assert [region.name for region in profile.regions] == ["main", "MPI_File_write"]
    assert total(profile, "io_s")[1] == pytest.approx([0.6, 0.6])


def test_what_is_done_while_holding_a_lock_is_work() -> None:
    nodes = (CallPathNode("main"), CallPathNode("critical", Role.OMP_LOCK, parent=0), CallPathNode("update", parent=1))
    profile = from_call_paths(paths(nodes, wall_s=np.array([[1.0, 1], [0.1, 0.3], [0.5, 0.5]])), "x")
    assert [region.name for region in profile.regions] == ["main", "critical", "update"]
    assert total(profile, "wait_s")[1] == pytest.approx([0.0, 0.2])


def test_threads_are_charged_with_what_runs_in_parallel_regions() -> None:
    threads = (Processor(0), Processor(0, 1))
    nodes = (
        CallPathNode("main"),
        CallPathNode("parallel", Role.OMP_PARALLEL, parent=0),
        CallPathNode("loop", Role.OMP_WORK, parent=1),
    )
    profile = from_call_paths(
        paths(nodes, threads, wall_s=np.array([[2.0, 0.0], [0.1, 0.0], [3.0, 2.0]]), actual_s=6.0), "x"
    )
    assert [(region.name, region.threaded) for region in profile.regions] == [
        ("main", False), ("parallel", True), ("loop", True),
    ]  # fmt: skip
    assert profile.outside["idle"].tolist() == [0.0, 4.0]
    assert profile.outside["not recorded"] == pytest.approx([0.9, 0.0])
    assert profile.paradigms == ("openmp",)


def test_cpu_times_leave_what_the_system_took() -> None:
    cpu = np.array([[0.1, 0.1], [4.5, 4.0], [0.05, 1.0], [0.2, 0.3], [0.1, 0.1]])
    profile = from_call_paths(paths(wall_s=WALL, visits=VISITS, cpu_s=cpu), "x")
    assert total(profile, "cpu_s") == [[0.1, 0.1], [4.5, 4.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert total(profile, "os_s")[1] == pytest.approx([0.5, 0.0])


def test_counts_alone_are_a_run_without_times() -> None:
    profile = from_call_paths(paths(actual_s=math.nan, counts={"instructions": VISITS}), "x")
    soundness.check_profile(profile)
    advice = study_run(profile, Options(machine="host"), load_plugins()).advice
    assert advice.verdict == "insufficient evidence"
    assert [note.name for note in advice.grade.notes] == ["no run time"]
    assert all(bound.seconds is None and bound.reason for bound in advice.bounds)
    assert build_advice_document(advice)["profile"]["actual_s"] is None
    assert "NaN" not in to_json(build_advice_document(advice))


def test_cpu_times_alone_give_the_mean_computation() -> None:
    profile = from_call_paths(paths(actual_s=math.nan, cpu_s=WALL), "x")
    soundness.check_profile(profile)
    advice = study_run(profile, Options(), load_plugins()).advice
    known = {bound.name: bound.seconds for bound in advice.bounds if bound.seconds is not None}
    assert known == {"I": pytest.approx((5.1 + 4.1) / 2)}
    assert advice.gaps == ()


def test_an_empty_profile_is_refused() -> None:
    with pytest.raises(InputError, match="no regions"):
        from_call_paths(paths(()), "x")
    with pytest.raises(InputError, match="no processors"):
        from_call_paths(paths(TREE, ()), "x")
    with pytest.raises(InputError, match="no times"):
        from_call_paths(paths(wall_s=np.zeros((5, 2))), "x")


ROLES = st.sampled_from([role for role in Role if role != Role.ROOT])


@st.composite
def call_paths(draw: st.DrawFn) -> CallPaths:
    roles = draw(st.lists(ROLES, min_size=1, max_size=8))
    nodes = tuple(
        CallPathNode(f"{role.name}{n % 3}", role, parent=draw(st.integers(-1, n - 1))) for n, role in enumerate(roles)
    )
    processors = tuple(Processor(q // 2, q % 2) for q in range(draw(st.integers(1, 5))))
    shape = (len(nodes), len(processors))
    seconds = npst.arrays(np.float64, shape, elements=st.floats(0, 1e3, allow_subnormal=False))
    visits = npst.arrays(np.float64, shape, elements=st.integers(0, 50).map(float))
    wall = draw(seconds)
    wall[0] += 1e-3
    return paths(nodes, processors, wall_s=wall, visits=draw(st.none() | visits), cpu_s=draw(st.none() | seconds))


@given(call_paths())
def test_every_second_is_in_one_place(given_paths: CallPaths) -> None:
    profile = from_call_paths(given_paths, "x")
    soundness.check_profile(profile)
    phase = profile.phases[0]
    whole = phase.arrays["wall_s"].sum(axis=(0, 2)) + sum(profile.outside.values(), np.zeros(1))
    assert whole == pytest.approx(np.full(len(profile.processors), profile.actual_s))
    parts = sum(phase.arrays[name] for name in ("wait_s", "sync_s", "transfer_s", "io_s"))
    assert (parts <= phase.arrays["wall_s"] * (1 + 1e-9) + 1e-9).all()
    assert all((phase.arrays[name] >= 0).all() for name in ("wait_s", "sync_s", "transfer_s", "io_s"))
    if profile.causes is not None:
        assert profile.causes.seconds.sum() == pytest.approx(float(np.sum(parts)))


@given(call_paths())
def test_the_order_of_processors_changes_nothing(given_paths: CallPaths) -> None:
    order = np.arange(len(given_paths.processors))[::-1]
    assert given_paths.wall_s is not None
    turned = paths(
        given_paths.nodes,
        tuple(given_paths.processors[q] for q in order),
        wall_s=given_paths.wall_s[:, order],
        visits=None if given_paths.visits is None else given_paths.visits[:, order],
    )
    straight = paths(given_paths.nodes, given_paths.processors, wall_s=given_paths.wall_s, visits=given_paths.visits)
    one, other = from_call_paths(straight, "x"), from_call_paths(turned, "x")
    seconds = [{b.name: b.seconds for b in compute_bounds(profile)} for profile in (one, other)]
    assert seconds[0] == pytest.approx(seconds[1], abs=1e-9)
