"""Match calls: the ranks of one collective, the two ends of one message.

MPI keeps the order of collectives on a communicator and of messages between two ranks with one tag, so counting is
enough; no time is looked at, which is why clocks may be aligned afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace import locations
from advisor.trace.events import RECEIVES, SENDS, Kind, Role, Trace, are_kinds
from advisor.trace.nesting import Calls, count_previous, have_roles, roles_of_regions, select_recorded

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

COLLECTIVE_ROLES = (Role.BARRIER, Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN)


@dataclass(frozen=True, slots=True)
class Collectives:
    """Complete collectives. ``call`` holds the calls, one instance after the other, ranks in the communicator's order.

    ``first`` (instances + 1,) delimits them; ``comm``, ``role`` and ``root`` (position within the members, -1 none)
    describe each. ``unmatched_ends`` counts collective calls that belong to no complete instance; of ``torn`` ones of
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
    def unmatched_ends(self) -> int:
        """How many ends of messages have no partner."""
        return len(self.lost_sends) + len(self.lost_posts) + self.lost_receives


def match_collectives(trace: Trace, calls: Calls) -> Collectives:
    """Return the collectives that all members of their communicator took part in."""
    events, call = select_recorded(calls, Kind.COLLECTIVE)
    role = roles_of_regions(trace)[calls.region[call]]
    collective = have_roles(trace, calls.region[call], COLLECTIVE_ROLES)
    known = collective & (trace.comm[events] >= 0)
    lost = int((collective & ~known).sum())
    events, call, role = events[known], call[known], role[known]
    comm = trace.comm[events].astype(np.int64)
    find_position = _member_positions(trace)
    member = find_position(comm, locations.ranks_of_locations(trace)[calls.location[call]])
    turn = count_previous(comm * len(trace.locations) + calls.location[call])
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
        root=find_position(group, root),
        unmatched=lost + len(order) - len(chosen),
        torn=len(order) - len(chosen),
    )


def select_collectives(calls: Calls, joint: Collectives, comparable: npt.NDArray[np.bool_]) -> Collectives:
    """Return the collectives of ``comparable`` (locations,) processes, which is all or none of those of each."""
    chosen, size = comparable[calls.location[joint.call[joint.first[:-1]]]], np.diff(joint.first)
    return replace(
        joint,
        call=joint.call[np.repeat(chosen, size)],
        first=np.r_[0, np.cumsum(size[chosen])].astype(np.int64),
        **{name: getattr(joint, name)[chosen] for name in ("comm", "role", "root")},
    )


def select_messages(trace: Trace, calls: Calls, messages: Messages, comparable: npt.NDArray[np.bool_]) -> Messages:
    """Return the messages and lost ends of ``comparable`` (locations,) processes, which is both or none of each two."""
    chosen = comparable[calls.location[messages.send]]
    parts = {name: getattr(messages, name)[chosen] for name in ("send", "receive", "posted", "send_end", "size")}
    for name in ("lost_sends", "lost_posts"):
        events = getattr(messages, name)
        parts[name] = events[comparable[locations.locations_of_events(trace, events)]]
    return replace(messages, **parts)


