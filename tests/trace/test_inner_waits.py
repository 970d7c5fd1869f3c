"""What waiting inside phases is put down to: the middle of the phase, not the end that passes it on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trace_builder import Line, build

from advisor.analysis import bounds, gaps
from advisor.trace.profile import from_trace

if TYPE_CHECKING:
    from advisor.model.records import Gap


def waiting_of_a_late_sender() -> Gap:
    """Rank 0 works two seconds before it sends; rank 1 works two seconds after it has received."""
    early, late = Line(0).enter(0.0, "main"), Line(1).enter(0.0, "main")
    early.call(0.0, 0.5, "MPI_Init").call(0.5, 2.5, "work").send(2.5, 2.6, 1).collective(2.6, 5.1, "MPI_Barrier")
    late.call(0.0, 0.5, "MPI_Init").enter(0.5, "more").receive(0.5, 2.6, 0).leave(2.6, "more")
    late.call(2.6, 5.0, "work").collective(5.0, 5.1, "MPI_Barrier")
    for line in (early, late):
        line.call(5.1, 5.2, "MPI_Finalize").leave(5.3, "main")
    profile = from_trace(build(early, late))
    return next(gap for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile)) if gap.name == "W")


def test_waiting_stands_at_the_function_that_waits_in_the_middle() -> None:
    gap = waiting_of_a_late_sender()
    assert gap.regions[0].name == "more"
    assert sum(share.seconds for share in gap.regions) == pytest.approx(gap.seconds)


def test_its_cause_is_the_late_sender_and_not_the_barrier_behind_it() -> None:
    gap = waiting_of_a_late_sender()
    assert {share.kind for share in gap.causes} == {"late sender"}
    assert sum(share.seconds for share in gap.causes) == pytest.approx(gap.seconds)
