"""Data that all ranks send to the first one are collected there, as by a gather."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from trace_builder import Line, build

from advisor.advice.facts import collect_facts
from advisor.analysis.bounds import compute_bounds
from advisor.analysis.gaps import attribute_gaps
from advisor.trace.profile import from_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.advice.facts.fact_records import Value

ROUNDS, SIZE = 10, 1 << 20


def facts_of(*lines: Line) -> Mapping[str, Value]:
    for line in lines:
        line.leave(float(4 * ROUNDS), "main")
    profile = from_trace(build(*lines), Path("sample"), "sample")
    levels = compute_bounds(profile, None)
    return collect_facts(profile, levels, attribute_gaps(profile, levels)).sites[0].values


def star(back: int, to: int = 0) -> tuple[Line, Line, Line]:
    """Two of three ranks send to another one, which sends them ``back`` bytes."""
    root = Line(to).enter(0.0, "main")
    others = [Line(rank).enter(0.0, "main") for rank in range(3) if rank != to]
    for n in range(ROUNDS):
        start = 4.0 * n + 1.0
        for k, other in enumerate(others):
            at = start + 0.4 * k
            other.send(at, at + 0.2, to, SIZE).receive(start + 1.5, start + 1.7, to, back)
            root.receive(at, at + 0.2, other.rank, SIZE)
        for k, other in enumerate(others):
            root.send(start + 1.5 + 0.05 * k, start + 1.55 + 0.05 * k, other.rank, back)
    first, second, third = sorted((root, *others), key=lambda line: line.rank)
    return first, second, third


def test_messages_of_all_to_the_first_rank_are_collected() -> None:
    found = facts_of(*star(back=8))
    assert found["comm.gather_share"] > 0.6
    assert found["comm.kept_share"] == 1.0
    assert found["comm.mean_gather_B"] == SIZE
    assert found["comm.gathers_per_iteration"] == pytest.approx(ROUNDS)


def test_what_is_sent_back_or_goes_elsewhere_is_not() -> None:
    for lines in (star(back=SIZE), star(back=8, to=1)):
        found = facts_of(*lines)
        assert (found["comm.gather_share"], found["comm.mean_gather_B"]) == (0.0, 0.0)


def test_the_first_rank_answers_each_message() -> None:
    found = facts_of(*star(back=8))
    assert found["comm.answers"] == ROUNDS
    assert found["comm.work_per_answer_s"] == pytest.approx(4.0, rel=0.5)


def test_a_star_around_another_rank_and_exchanges_of_two_answer_nothing() -> None:
    two = Line(0).enter(0.0, "main"), Line(1).enter(0.0, "main")
    for n in range(ROUNDS):
        at = 4.0 * n + 1.0
        two[0].send(at, at + 0.2, 1, 8).receive(at + 0.2, at + 0.5, 1, 8)
        two[1].send(at, at + 0.2, 0, 8).receive(at + 0.2, at + 0.5, 0, 8)
    for lines in (star(back=8, to=1), two):
        assert facts_of(*lines)["comm.answers"] == 0
