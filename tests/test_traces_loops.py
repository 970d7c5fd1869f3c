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

from advisor.readers import otf2
from advisor.traces.nesting import pair
from advisor.traces.profile import from_trace

if TYPE_CHECKING:
    from advisor.traces.events import Trace

pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")

ARCHIVES = sorted((Path(__file__).parent / "profiles" / "otf2").rglob("*.otf2"))


def assert_equal(found: object, expected: object) -> None:
    """Assert that two records hold the same numbers, to the bit, of the same types."""
    for field in dataclasses.fields(type(expected)):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        np.testing.assert_array_equal(one, other, err_msg=field.name, strict=True)


@given(nested_lines(0), nested_lines(1))
@settings(deadline=None)
def test_calls(left: Line, right: Line) -> None:
    trace = build(left, right)
    assert_equal(pair(trace, compiled=True), pair(trace))


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(("main", "work", "MPI_Finalize"))), max_size=20))
@settings(deadline=None)
def test_calls_that_do_not_nest(moves: list[tuple[bool, str]]) -> None:
    line = Line(0)
    for now, (entered, name) in enumerate(moves):
        line.enter(now, name) if entered else line.leave(now, name)
    trace = build(Line(0).call(0.0, 1.0, "work"), line)
    assert_equal(pair(trace, compiled=True), pair(trace))


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.parent.parent.name)
def test_profiles_of_recorded_traces(path: Path) -> None:
    trace = otf2.read_trace(path)
    assert_same(from_trace(trace, window_events=1000, compiled=True), from_trace(trace, compiled=False))


@given(st.one_of(programs(), threaded_programs()), st.integers(1, 60))
@settings(deadline=None, max_examples=50)
def test_profiles_of_any_program(trace: Trace, events: int) -> None:
    assert_same(from_trace(trace, window_events=events, compiled=True), from_trace(trace, compiled=False))