def match_messages(trace: Trace, calls: Calls, *, compiled: bool = False) -> Messages:
    """Return the messages whose two ends are both in the trace; ``compiled`` says whether loops are compiled."""
    sent, received = (np.flatnonzero(are_kinds(calls.inner_kind, *kinds)) for kinds in (SENDS, RECEIVES))
    find_ends = _find_ends_by_loop if compiled else _find_ends
    posted, ended = find_ends(trace, calls, sent, received)
    if (posted[1:] < posted[:-1]).any():
        order = np.argsort(posted, kind="stable")
        received, posted = received[order], posted[order]
    sends, receives, posts = (calls.inner_events[each] for each in (sent, received, posted))
    sending, receiving, posting = (calls.inner_call[each] for each in (sent, received, posted))
    rank = locations.ranks_of_locations(trace)
    # one number per event, equal where source, target and communicator are
    source = np.r_[rank[calls.location[sending]], trace.partner[receives]]
    target = np.r_[trace.partner[sends], rank[calls.location[receiving]]]
    ranks = int(max(source.max(initial=0), target.max(initial=0))) + 1
    ends = (source * ranks + target) * (len(trace.communicators) + 1) + trace.comm[np.r_[sends, receives]] + 1
    pairs = _pair_messages(trace, ends, sends, receives, compiled=compiled)
    return Messages(
        send=sending[pairs[0]],
        receive=receiving[pairs[1]],
        posted=posting[pairs[1]],
        send_end=ended[pairs[0]],
        size=np.maximum(trace.size[sends[pairs[0]]], trace.size[receives[pairs[1]]]),
        lost_sends=sends[_select_others(len(sends), pairs[0])],
        lost_posts=_select_unused(trace.kind == Kind.IRECV_POST, posts),
        lost_receives=len(receives) - len(pairs[1]),
    )


def _find_ends(trace: Trace, calls: Calls, sent: IntArray, received: IntArray) -> tuple[IntArray, IntArray]:
    """Return the event that posted each receive, its own or the latest post of the same request, and who ended sends.

    Events are numbered among those inside of calls; of sends it is the call that completed them, -1 for blocking ones
    and where that is not recorded.
    """
    posted, ended = received.copy(), np.full(len(sent), -1, dtype=np.int64)
    queries, sources = _find_latest_request(trace, calls, Kind.IRECV_POST, Kind.IRECV)
    posted[np.searchsorted(received, queries)] = sources
    queries, sources = _find_latest_request(trace, calls, Kind.ISEND, Kind.ISEND_DONE)
    ended[np.searchsorted(sent, sources)] = calls.inner_call[queries]
    return posted, ended


def _find_ends_by_loop(trace: Trace, calls: Calls, sent: IntArray, received: IntArray) -> tuple[IntArray, IntArray]:
    """Return what ``_find_ends`` does, by a compiled loop."""
    from advisor.trace import compiled_key_loops

    linked = np.empty(len(calls.inner_events), dtype=np.int64)
    inner = calls.inner_events, calls.inner_kind, calls.inner_call
    compiled_key_loops.link_requests(inner, trace.request, calls.location, linked)
    return np.where(linked[received] >= 0, linked[received], received), linked[sent]


def _find_latest_request(trace: Trace, calls: Calls, source: Kind, query: Kind) -> tuple[IntArray, IntArray]:
    """Return each ``query`` that has a ``source`` with its request before it, and the latest of these.

    Requests are those of a location; events are numbered among those inside of calls.
    """
    chosen = np.flatnonzero(are_kinds(calls.inner_kind, source, query))
    is_source = calls.inner_kind[chosen] == source
    request, location = trace.request[calls.inner_events[chosen]], calls.location[calls.inner_call[chosen]]
    # for each element the latest source up to it with the same location and request, or -1
    order = np.lexsort((request, location))
    place = np.arange(len(order))
    fresh = np.r_[True, (np.diff(location[order]) != 0) | (request[order][1:] != request[order][:-1])][: len(order)]
    group = np.maximum.accumulate(np.where(fresh, place, 0))
    last = np.maximum.accumulate(np.where(is_source[order], place, -1))
    latest = np.empty(len(order), dtype=np.int64)
    latest[order] = np.where(last >= group, order[np.maximum(last, 0)], -1)
    known = np.flatnonzero(~is_source & (latest >= 0))
    return chosen[known], chosen[latest[known]]


