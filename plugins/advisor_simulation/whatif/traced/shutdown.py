"""The end of a recorded run as a meeting: nobody leaves the shutdown before the last rank is there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Role
from advisor.trace.regions import classify_region
from advisor_simulation.replay.program import Collectives, Op, Program
from advisor_simulation.replay.waits import operation_starts

if TYPE_CHECKING:
    from advisor.model.records import IntArray


def meet_at_shutdown(program: Program) -> Program:
    """Return the program whose calls that end MPI are a collective operation, where these hold no record of one.

    Only where all ranks were seen to leave behind the last arrival: with less to do before it, they all leave earlier.
    """
    ending = _find_endings(program)
    if program.end_s is None or not len(ending):
        return program
    begun = operation_starts(program, program.end_s)[ending]
    if (program.end_s[ending] < begun.max()).any():
        return program
    op, link, joint = program.op.copy(), program.link.copy(), program.collectives
    op[ending], link[ending] = Op.JOIN, len(joint)
    everybody = tuple(range(program.ranks))
    known = everybody in program.communicators
    groups = program.communicators if known else (*program.communicators, everybody)
    meeting = Collectives(
        np.r_[joint.comm, groups.index(everybody)],
        np.r_[joint.role, int(Role.FINALIZE)],
        np.r_[joint.root, -1],
        np.r_[joint.size, 0.0],
        (*joint.name, "finalize"),
    )
    return replace(program, op=op, link=link, collectives=meeting, communicators=groups)


def _find_endings(program: Program) -> IntArray:
    """Return the call of each rank that ends MPI and that nothing links; none where a rank has no such call."""
    ends = np.array([*(classify_region(name)[1] == Role.FINALIZE for name in program.names), False])[program.call]
    found: IntArray = np.flatnonzero(ends & (program.op == Op.FIXED))
    linked = (ends & (program.op == Op.JOIN)).any()
    once = np.array_equal(program.rank[found], np.arange(program.ranks))
    return found if once and program.ranks > 1 and not linked else found[:0]
