"""The seconds of every call inside the phases: waiting, synchronizing, transferring data, input and output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.grouping import sum_by_group
from advisor.trace.events import SYNCHRONIZING_ROLES, Kind, Role, Trace
from advisor.trace.nesting import Calls, have_roles, roles_of_regions, select_recorded
from advisor.trace.phases import RunDivision, instances_at

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
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
    trace: Trace,
    calls: Calls,
    pieces: TimePieces,
    by_call_s: FloatArray,
    waiting: WaitTimes,
    division: RunDivision,
    joins: JoinWaits,
    *,
    compiled: bool = False,
) -> CategorySeconds:
    """Return the seconds of every call inside the phases, split by category.

    ``by_call_s`` are those of ``PieceTotals``. Working calls wait in ``joins`` for the threads they started; the rest
    of their forking synchronizes.
    """
    split = _split_by_loop if compiled else _split_calls
    call, instance, seconds = split(trace, calls, by_call_s, waiting.wait_s, division)
    forking = _collect_fork_seconds(trace, calls, pieces, division, joins)
    teams = np.zeros(len(call), dtype=np.int64)
    if len(forking.call):
        call, instance = np.r_[call, forking.call], np.r_[instance, forking.instance]
        more = np.zeros((len(seconds), len(forking.call)))
        more[:2] = forking.wait_s, forking.sync_s
        seconds, teams = np.concatenate((seconds, more), axis=1), np.r_[teams, forking.teams]
    return CategorySeconds(call, instance, teams, *seconds)


def _split_calls(
    trace: Trace, calls: Calls, by_call_s: FloatArray, wait_s: FloatArray, division: RunDivision
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the calls that have any seconds, their instances, and their seconds as ``CategorySeconds`` orders them."""
    call = np.flatnonzero((by_call_s != 0).any(axis=0))
    (total, before, after), role = by_call_s[:, call], roles_of_regions(trace)[calls.region[call]]
    wait = np.minimum(wait_s[call], total)
    rest = total - wait
    nowhere = have_roles(trace, calls.region[call], (Role.TOOL, Role.INIT))
    synchronizes = have_roles(trace, calls.region[call], SYNCHRONIZING_ROLES)
    io, taken = role == Role.IO, role == Role.OS
    seconds = (
        np.where(nowhere, 0.0, wait),
        np.where(synchronizes, rest, 0.0),
        np.where(synchronizes | io | taken | nowhere, 0.0, rest),
        np.where(io, rest, 0.0),
        np.where(taken, rest, 0.0),
        before + np.where(role == Role.INIT, total, 0.0),
        after,
    )
    return call, instances_at(division.leaves_s, calls.location[call], calls.start_s[call]), np.stack(seconds)


def _split_by_loop(
    trace: Trace, calls: Calls, by_call_s: FloatArray, wait_s: FloatArray, division: RunDivision
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return what ``_split_calls`` does, by a compiled loop."""
    from advisor.trace import compiled_attribution_loops

    role = roles_of_regions(trace)[calls.region]
    places, seconds = np.empty((2, len(role)), dtype=np.int64), np.empty((7, len(role)))
    count = compiled_attribution_loops.split_calls(
        by_call_s, (role, calls.location, calls.start_s), wait_s, division.leaves_s, places, seconds
    )
    call, instance = places[:, :count]
    return call, instance, seconds[:, :count]


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
