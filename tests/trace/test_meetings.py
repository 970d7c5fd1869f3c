"""Fences, and making communicators, as meetings of all ranks of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from otf2_archives import MPI, Archive

from advisor.collect.recorder.semantics import meaning_of
from advisor.formats import otf2
from advisor.model.mpi_calls import CONSTRUCTORS
from advisor.trace.events import Kind, Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.trace.events import Trace

    #: Begin and end of each fence of each rank, ticks of a nanosecond.
    Spans = Sequence[Sequence[tuple[int, int]]]


def read_fences(path: Path, spans: Spans, name: str = "MPI_Win_fence") -> Trace:
    with Archive(path, ranks=len(spans)) as archive:
        main, fence = archive.region("main"), archive.region(name, MPI)
        for rank, fences in enumerate(spans):
            events = archive.events(rank)
            events.enter(0, main)
            for begin, end in fences:
                events.enter(begin, fence)
                events.leave(end, fence)
            events.leave(1000, main)
    return otf2.read_trace(path / "traces.otf2")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("MPI_Win_fence", Role.BARRIER),
        ("MPI_Comm_dup", Role.ALL_TO_ALL),
        ("MPI_Comm_split", Role.ALL_TO_ALL),
        ("MPI_Win_create", Role.ALL_TO_ALL),
    ],
)
def test_calls_that_all_ranks_pass_together_are_meetings(tmp_path: Path, name: str, role: Role) -> None:
    trace = read_fences(tmp_path / "t", [[(100, 310), (400, 510)], [(300, 310), (500, 510)]], name)
    joins = np.flatnonzero(trace.kind == Kind.COLLECTIVE)
    assert trace.time_s[joins] == pytest.approx([310e-9, 510e-9, 310e-9, 510e-9])
    assert {trace.communicators[number] for number in trace.comm[joins]} == {(0, 1)}
    assert np.diff(trace.first).tolist() == [8, 8]
    assert (trace.kind[joins + 1] == Kind.LEAVE).all()
    assert next(region.role for region in trace.regions if region.name == name) == role


def test_calls_that_the_trace_has_begun_only_are_left_out(tmp_path: Path) -> None:
    with Archive(tmp_path / "t", ranks=2) as archive:
        fence = archive.region("MPI_Win_fence", MPI)
        for rank, begin in enumerate((100, 300)):
            events = archive.events(rank)
            events.enter(begin, fence)
            events.leave(310, fence)
            events.enter(400, fence)
    trace = otf2.read_trace(tmp_path / "t" / "traces.otf2")
    joins = np.flatnonzero(trace.kind == Kind.COLLECTIVE)
    assert trace.time_s[joins] == pytest.approx([210e-9, 210e-9])  # since the first event


def test_what_makes_communicators_is_no_meeting_where_nobody_waits(tmp_path: Path) -> None:
    trace = read_fences(tmp_path / "t", [[(100, 110), (400, 410)], [(300, 310), (500, 510)]], "MPI_Comm_dup")
    assert [region.role for region in trace.regions if region.name == "MPI_Comm_dup"] == [Role.COMM_OTHER]


@pytest.mark.parametrize(
    "spans",
    [
        [[(100, 310), (400, 510)], [(300, 310)]],  # a window of some ranks only
        [[(100, 110), (400, 410)], [(300, 310), (500, 510)]],  # left before the others come: nothing precedes
        [[(100, 310)]],
        [[], []],
    ],
)
def test_fences_at_which_nobody_waits_for_all_are_as_recorded(tmp_path: Path, spans: Spans) -> None:
    trace = read_fences(tmp_path / "t", spans)
    assert not (trace.kind == Kind.COLLECTIVE).any()
    assert all(region.role != Role.BARRIER for region in trace.regions)


@pytest.mark.parametrize(("name", "communicator"), CONSTRUCTORS.items())
def test_constructors_are_known_to_the_recorder_and_to_traces(name: str, communicator: int) -> None:
    """One list: what the recorder wraps as a collective is no data transfer, and a meeting, in traces of any tool."""
    assert f"GW_COLLECTIVE, 0, GW_NOBODY, ${communicator}" in meaning_of(name, ("MPI_Comm *newcomm",)).before
    assert classify_region(name)[1] == Role.COMM_OTHER
