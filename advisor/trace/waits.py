"""Waiting time of each call, split from the cost of synchronization.

A call that communicates is split at the moment from which nothing but its own work can hold it: the last enter of a
barrier or collective, the root's enter, the start of the latest send it receives, the post of a receive that a
rendezvous needs. Before that it waits; after that a barrier synchronizes and everything else transfers data. A
busy-waiting call burns processor time all the same, so no CPU time is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.counts import sum_call_bytes
from advisor.trace.events import COMMUNICATING, Kind, Role, Trace
from advisor.trace.locations import ranks_of_locations
from advisor.trace.nesting import Calls, are_task_waits, find_anchor_calls, have_roles, roles_of_regions
from advisor.trace.regions import POLLS, PROBES

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.matching import Collectives, Messages
    from advisor.trace.teams import ThreadTeams

#: Below this size no implementation in use makes a sender wait for the receive (smallest default eager limit, bytes).
RENDEZVOUS_BYTES = 4096

#: What a call can wait for; index into this is ``Waits.kind``.
KINDS = (
    "none",
    "barrier",
    "collective",
    "late root",
    "late sender",
    "late receiver",
    "unmatched",
    "thread barrier",
    "lock",
    "tasks",
    "end of run",
)

BLOCKING_ROLES = (
    Role.BARRIER,
    Role.ALL_TO_ALL,
    Role.ONE_TO_ALL,
    Role.ALL_TO_ONE,
    Role.SCAN,
    Role.SEND,
    Role.RECV,
    Role.SENDRECV,
    Role.WAIT,
    Role.RMA,
    Role.COMM_OTHER,
    Role.OMP_BARRIER,
    Role.OMP_LOCK,
    Role.THREAD,
)


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """Per call: seconds waited, index into ``KINDS``, the location waited for (-1 none or many), whether estimated."""

    wait_s: FloatArray
    kind: IntArray
    partner: IntArray
    estimated: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Calls blocked until ``until_s``: the kind of wait, the location responsible, and whether it is estimated."""

    call: IntArray
    until_s: FloatArray
    kind: IntArray
    partner: IntArray
    estimated: npt.NDArray[np.bool_]


def split_waits(
    trace: Trace,
    calls: Calls,
    joint: Collectives,
    messages: Messages,
    teams: ThreadTeams,
    closers: IntArray,
    least: ShortestCalls | None = None,
) -> WaitTimes:
    """Return how long every call waits; ``calls`` carry aligned times, ``closers`` are those that end the run.

    ``least`` are the shortest calls of the whole run where ``trace`` is only a part of it.
    """
    known = [
        _wait_in_trees(trace, calls, joint),
        *_wait_in_collectives(calls, joint),
        _wait_for_senders(calls, messages),
        probes := _wait_in_probes(trace, calls, messages),
        _wait_for_receivers(trace, calls, messages),
        _wait_for_teams(calls, teams),
        _wait_for_shutdown(calls, closers[closers >= 0]),
    ]
    known_calls = find_explained_calls(calls, joint, messages, teams)
    known_calls[probes.call] = True
    guessed = _wait_for_guessed_senders(trace, calls, messages, known_calls)
    known_calls[guessed.call] = True
    least = find_shortest_calls(trace, calls, known_calls) if least is None else least
    unmatched = _estimate_unmatched_waits(trace, calls, known_calls, least)
    reasons = [*known, guessed]
    return _select_latest_reasons(calls, [*reasons, _spare_lone_polls(trace, calls, reasons, unmatched)])


def find_explained_calls(
    calls: Calls, joint: Collectives, messages: Messages, teams: ThreadTeams
) -> npt.NDArray[np.bool_]:
    """Return the calls of which it is known whom they wait for."""
    known = np.zeros(len(calls.region), dtype=bool)
    for group in (joint.call, messages.receive, messages.send, messages.send_end, teams.barrier):
        known[group[group >= 0]] = True
    return known


@dataclass(frozen=True, slots=True)
class ShortestCalls:
    """The seconds of the shortest blocking call of each region and size (-1 unknown) whose partner is unknown."""

    region: IntArray
    size: IntArray
    seconds: FloatArray


def find_shortest_calls(trace: Trace, calls: Calls, known: npt.NDArray[np.bool_]) -> ShortestCalls:
    """Return the shortest calls among those that are not ``known`` to wait for somebody."""
    call, size = _select_unexplained(trace, calls, known)
    return _select_shortest(ShortestCalls(calls.region[call], size, calls.end_s[call] - calls.start_s[call]))


