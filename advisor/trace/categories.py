"""The seconds of every call inside the phases: waiting, synchronizing, transferring data, input and output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.grouping import sum_by_group
from advisor.trace.events import Kind, Role
from advisor.trace.nesting import have_roles, roles_of_regions, select_recorded
from advisor.trace.phases import instances_at
from advisor.trace.waits import SYNCHRONIZING_ROLES

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.events import Trace
    from advisor.trace.nesting import Calls
    from advisor.trace.phases import RunDivision
    from advisor.trace.teams import JoinWaits
    from advisor.trace.time_pieces import TimePieces
    from advisor.trace.waits import WaitTimes


@dataclass(frozen=True, slots=True)
class CategorySeconds:
    """Seconds inside the phases by category, columns of one length: whose they are and in which instance they lie.

    Every ``call`` that has any has an entry, in the order of calls; behind them calls that do the program's own work
    have one for each instance in which they start ``teams`` of threads, so many, or wait for them.
    """

    call: IntArray
    instance: IntArray
    teams: IntArray
    wait_s: FloatArray
    sync_s: FloatArray
    transfer_s: FloatArray
    io_s: FloatArray
    os_s: FloatArray
    start_up_s: FloatArray
    shutdown_s: FloatArray


@dataclass(frozen=True, slots=True)
class _ForkSeconds:
    """What working calls do with threads: each ``call`` once for each ``instance``."""

    call: IntArray
    instance: IntArray
    teams: IntArray
    wait_s: FloatArray
    sync_s: FloatArray


def split_by_category(
    trace: Trace, calls: Calls, pieces: TimePieces, waiting: WaitTimes, division: RunDivision, joins: JoinWaits
) -> CategorySeconds:
    """Return the seconds of every call inside the phases, split by category.

    Working calls wait in ``joins`` for the threads they started; the rest of their forking synchronizes.
    """
    total = np.where(calls.anchor < 0, 0.0, _sum_by_call(calls, pieces, pieces.seconds))
    before, after = (_sum_by_call(calls, pieces, seconds) for seconds in (pieces.before_s, pieces.after_s))
    call = np.flatnonzero((total != 0) | (before != 0) | (after != 0))
    total, role = total[call], roles_of_regions(trace)[calls.region[call]]
    forking = _collect_fork_seconds(trace, calls, pieces, division, joins)
    wait = np.minimum(waiting.wait_s[call], total)
    rest = total - wait
    nowhere = have_roles(trace, calls.region[call], (Role.TOOL, Role.INIT))
    synchronizes = have_roles(trace, calls.region[call], SYNCHRONIZING_ROLES)
    io, taken = role == Role.IO, role == Role.OS
    nothing = np.zeros(len(forking.call))
    return CategorySeconds(
        call=np.r_[call, forking.call],
        instance=np.r_[instances_at(division.leaves_s, calls.location[call], calls.start_s[call]), forking.instance],
        teams=np.r_[np.zeros(len(call), dtype=np.int64), forking.teams],
        wait_s=np.r_[np.where(nowhere, 0.0, wait), forking.wait_s],
        sync_s=np.r_[np.where(synchronizes, rest, 0.0), forking.sync_s],
        transfer_s=np.r_[np.where(synchronizes | io | taken | nowhere, 0.0, rest), nothing],
        io_s=np.r_[np.where(io, rest, 0.0), nothing],
        os_s=np.r_[np.where(taken, rest, 0.0), nothing],
        start_up_s=np.r_[before[call] + np.where(role == Role.INIT, total, 0.0), nothing],
        shutdown_s=np.r_[after[call], nothing],
    )


def _sum_by_call(calls: Calls, pieces: TimePieces, seconds: FloatArray) -> FloatArray:
    """Return the sums of some seconds of the pieces by call."""
    some = np.flatnonzero((seconds != 0) & (pieces.call >= 0))
    return sum_by_group(pieces.call[some], seconds[some], len(calls.region))


def _collect_fork_seconds(
    trace: Trace, calls: Calls, pieces: TimePieces, division: RunDivision, joins: JoinWaits
) -> _ForkSeconds:
    """Return what working calls do with threads, by call and instance."""
    forks = np.flatnonzero(pieces.forking)
    forks = forks[calls.anchor[pieces.call[forks]] < 0]
    instances = division.instances
    key, entry = np.unique(pieces.call[forks] * instances + pieces.instance[forks], return_inverse=True)
    spent = sum_by_group(entry, pieces.seconds[forks], len(key))
    waited = _sum_by_key(key, _instance_keys(calls, division, joins.call, joins.moment_s), joins.seconds)
    events, _ = select_recorded(calls, Kind.FORK)
    started = _instance_keys(calls, division, calls.open_after[events], trace.time_s[events])
    wait = np.minimum(waited, spent)
    return _ForkSeconds(
        call=key // instances,
        instance=key % instances,
        teams=_sum_by_key(key, started, np.ones(len(started))).astype(np.int64),
        wait_s=wait,
        sync_s=spent - wait,
    )


def _instance_keys(calls: Calls, division: RunDivision, call: IntArray, moment_s: FloatArray) -> IntArray:
    """Return one number for each call and the instance in which its location is at a moment."""
    instance = instances_at(division.leaves_s, calls.location[call], moment_s)
    key: IntArray = call * division.instances + instance
    return key


def _sum_by_key(key: IntArray, keys: IntArray, amounts: FloatArray) -> FloatArray:
    """Return the sums of the amounts with each key of ``key``, which is sorted; others are left out."""
    place = np.searchsorted(key, keys)
    known = np.r_[key, -1][place] == keys
    return sum_by_group(place[known], amounts[known], len(key))
