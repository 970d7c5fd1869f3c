"""The seconds of every call inside the phases: waiting, synchronizing, transferring data, input and output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.grouping import sums
from advisor.traces.events import Role
from advisor.traces.nesting import roles
from advisor.traces.phases import instances_at
from advisor.traces.waits import SYNCHRONIZING_ROLES

if TYPE_CHECKING:
    from advisor.model import FloatArray, IntArray
    from advisor.traces.accounts import Pieces
    from advisor.traces.events import Trace
    from advisor.traces.nesting import Calls
    from advisor.traces.phases import Division
    from advisor.traces.waits import Waits


@dataclass(frozen=True, slots=True)
class Split:
    """The seconds of each call inside the phases, by category, and the instance it lies in."""

    total_s: FloatArray
    wait_s: FloatArray
    sync_s: FloatArray
    transfer_s: FloatArray
    io_s: FloatArray
    start_up_s: FloatArray
    shutdown_s: FloatArray
    instance: IntArray


def split(
    trace: Trace, calls: Calls, pieces: Pieces, waiting: Waits, division: Division, join_waits_s: FloatArray
) -> Split:
    """Return the seconds of every call inside the phases, split by category.

    ``join_waits_s`` says how long a call waited for the threads it started; the rest of its forking synchronizes.
    """
    count = len(calls.region)
    mine = pieces.call >= 0
    total = sums(pieces.call[mine], pieces.seconds[mine], count)
    role = roles(trace)[calls.region]
    working = calls.anchor < 0
    forks = pieces.forking & (calls.anchor[pieces.call] < 0)
    forked = sums(pieces.call[forks], pieces.seconds[forks], count)
    wait = np.minimum(np.where(working, join_waits_s, waiting.wait_s), np.where(working, forked, total))
    rest = np.where(working, forked, total) - wait
    nowhere = np.isin(role, (Role.TOOL, Role.INIT))
    synchronizes = np.isin(role, SYNCHRONIZING_ROLES)
    io = role == Role.IO
    return Split(
        total_s=np.where(nowhere, 0.0, total),
        wait_s=np.where(nowhere, 0.0, wait),
        sync_s=np.where(synchronizes | working, rest, 0.0),
        transfer_s=np.where(synchronizes | working | io | nowhere, 0.0, rest),
        io_s=np.where(io, rest, 0.0),
        start_up_s=sums(pieces.call[mine], pieces.before_s[mine], count) + np.where(role == Role.INIT, total, 0.0),
        shutdown_s=sums(pieces.call[mine], pieces.after_s[mine], count),
        instance=instances_at(division.leaves_s, calls.location, calls.start_s),
    )
