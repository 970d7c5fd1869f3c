"""Calls and own time against a plain stack."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from trace_builder import NUMBER, REGIONS, Line, build

from advisor.trace.events import Kind
from advisor.trace.nesting import WORKING_ROLES, count_previous, find_anchor_calls, pair_calls

NAMES = ("main", "work", "more", "MPI_Barrier", "write", "parallel")


@st.composite
def nested_lines(draw: st.DrawFn, rank: int = 0) -> Line:
    line, open_names, now = Line(rank), [], 0.0
    for _ in range(draw(st.integers(0, 25))):
        now += draw(st.floats(0.001, 1.0))
        if open_names and draw(st.booleans()):
            line.leave(now, open_names.pop())
        else:
            open_names.append(draw(st.sampled_from(NAMES)))
            line.enter(now, open_names[-1])
    if draw(st.booleans()):
        while open_names:
            now += 0.5
            line.leave(now, open_names.pop())
    return line


def stack_calls(line: Line) -> list[dict[str, object]]:
    calls: list[dict[str, object]] = []
    stack: list[int] = []
    for time, kind, region, *_ in line.rows:
        if kind == Kind.ENTER:
            calls.append({"region": region, "parent": stack[-1] if stack else -1, "start": time, "end": None})
            stack.append(len(calls) - 1)
        elif stack:
            calls[stack.pop()]["end"] = time
    for call in calls:
        call["end"] = line.rows[-1][0] if call["end"] is None else call["end"]
    return calls


@given(nested_lines(0), nested_lines(1))
def test_calls_are_those_of_a_stack(left: Line, right: Line) -> None:
    calls = pair_calls(build(left, right))
    expected, offset = [], 0
    for line in (left, right):
        mine = stack_calls(line)
        for call in mine:
            parent = call["parent"]
            expected.append((call["region"], parent + offset if parent != -1 else -1, call["start"], call["end"]))
        offset += len(mine)
    rows = zip(calls.region, calls.parent, calls.start_s, calls.end_s, strict=True)
    assert [tuple(row) for row in rows] == expected


@given(nested_lines())
def test_the_anchor_is_the_outermost_call_that_is_no_work(line: Line) -> None:
    calls = pair_calls(build(line))
    for number in range(len(calls.region)):
        chain, call = [], number
        while call >= 0:
            chain.append(call)
            call = int(calls.parent[call])
        claims = [c for c in chain if REGIONS[calls.region[c]].role not in WORKING_ROLES]
        assert calls.anchor[number] == (claims[-1] if claims else -1)
        assert find_anchor_calls(calls, np.array([number]))[0] == (claims[-1] if claims else number)
        assert calls.threaded[number] == any(calls.region[c] == NUMBER["parallel"] for c in chain)


@given(nested_lines())
def test_the_open_call_after_each_event_is_the_top_of_the_stack(line: Line) -> None:
    calls = pair_calls(build(line))
    stack, seen = [], 0
    for event, (_, kind, *_) in enumerate(line.rows):
        if kind == Kind.ENTER:
            stack.append(seen)
            seen += 1
        elif stack:
            stack.pop()
        assert calls.open_after[event] == (stack[-1] if stack else -1)


def test_leaves_without_an_enter_are_passed_over() -> None:
    line = Line(0).leave(1.0, "work").enter(2.0, "main").call(3.0, 4.0, "work").leave(5.0, "main").leave(6.0, "main")
    calls = pair_calls(build(line))
    assert [REGIONS[region].name for region in calls.region] == ["main", "work"]
    assert calls.end_s.tolist() == [5.0, 4.0]


def test_deep_recursion_is_followed() -> None:
    line = Line(0)
    for depth in range(3000):
        line.enter(float(depth), "work")
    for depth in range(3000):
        line.leave(3000.0 + depth, "work")
    calls = pair_calls(build(line))
    assert calls.parent.tolist() == list(range(-1, 2999))
    assert calls.end_s[0] == 5999.0


@given(st.lists(st.integers(-3, 3), max_size=30))
def test_occurrence_counts_equal_elements_before(values: list[int]) -> None:
    turns = count_previous(np.array(values, dtype=np.int64))
    assert turns.tolist() == [values[:place].count(value) for place, value in enumerate(values)]


def test_a_call_that_is_never_left_does_not_shift_what_follows() -> None:
    line = Line(0).enter(0.0, "main").enter(1.0, "more").enter(1.5, "work").leave(2.0, "more")
    line.call(3.0, 4.0, "work").leave(5.0, "main")
    calls = pair_calls(build(line))
    rows = zip(calls.region, calls.start_s, calls.end_s, strict=True)
    assert [(REGIONS[region].name, start, end) for region, start, end in rows] == [
        ("main", 0.0, 5.0),
        ("more", 1.0, 2.0),
        ("work", 3.0, 4.0),
    ]


def test_calls_that_overlap_are_both_kept() -> None:
    line = Line(0).enter(0.0, "main").enter(1.0, "more").leave(2.0, "main").leave(3.0, "more")
    calls = pair_calls(build(line))
    assert [REGIONS[region].name for region in calls.region] == ["main", "more"]
    assert calls.end_s.tolist() == [3.0, 2.0]
