"""A recorded run as it would have been without the other programs that held its cores.

What a change wins on a busy machine is nearly nothing as long as everybody waits for somebody without a core.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.disturbance import delayed_io_share, disturbance_seconds, undisturbed_seconds
from advisor.model.records import OTHER_PROGRAMS, FloatArray, IntArray, Profile
from advisor.support.grouping import group_rows
from advisor.trace.counts import find_quick_seconds
from advisor.trace.regions import NO_CORE_NAME
from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.traced.work import file_mask

if TYPE_CHECKING:
    from advisor_simulation.whatif.traced.rows import ReplayRows

#: Where others held the cores for more than this part of the run, most of a call's time is somebody else's.
_MOSTLY: Final = 0.5


def drop_delay(rows: ReplayRows, profile: Profile) -> ReplayRows | None:
    """Return the rows without the time that other programs took; None where they took none, or not much is known.

    Computation without a core takes no time, and files that much less. Where others held the cores most of the time,
    calls of one function and size take as long as the quickest 0.5 % of their equals on the same rank, at most.
    """
    if OTHER_PROGRAMS not in profile.outside or not disturbance_seconds(profile):
        return None
    queued = rows.op_mask(Op.BURST) & rows.region_mask(lambda name: name == NO_CORE_NAME)
    seconds, wait_s = np.where(queued, 0.0, rows.seconds), rows.wait_s.copy()
    seconds[file_mask(rows)] *= 1.0 - delayed_io_share(profile)
    if undisturbed_seconds(profile) < _MOSTLY * profile.actual_s:
        passing = np.flatnonzero(~rows.op_mask(Op.BURST, Op.FIXED) & (rows.link >= 0))
        call, group = _group_calls(rows, passing)
        whole = np.bincount(call, seconds[passing] + wait_s[passing], minlength=len(group)).astype(np.float64)
        quick = find_quick_seconds(group, whole)[group]
        part = np.where(whole > quick, quick / np.maximum(whole, 1e-30), 1.0)[call]
        seconds[passing] *= part
        wait_s[passing] *= part
    return replace(rows, seconds=seconds, wait_s=wait_s)


def _group_calls(rows: ReplayRows, passing: IntArray) -> tuple[IntArray, IntArray]:
    """Return the call that each of some rows is part of, and for each call the number of its equals.

    What a call takes may lie in any of its operations, sometimes in the one and sometimes in the other.
    """
    line, called = rows.line[passing], rows.call[passing]
    since = np.cumsum(rows.op_mask(Op.BURST))[passing]
    op = rows.op[passing]
    begins = np.r_[True, op[1:] == op[:-1]][: len(passing)]  # several messages of a call that completes all of them
    for each in (line, called, since):
        begins[1:] |= each[1:] != each[:-1]
    call = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    moved = np.bincount(call, _moved_bytes(rows, passing), minlength=len(first))
    held = np.bincount(call, rows.awaits[passing] >= 0, minlength=len(first)) > 0
    size = np.frexp(moved)[1].astype(np.int64)
    return call, group_rows((line[first], called[first], size, held.astype(np.int64)))[0]


def _moved_bytes(rows: ReplayRows, at: IntArray) -> FloatArray:
    """Return the bytes of the message or collective operation of some rows."""
    program, link = rows.program, rows.link[at]
    size = np.zeros(len(at))
    joins = rows.op[at] == Op.JOIN
    size[joins] = program.collectives.size[link[joins]]
    size[~joins] = program.sizes[link[~joins]]
    return size.clip(0.0)
