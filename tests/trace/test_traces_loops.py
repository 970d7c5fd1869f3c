"""Compiled loops over events give what plain numpy gives."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_traces_nesting import nested_lines
from test_traces_windows import assert_same, programs, threaded_programs
from trace_builder import Line, build

from advisor.formats import otf2
from advisor.trace import causes, matching, segmentation, time_pieces
from advisor.trace.categories import CategorySeconds
from advisor.trace.events import Kind
from advisor.trace.nesting import pair_calls
from advisor.trace.phases import RunDivision
from advisor.trace.profile import from_trace
from advisor.trace.tables import CellLayout
from advisor.trace.waits import WaitTimes

if TYPE_CHECKING:
    from advisor.trace.events import Trace

pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")

ARCHIVES = sorted((Path(__file__).parents[1] / "profiles" / "otf2").rglob("*.otf2"))


def assert_equal(found: object, expected: object) -> None:
    """Assert that two records hold the same numbers, to the bit, of the same types."""
    for field in dataclasses.fields(type(expected)):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        np.testing.assert_array_equal(one, other, err_msg=field.name, strict=True)


@given(nested_lines(0), nested_lines(1))
@settings(deadline=None)
def test_calls(left: Line, right: Line) -> None:
    trace = build(left, right)
    assert_equal(pair_calls(trace, compiled=True), pair_calls(trace))


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(("main", "work", "MPI_Finalize"))), max_size=20))
@settings(deadline=None)
def test_calls_that_do_not_nest(moves: list[tuple[bool, str]]) -> None:
    line = Line(0)
    for now, (entered, name) in enumerate(moves):
        line.enter(now, name) if entered else line.leave(now, name)
    trace = build(Line(0).call(0.0, 1.0, "work"), line)
    assert_equal(pair_calls(trace, compiled=True), pair_calls(trace))


@given(st.integers(0, 8), st.lists(st.tuples(*[st.integers(-1, 1)] * 3), max_size=16))
@settings(deadline=None)
def test_messages_in_order(sends: int, rows: list[tuple[int, int, int]]) -> None:
    ends, tag, size = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
    columns = ends, tag.astype(np.int32), size
    count = min(sends, len(rows))
    found = matching._pair_by_loop(*columns, count)
    np.testing.assert_array_equal(found, matching._pair_in_order(*columns, count))


MOVES = (Kind.SEND, Kind.RECV, Kind.ISEND, Kind.ISEND_DONE, Kind.IRECV_POST, Kind.IRECV)


REQUESTS = st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 2), st.integers(0, 1)), max_size=12)


@given(REQUESTS, REQUESTS)
@settings(deadline=None)
def test_messages_of_any_requests(one: list[tuple[Kind, int, int]], other: list[tuple[Kind, int, int]]) -> None:
    """Requests that are used again, never posted or never completed, and messages whose other end is missing."""
    built = []
    for rank, rows in enumerate((one, other)):
        line = Line(rank)
        for now, (kind, request, tag) in enumerate(rows):
            line.enter(now, "MPI_Wait").add(now + 0.25, kind, -1, 0, 1 - rank, tag=tag, size=8, request=request)
            line.leave(now + 0.5, "MPI_Wait")
        built.append(line)
    trace = build(*built)
    calls = pair_calls(trace)
    assert_equal(
        matching.match_messages(trace, calls, compiled=True), matching.match_messages(trace, calls, compiled=False)
    )


@given(st.one_of(programs(), threaded_programs()), st.lists(st.floats(0, 22), max_size=6))
@settings(deadline=None, max_examples=50)
def test_pieces_are_the_same_by_call_and_instance(trace: Trace, cuts: list[float]) -> None:
    calls, edges = pair_calls(trace), np.array([0.3, *sorted(cuts), 20.0])
    leaves = np.repeat(edges[1:-1, None], len(trace.locations), axis=1)
    division = RunDivision(edges, leaves, np.zeros((len(edges) - 1, 1), dtype=np.int64), (), 0)
    nobody = np.full(len(trace.locations), -1)
    spans = nobody, np.zeros(len(nobody)), np.full(len(nobody), 21.5)
    found, expected = (
        by_place(time_pieces.split_time_lines(trace, calls, division, spans, compiled=way)) for way in (True, False)
    )
    assert found.keys() == expected.keys()
    for place, seconds in expected.items():
        np.testing.assert_allclose(found[place], seconds, atol=1e-12, err_msg=str(place))


def by_place(pieces: time_pieces.TimePieces) -> dict[tuple[int, ...], np.ndarray]:
    """Return the seconds inside, before and after by location, call, instance and forking."""
    found: dict[tuple[int, ...], np.ndarray] = {}
    for *place, inside, before, after, forking in zip(*(getattr(pieces, n) for n in pieces.__slots__), strict=True):
        key = (*map(int, place), int(forking))
        found[key] = found.get(key, np.zeros(3)) + np.array([inside, before, after])
    return found


@given(st.integers(1, 30), st.integers(0, 3000), st.integers(0, 2**32))
@settings(deadline=None)
def test_causes_of_any_seconds(kinds: int, count: int, seed: int) -> None:
    """Equal causes are added up in the same order, whatever they are: more of them than fit into the first table."""
    source = random_source(np.random.default_rng(seed), kinds, count)
    assert_equal(causes._collect_by_loop(source), causes._collect_by_columns(source))


def random_source(random: np.random.Generator, kinds: int, count: int) -> causes.CauseSource:
    """Return seconds of ``count`` calls in which each column has so many different values."""
    trace = build(Line(0).call(0.0, 1.0, "MPI_Recv"))
    calls = pair_calls(trace)

    def draw(low: int, high: int) -> np.ndarray:
        return random.integers(low, high, count)

    many = {"location": draw(0, kinds), "region": draw(0, len(trace.regions)), "parent": draw(-1, max(count, 1))}
    many |= {"anchor": draw(-1, 2), "enter": np.zeros(count, dtype=np.int64)}
    seconds = random.choice([0.0, 0.1, 0.7], (7, count))
    split = CategorySeconds(np.arange(count), draw(0, kinds), draw(0, 3), *seconds)
    waiting = WaitTimes(seconds[0], draw(0, kinds), draw(-1, kinds), seconds[0] > 0)
    nothing = np.zeros(0, dtype=np.int64)
    layout = CellLayout(
        np.arange(kinds), draw(0, kinds), nothing, random.integers(0, kinds, kinds), nothing, nothing, (), nothing, 1,
        nothing,
    )  # fmt: skip
    sizes = random.choice([-1, 0, 1, 2, 3, 4, 2**20 - 1, 2**20, 2**40], count)
    return causes.CauseSource(trace, dataclasses.replace(calls, **many), waiting, split, layout, sizes, draw(-1, kinds))


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.parent.parent.name)
def test_profiles_of_recorded_traces(path: Path) -> None:
    trace = otf2.read_trace(path)
    assert_same(from_trace(trace, window_events=1000, compiled=True), from_trace(trace, compiled=False))


@given(st.one_of(programs(), threaded_programs()), st.integers(1, 60))
@settings(deadline=None, max_examples=50)
def test_profiles_of_any_program(trace: Trace, events: int) -> None:
    assert_same(from_trace(trace, window_events=events, compiled=True), from_trace(trace, compiled=False))


@given(st.one_of(programs(), threaded_programs()))
@settings(deadline=None, max_examples=50)
def test_cut_points(trace: Trace) -> None:
    found, expected = (segmentation.find_cut_points(trace, compiled=way) for way in (True, False))
    assert (found is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(found, expected)