def merge_shortest_calls(parts: Iterable[ShortestCalls]) -> ShortestCalls:
    """Return the shortest calls of all parts."""
    several = list(parts)
    return _select_shortest(
        ShortestCalls(*(np.concatenate([getattr(p, name) for p in several]) for name in ShortestCalls.__slots__))
    )


def _select_shortest(found: ShortestCalls) -> ShortestCalls:
    order = np.lexsort((found.seconds, found.size, found.region))
    region, size = found.region[order], found.size[order]
    fresh = np.r_[True, (np.diff(region) != 0) | (np.diff(size) != 0)][: len(order)]
    return ShortestCalls(region[fresh], size[fresh], found.seconds[order][fresh])


def _select_unexplained(trace: Trace, calls: Calls, known: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return the blocking calls without a known partner, and their bytes."""
    call = np.flatnonzero(have_roles(trace, calls.region, BLOCKING_ROLES) & ~known)
    call = call[calls.anchor[call] == call]
    return call, sum_call_bytes(trace, calls, COMMUNICATING)[call] if len(call) else call


def _wait_in_collectives(calls: Calls, joint: Collectives) -> list[WaitReason]:
    """Return until when the ranks of collectives wait."""
    if not len(joint):
        return []
    size = np.diff(joint.first)
    start = calls.start_s[joint.call]
    role = np.repeat(joint.role, size)
    last, who = _latest_starts(start, joint.first)
    everybody = (role == Role.BARRIER) | (role == Role.ALL_TO_ALL)
    kind = np.where(role == Role.BARRIER, KINDS.index("barrier"), KINDS.index("collective"))
    partner = calls.location[joint.call[who]]
    reasons = [_make_reason(joint.call, np.repeat(last, size), kind, np.repeat(partner, size), everybody)]
    rooted = joint.root >= 0
    root_call = joint.call[joint.first[:-1] + np.maximum(joint.root, 0)]
    is_root = joint.call == np.repeat(root_call, size)
    root_start = np.repeat(calls.start_s[root_call], size)
    # who has delivered to a root that came last, and left behind it, had nothing else to wait for
    delivered = (root_start >= np.repeat(last, size)) & (calls.end_s[joint.call] > root_start)
    delivered &= role == Role.ALL_TO_ONE
    late_root = ((role == Role.ONE_TO_ALL) | delivered) & np.repeat(rooted, size) & ~is_root
    root_kind = np.full(len(role), KINDS.index("late root"))
    reasons.append(
        _make_reason(joint.call, root_start, root_kind, np.repeat(calls.location[root_call], size), late_root)
    )
    gathers = (role == Role.ALL_TO_ONE) & is_root
    reasons.append(_make_reason(joint.call, np.repeat(last, size), kind, np.repeat(partner, size), gathers))
    scans = role == Role.SCAN
    reasons.append(
        _make_reason(joint.call, _running_latest_starts(start, joint.first), kind, np.full(len(role), -1), scans)
    )
    return reasons


def _wait_in_trees(trace: Trace, calls: Calls, joint: Collectives) -> WaitReason:
    """Return until when ranks wait that pass on the data of others: until the last that came before they left.

    Libraries gather, reduce and broadcast along trees. Nothing holds a rank that only has a few bytes to send: what
    stays has waited for those below or above it, which one is not known.
    """
    size = np.diff(joint.first)
    members = np.flatnonzero(np.repeat(np.isin(joint.role, (Role.ALL_TO_ONE, Role.ONE_TO_ALL)), size))
    call, group = joint.call[members], np.repeat(np.arange(len(joint)), size)[members]
    kind = np.full(len(call), KINDS.index("collective"))
    if not len(call):
        return _make_reason(call, np.zeros(0), kind, call, np.zeros(0, dtype=bool))
    moved = sum_call_bytes(trace, calls, (Kind.COLLECTIVE,))[call]
    is_root = members - joint.first[group] == joint.root[group]
    before = call[find_starts_before_ends(calls.start_s[call], calls.end_s[call], group)]
    passing = ~is_root & (moved >= 0) & (moved <= RENDEZVOUS_BYTES)
    return _make_reason(call, calls.start_s[before], kind, calls.location[before], passing)


def find_starts_before_ends(start: FloatArray, end: FloatArray, group: IntArray) -> IntArray:
    """Return for each element where the latest start of its group stands that is not behind its own end."""
    count = len(start)
    is_end = np.repeat([False, True], count)
    order = np.lexsort((is_end, np.r_[start, end], np.r_[group, group]))
    started = np.maximum.accumulate(np.where(order < count, np.arange(2 * count), 0))
    ends = order >= count
    found: IntArray = np.empty(count, dtype=np.int64)
    found[order[ends] - count] = order[started][ends]
    return found


def _latest_starts(start: FloatArray, first: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the latest start of each group and where it stands."""
    last = np.maximum.reduceat(start, first[:-1])
    place = np.where(start == np.repeat(last, np.diff(first)), np.arange(len(start)), len(start))
    return last, np.minimum.reduceat(place, first[:-1])


def _running_latest_starts(start: FloatArray, first: IntArray) -> FloatArray:
    """Return the latest start among those up to each element of its group."""
    order = np.lexsort((start, np.repeat(np.arange(len(first) - 1), np.diff(first))))
    height = np.empty(len(start), dtype=np.int64)
    height[order] = np.arange(len(start))
    running = np.maximum.accumulate(height)
    return start[order[running]]


def _wait_for_senders(calls: Calls, messages: Messages) -> WaitReason:
    """Return until when receives wait for a late sender: until the send they need has started."""
    everything = np.ones(len(messages.send), dtype=bool)
    kind = np.full(len(messages.send), KINDS.index("late sender"))
    return _make_reason(messages.receive, calls.start_s[messages.send], kind, calls.location[messages.send], everything)


def _wait_in_probes(trace: Trace, calls: Calls, messages: Messages) -> WaitReason:
    """Return until when probes wait for a late sender: that of the message that the next call receives."""
    before = np.maximum(messages.receive - 1, 0)
    probing = np.array([region.name in PROBES for region in trace.regions], dtype=np.bool_)
    probes = probing[calls.region[before]] & (calls.location[before] == calls.location[messages.receive])
    probes &= (before < messages.receive) & (calls.parent[before] == calls.parent[messages.receive])
    kind = np.full(len(before), KINDS.index("late sender"))
    return _make_reason(before, calls.start_s[messages.send], kind, calls.location[messages.send], probes)


def _wait_for_guessed_senders(
    trace: Trace, calls: Calls, messages: Messages, explained: npt.NDArray[np.bool_]
) -> WaitReason:
    """Return until when wait calls wait whose receives were posted but not seen to complete.

    Where as many sends to a rank as posts of it lack their other end, the k-th send in the order of time is taken for
    the k-th post, and the first wait call behind the post for the one that completes it: estimated.
    """
    role = roles_of_regions(trace)[calls.region]
    rank = ranks_of_locations(trace)
    post_location = np.searchsorted(trace.first, messages.lost_posts, side="right") - 1
    waits = np.flatnonzero((role == Role.WAIT) & ~explained & (calls.anchor == np.arange(len(role))))
    sends = messages.lost_sends[np.argsort(trace.time_s[messages.lost_sends], kind="stable")]
    found: list[tuple[IntArray, IntArray]] = []
    for receiver in np.unique(rank[post_location]):
        mine = messages.lost_posts[rank[post_location] == receiver]
        theirs = sends[trace.partner[sends] == receiver]
        here = waits[rank[calls.location[waits]] == receiver]
        behind = np.searchsorted(calls.enter[here], mine)
        if len(mine) == len(theirs) and (behind < len(here)).all():
            found.append((here[behind], find_anchor_calls(calls, calls.open_after[theirs])))
    call = np.concatenate([np.zeros(0, dtype=np.int64), *(pair[0] for pair in found)])
    send = np.concatenate([np.zeros(0, dtype=np.int64), *(pair[1] for pair in found)])
    kind = np.full(len(call), KINDS.index("late sender"))
    return WaitReason(call, calls.start_s[send], kind, calls.location[send], np.ones(len(call), dtype=bool))


def _wait_for_receivers(trace: Trace, calls: Calls, messages: Messages) -> WaitReason:
    """Return until when large sends wait: until the receive they need is posted."""
    blocking = have_roles(trace, calls.region[messages.send], (Role.SEND, Role.SENDRECV))
    call = np.where(blocking, messages.send, messages.send_end)
    until = calls.start_s[messages.posted]
    held = (call >= 0) & (messages.size > RENDEZVOUS_BYTES) & (until < calls.end_s[np.maximum(call, 0)])
    kind = np.full(len(call), KINDS.index("late receiver"))
    return _make_reason(call, until, kind, calls.location[messages.posted], held)


def _wait_for_teams(calls: Calls, teams: ThreadTeams) -> WaitReason:
    """Return until when threads wait at a barrier of their team."""
    nothing = np.zeros(0, dtype=np.int64)
    if len(teams.first) < 2:
        return _make_reason(nothing, np.zeros(0), nothing, nothing, nothing.astype(bool))
    last, who = _latest_starts(calls.start_s[teams.barrier], teams.first)
    size = np.diff(teams.first)
    kind = np.full(len(teams.barrier), KINDS.index("thread barrier"))
    partner = np.repeat(calls.location[teams.barrier[who]], size)
    return _make_reason(teams.barrier, np.repeat(last, size), kind, partner, np.ones(len(kind), dtype=bool))


def _wait_for_shutdown(calls: Calls, closers: IntArray) -> WaitReason:
    """Return until when processes wait in the shutdown: until the last one gets there."""
    everything = np.ones(len(closers), dtype=bool)
    nobody = np.full(len(closers), -1)
    last = np.full(len(closers), calls.start_s[closers].max(initial=-np.inf))
    return _make_reason(closers, last, np.full(len(closers), KINDS.index("end of run")), nobody, everything)


def _estimate_unmatched_waits(
    trace: Trace, calls: Calls, known: npt.NDArray[np.bool_], least: ShortestCalls
) -> WaitReason:
    """Return until when calls without a known partner wait, by the shortest call of the same name and size."""
    call, size = _select_unexplained(trace, calls, known)
    sizes = np.unique(np.r_[least.size, size])
    known_sorts = least.region * len(sizes) + np.searchsorted(sizes, least.size)
    sorts = calls.region[call] * len(sizes) + np.searchsorted(sizes, size)
    place = np.searchsorted(known_sorts, sorts)
    same = np.r_[known_sorts, -1][place] == sorts
    until = calls.end_s[call] - np.where(same, np.r_[least.seconds, np.inf][place], np.inf)
    locked = roles_of_regions(trace)[calls.region[call]] == Role.OMP_LOCK
    kind = np.where(locked, KINDS.index("lock"), KINDS.index("unmatched"))
    kind[are_task_waits(trace)[calls.region[call]]] = KINDS.index("tasks")
    return WaitReason(call, until, kind, np.full(len(call), -1), np.ones(len(call), dtype=bool))


def _spare_lone_polls(trace: Trace, calls: Calls, known: list[WaitReason], unmatched: WaitReason) -> WaitReason:
    """Return the waits without the time in which all other locations wait, or poll as well.

    Nobody works then whom such polls could wait for: they are between pieces of work too short to be seen, and cost
    what they take.
    """
    polling = np.array([region.name in POLLS for region in trace.regions], dtype=np.bool_)
    mine = np.flatnonzero(polling[calls.region[unmatched.call]])
    if not len(mine) or len(trace.locations) < 2:
        return unmatched
    polls, waits = unmatched.call[mine], _select_latest_reasons(calls, known).wait_s
    waits[polls] = calls.end_s[polls] - calls.start_s[polls]
    idle = np.flatnonzero(waits > 0)
    time = np.r_[calls.start_s[idle], calls.start_s[idle] + waits[idle]]
    order = np.argsort(time, kind="stable")
    time, count = time[order], np.cumsum(np.repeat([1, -1], len(idle))[order])
    alone_s = np.r_[0.0, np.cumsum(np.diff(time) * (count[:-1] == len(trace.locations)))]
    until = unmatched.until_s.copy()
    until[mine] -= np.interp(calls.end_s[polls], time, alone_s) - np.interp(calls.start_s[polls], time, alone_s)
    return replace(unmatched, until_s=until)


def _make_reason(
    call: IntArray, until_s: FloatArray, kind: IntArray, partner: IntArray, valid: npt.NDArray[np.bool_]
) -> WaitReason:
    """Return the valid rows as a certain reason."""
    chosen = call[valid]
    return WaitReason(chosen, until_s[valid], kind[valid], partner[valid], np.zeros(len(chosen), dtype=bool))


def _select_latest_reasons(calls: Calls, reasons: list[WaitReason]) -> WaitTimes:
    """Return for each call the reason that held it longest; none holds it beyond its end."""
    call, until, kind, partner, estimated = (
        np.concatenate([getattr(reason, name) for reason in reasons]) for name in WaitReason.__slots__
    )
    last: FloatArray = np.full(len(calls.region), -np.inf)
    np.maximum.at(last, call, until)
    latest = np.flatnonzero(until == last[call])
    chosen = np.full(len(last), -1)
    chosen[call[latest]] = latest  # the last one where several are equal
    seconds = np.clip(last - calls.start_s, 0.0, calls.end_s - calls.start_s)
    waits = seconds > 0
    return WaitTimes(
        wait_s=seconds,
        kind=np.where(waits, np.r_[kind, 0][chosen], 0),
        partner=np.where(waits, np.r_[partner, -1][chosen], -1),
        estimated=np.r_[estimated, False][chosen],
    )
