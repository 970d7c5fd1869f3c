"""Which calls belong together: the ranks of one collective, the two ends of one message.

MPI keeps the order of collectives on a communicator and of messages between two ranks with one tag, so counting is
enough; no time is looked at, which is why clocks may be aligned afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.traces import locations
from advisor.traces.events import RECEIVES, SENDS, Kind, Role
from advisor.traces.nesting import occurrence, of_roles, outermost, recorded, roles

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model import IntArray
    from advisor.traces.events import Trace
    from advisor.traces.nesting import Calls

COLLECTIVE_ROLES = (Role.BARRIER, Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN)


@dataclass(frozen=True, slots=True)
class Collectives:
    """Complete collectives. ``call`` holds the calls, one instance after the other, ranks in the communicator's order.

    ``first`` (instances + 1,) delimits them; ``comm``, ``role`` and ``root`` (position within the members, -1
    none) describe each. ``unmatched`` counts collective calls that belong to no complete instance; of ``torn`` ones of
    them the communicator is known, and only partners are missing.
    """

    call: IntArray
    first: IntArray
    comm: IntArray
    role: IntArray
    root: IntArray
    unmatched: int
    torn: int

    def __len__(self) -> int:
        return len(self.comm)


@dataclass(frozen=True, slots=True)
class Messages:
    """Matched messages: calls that start the send, complete the receive, and complete the send (-1 unknown).

    ``posted`` is the call that posted the receive, ``size`` the bytes. Without a partner in the trace are the send
    events ``lost_sends``, the events ``lost_posts`` of receives whose completion is not recorded, and
    ``lost_receives`` completed receives.
    """

    send: IntArray
    receive: IntArray
    posted: IntArray
    send_end: IntArray
    size: IntArray
    lost_sends: IntArray
    lost_posts: IntArray
    lost_receives: int

    @property
    def unmatched(self) -> int:
        """How many ends of messages have no partner."""
        return len(self.lost_sends) + len(self.lost_posts) + self.lost_receives


def collectives(trace: Trace, calls: Calls) -> Collectives:
    """Return the collectives that all members of their communicator took part in."""
    events, call = recorded(trace, calls, Kind.COLLECTIVE)
    role = roles(trace)[calls.region[call]]
    collective = of_roles(trace, calls.region[call], COLLECTIVE_ROLES)
    known = collective & (trace.comm[events] >= 0)
    lost = int((collective & ~known).sum())
    events, call, role = events[known], call[known], role[known]
    comm = trace.comm[events].astype(np.int64)
    member = _member_positions(trace)[comm, locations.ranks(trace)[calls.location[call]]]
    turn = occurrence(comm * len(trace.locations) + calls.location[call])
    order = np.lexsort((member, turn, comm))
    key = comm[order] * (int(turn.max(initial=0)) + 1) + turn[order]
    starts = np.flatnonzero(np.r_[True, np.diff(key) != 0]) if len(key) else np.zeros(0, dtype=np.int64)
    size = np.diff(np.r_[starts, len(key)])
    members = np.array([len(group) for group in trace.communicators] or [0])
    lowest, highest = (f.reduceat(role[order], starts) if len(starts) else role for f in (np.minimum, np.maximum))
    complete = (size == members[comm[order][starts]]) & (lowest == highest)
    chosen = order[np.repeat(complete, size)]
    starts = starts[complete]
    root = trace.partner[events][order][starts].astype(np.int64)
    group = comm[order][starts]
    return Collectives(
        call=call[chosen],
        first=np.r_[0, np.cumsum(size[complete])].astype(np.int64),
        comm=group,
        role=role[order][starts],
        root=np.where(root >= 0, _member_positions(trace)[group, np.maximum(root, 0)], -1),
        unmatched=lost + len(order) - len(chosen),
        torn=len(order) - len(chosen),
    )


def messages(trace: Trace, calls: Calls) -> Messages:
    """Return the messages whose two ends are both in the trace."""
    location = locations.of_events(trace)
    rank = locations.ranks(trace)[location]
    sends, _ = recorded(trace, calls, *SENDS)
    receives, _ = recorded(trace, calls, *RECEIVES)
    posts = _posts(trace, location, receives)
    order = np.argsort(posts, kind="stable")
    receives, posts = receives[order], posts[order]
    channel = _channels(
        trace,
        np.r_[rank[sends], trace.partner[receives]],
        np.r_[trace.partner[sends], rank[receives]],
        np.r_[sends, receives],
    )
    pairs = _pairs(channel, trace.size[np.r_[sends, receives]], len(sends))
    done = _completions(trace, location, sends)
    opened = calls.open_after
    send, receive, post = sends[pairs[0]], receives[pairs[1]], posts[pairs[1]]
    end = done[pairs[0]]
    return Messages(
        send=outermost(calls, opened[send]),
        receive=outermost(calls, opened[receive]),
        posted=outermost(calls, opened[post]),
        send_end=np.where(end >= 0, outermost(calls, opened[np.maximum(end, 0)]), -1),
        size=np.maximum(trace.size[send], trace.size[receive]),
        lost_sends=sends[_others(len(sends), pairs[0])],
        lost_posts=_unused(trace.kind == Kind.IRECV_POST, posts),
        lost_receives=len(receives) - len(receive),
    )


def _posts(trace: Trace, location: IntArray, receives: IntArray) -> IntArray:
    """Return for each receive the event that posted it: its own, or the latest post of the same request."""
    posts = receives.copy()
    waits = trace.kind[receives] == Kind.IRECV
    source = np.flatnonzero(trace.kind == Kind.IRECV_POST)
    found = _latest_same_request(trace, location, source, receives[waits])
    posts[waits] = np.where(found >= 0, found, receives[waits])
    return posts


def _completions(trace: Trace, location: IntArray, sends: IntArray) -> IntArray:
    """Return for each send the event that completed it, -1 for blocking ones and where it is not recorded."""
    done = np.full(len(sends), -1, dtype=np.int64)
    ends = np.flatnonzero(trace.kind == Kind.ISEND_DONE)
    source = sends[trace.kind[sends] == Kind.ISEND]
    start = _latest_same_request(trace, location, source, ends)
    place = np.searchsorted(sends, start[start >= 0])
    done[place] = ends[start >= 0]
    return done


def _latest_same_request(trace: Trace, location: IntArray, source: IntArray, query: IntArray) -> IntArray:
    """Return for each event of ``query`` the latest earlier one of ``source`` with its location and request, or -1."""
    both = np.concatenate((source, query))
    if not len(source) or not len(query):
        return np.full(len(query), -1, dtype=np.int64)
    is_source = np.arange(len(both)) < len(source)
    order = np.lexsort((both, trace.request[both], location[both]))
    place = np.arange(len(order))
    ordered = both[order]
    fresh = np.r_[True, (np.diff(location[ordered]) != 0) | (trace.request[ordered][1:] != trace.request[ordered][:-1])]
    group = np.maximum.accumulate(np.where(fresh, place, 0))
    last = np.maximum.accumulate(np.where(is_source[order], place, -1))
    found = np.empty(len(both), dtype=np.int64)
    found[order] = np.where(last >= group, ordered[np.maximum(last, 0)], -1)
    return found[len(source) :]


def _channels(trace: Trace, source: IntArray, target: IntArray, events: IntArray) -> IntArray:
    """Return one number per event, equal where source, target, communicator and tag are."""
    tags, tag = np.unique(trace.tag[events], return_inverse=True)
    ranks = int(max(source.max(initial=0), target.max(initial=0))) + 1
    ends = source.astype(np.int64) * ranks + target
    return (ends * (len(trace.communicators) + 1) + trace.comm[events] + 1) * len(tags) + tag


def _pairs(channel: IntArray, size: IntArray, sends: int) -> tuple[IntArray, IntArray]:
    """Return indices of sends and receives that belong together: first those of one size, then the others.

    Where a tool records no end of some messages, counting alone would pair what is left with messages of other kinds;
    a receive that was posted for more than it got finds its send in the second round.
    """
    sizes, which = np.unique(size, return_inverse=True)
    kind = channel * len(sizes) + which
    send, receive = _pair_in_order(kind[:sends], kind[sends:])
    left_sends, left_receives = _others(sends, send), _others(len(channel) - sends, receive)
    more = _pair_in_order(channel[left_sends], channel[sends + left_receives])
    return np.r_[send, left_sends[more[0]]], np.r_[receive, left_receives[more[1]]]


def _pair_in_order(sends: IntArray, receives: IntArray) -> tuple[IntArray, IntArray]:
    """Return indices of sends and receives, the k-th of a channel with the k-th.

    A stable sort by channel puts the sends of each before its receives, both in their order.
    """
    channel = np.r_[sends, receives]
    order = np.argsort(channel, kind="stable")
    fresh = np.flatnonzero(np.r_[True, np.diff(channel[order]) != 0][: len(order)])
    length = np.diff(np.r_[fresh, len(order)])
    sending = order < len(sends)
    sent = np.add.reduceat(sending, fresh, dtype=np.int64) if len(fresh) else length
    place = np.arange(len(order)) - np.repeat(fresh, length)
    turn = np.where(sending, place, place - np.repeat(sent, length))
    paired = turn < np.repeat(np.minimum(sent, length - sent), length)
    return order[paired & sending], order[paired & ~sending] - len(sends)


def _others(count: int, taken: IntArray) -> IntArray:
    """Return the numbers below ``count`` that are not in ``taken``."""
    return _unused(np.ones(count, dtype=np.bool_), taken)


def _unused(present: npt.NDArray[np.bool_], taken: IntArray) -> IntArray:
    """Return where ``present`` holds and ``taken`` does not point."""
    left = present.copy()
    left[taken] = False
    return np.flatnonzero(left)


def _member_positions(trace: Trace) -> IntArray:
    """Return (communicators, ranks): the position of each rank in each communicator, -1 if it is no member."""
    ranks = max((location.rank for location in trace.locations), default=0) + 1
    known = max((max(group, default=0) for group in trace.communicators), default=0) + 1
    positions = np.full((len(trace.communicators), max(ranks, known)), -1, dtype=np.int64)
    for number, group in enumerate(trace.communicators):
        positions[number, list(group)] = np.arange(len(group))
    return positions