def _pair_messages(
    trace: Trace, ends: IntArray, sends: IntArray, receives: IntArray, *, compiled: bool
) -> tuple[IntArray, IntArray]:
    """Return indices of sends and receives that belong together: first those of one size, then the others.

    Where a tool records no end of some messages, counting alone would pair what is left with messages of other kinds;
    a receive that was posted for more than it got finds its send in the second round.
    """
    in_order = _pair_by_loop if compiled else _pair_in_order
    events, count = np.r_[sends, receives], len(sends)
    tag, size = trace.tag[events], trace.size[events]
    partner = in_order(ends, tag, size, count)
    left = np.r_[_select_others(count, partner[partner >= 0]), count + np.flatnonzero(partner < 0)]
    left_sends = int(np.searchsorted(left, count))
    if 0 < left_sends < len(left):
        more = in_order(ends[left], tag[left], np.zeros(len(left), dtype=np.int64), left_sends)
        partner[left[left_sends:] - count] = np.where(more >= 0, left[more], -1)
    receive = np.flatnonzero(partner >= 0)
    return partner[receive], receive


def _pair_by_loop(ends: IntArray, tag: npt.NDArray[np.int32], size: IntArray, sends: int) -> IntArray:
    from advisor.trace import compiled_key_loops

    partner = np.full(len(ends) - sends, -1, dtype=np.int64)
    compiled_key_loops.pair_in_order(ends, tag, size, sends, partner)
    return partner


def _pair_in_order(ends: IntArray, tag: npt.NDArray[np.int32], size: IntArray, sends: int) -> IntArray:
    """Return for each receive the send it belongs to: the k-th receive of a sort gets the k-th send of it, or -1.

    Sends come first in the columns. A stable sort by channel puts the sends of each before its receives, both in their
    order.
    """
    tags, which = np.unique(tag, return_inverse=True)
    sizes, large = np.unique(size, return_inverse=True)
    channel = (ends * max(len(tags), 1) + which) * max(len(sizes), 1) + large
    order = np.argsort(channel, kind="stable")
    fresh = np.flatnonzero(np.r_[True, np.diff(channel[order]) != 0][: len(order)])
    length = np.diff(np.r_[fresh, len(order)])
    sending = order < sends
    sent = np.add.reduceat(sending, fresh, dtype=np.int64) if len(fresh) else length
    place = np.arange(len(order)) - np.repeat(fresh, length)
    turn = np.where(sending, place, place - np.repeat(sent, length))
    paired = turn < np.repeat(np.minimum(sent, length - sent), length)
    partner = np.full(len(ends) - sends, -1, dtype=np.int64)
    partner[order[paired & ~sending] - sends] = order[paired & sending]
    return partner


def _select_others(count: int, taken: IntArray) -> IntArray:
    """Return the numbers below ``count`` that are not in ``taken``."""
    return _select_unused(np.ones(count, dtype=np.bool_), taken)


def _select_unused(present: npt.NDArray[np.bool_], taken: IntArray) -> IntArray:
    """Return where ``present`` holds and ``taken`` does not point."""
    left = present.copy()
    left[taken] = False
    return np.flatnonzero(left)


def _member_positions(trace: Trace) -> Callable[[IntArray, IntArray], IntArray]:
    """Return what finds the position of ranks in communicators, -1 for no member.

    It searches the members of all communicators: a table of communicators x ranks outgrows the memory where thousands
    of ranks have communicators of their own.
    """
    size = [len(group) for group in trace.communicators]
    rank = np.array([rank for group in trace.communicators for rank in group], dtype=np.int64)
    position = np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(count) for count in size)])
    ranks = int(rank.max(initial=-1)) + 1
    key = np.repeat(np.arange(len(size)), size) * ranks + rank
    order = np.argsort(key, kind="stable")
    sorted_key, position = np.r_[key[order], -1], np.r_[position[order], -1]

    def find_position(communicator: IntArray, member: IntArray) -> IntArray:
        wanted = np.where((member >= 0) & (member < ranks), communicator * ranks + member, -2)
        place = np.searchsorted(sorted_key[:-1], wanted)
        return np.where(sorted_key[place] == wanted, position[place], -1)

    return find_position
