"""What one thread's rows say only together: which call each end belongs to, and which calls a message lies in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Kind, Role

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

#: Kinds of rows that are dropped.
NOTHING: Final = 0
#: By role: whether such a call can send a message, post its receive, complete that.
SENDING, POSTING, COMPLETING = (
    np.isin(np.arange(max(Role) + 1), roles)
    for roles in (
        (Role.SEND, Role.SENDRECV, Role.POST),
        (Role.RECV, Role.SENDRECV, Role.POST),
        (Role.RECV, Role.SENDRECV, Role.WAIT),
    )
)


@dataclass(frozen=True, slots=True)
class PairingFaults:
    """What does not fit: ends of calls that never began, and calls that begin inside one of their own type."""

    unopened_calls: int
    unclosed_calls: int


@dataclass(frozen=True, slots=True)
class MessageEnds:
    """The ends of messages at one thread: ``message`` is the place of each in what was given, ``before`` its next row.

    ``kind`` is a ``Kind``; ``ticks`` lie between those of the neighbouring rows. ``stray_messages`` of them lie in no
    call that could send or receive.
    """

    message: IntArray
    before: IntArray
    kind: npt.NDArray[np.uint8]
    ticks: IntArray
    stray_messages: int


def close_calls(
    kind: npt.NDArray[np.uint8], region: npt.NDArray[np.int32], group: IntArray, nested: IntArray
) -> PairingFaults:
    """Give every end the region of its beginning, in place; ends without beginning become nothing.

    Calls of one ``group`` nest in themselves only where ``nested`` says so; a call of another one that begins
    before the last ended ends that one.
    """
    unopened = unclosed = 0
    moves = np.flatnonzero(kind <= Kind.LEAVE)
    for number in np.unique(group[moves]).tolist():
        mine = moves[group[moves] == number]
        entering = kind[mine] == Kind.ENTER
        depth = np.cumsum(np.where(entering, 1, -1))
        if depth.min() < 0:
            bare = ~entering & (depth < np.minimum.accumulate(np.r_[0, depth[:-1]]))
            kind[mine[bare]] = NOTHING
            unopened += int(bare.sum())
            mine, entering = mine[~bare], entering[~bare]
            depth = np.cumsum(np.where(entering, 1, -1))
        if not len(mine):
            continue
        unclosed += int(depth[-1])
        if number not in nested:
            unclosed += int((depth > 1).sum())
        order = np.argsort(np.where(entering, depth, depth + 1), kind="stable")
        leaves = np.flatnonzero(~entering[order])
        region[mine[order[leaves]]] = region[mine[order[leaves - 1]]]
    return PairingFaults(unopened, unclosed)


def calls_cross(kind: npt.NDArray[np.uint8], group: IntArray, chosen: int, others: IntArray) -> bool:
    """Return whether calls of the ``chosen`` group do not alternate, or overlap with calls of ``others``."""
    moves = np.flatnonzero(_is_call_edge(kind))
    moves = moves[(group[moves] == chosen) | np.isin(group[moves], others)]
    step = np.where(kind[moves] == Kind.ENTER, 1, -1)
    mine = group[moves] == chosen
    if not mine.any():
        return False
    depth = np.cumsum(np.where(mine, 0, step))
    own = step[mine]
    if own[0] != 1 or (len(own) % 2) or (own[::2] != 1).any() or (own[1::2] != -1).any():
        return True
    begin, end = np.flatnonzero(mine)[::2], np.flatnonzero(mine)[1::2]
    inside = np.minimum.reduceat(np.r_[depth, depth[-1]], np.stack((begin, end + 1), axis=1).reshape(-1))[::2]
    return bool((depth[begin] != depth[end]).any() or (inside < depth[begin]).any())


def drop_crossing_groups(
    kind: npt.NDArray[np.uint8], group: IntArray, own: IntArray, parts: list[slice[int, int, None]]
) -> set[int]:
    """Turn events of groups of the user's ``own`` that enclose no calls on some thread into nothing; return those.

    ``parts`` are the rows of each thread. Each group is tried beside all others that were kept before.
    """
    present = np.unique(np.concatenate([np.unique(group[part][_is_call_edge(kind[part])]) for part in parts]))
    kept = np.setdiff1d(present, own)
    dropped = set()
    for number in np.intersect1d(present, own).tolist():
        if any(calls_cross(kind[part], group[part], number, kept) for part in parts):
            for part in parts:
                kind[part][_is_call_edge(kind[part]) & (group[part] == number)] = NOTHING
            dropped.add(number)
        else:
            kept = np.r_[kept, number]
    return dropped


def _is_call_edge(kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (kind == Kind.ENTER) | (kind == Kind.LEAVE)
    return found


class ThreadCalls:
    """The rows of one thread, sorted, with the calls among them that can hold a message."""

    def __init__(self, ticks: IntArray, kind: npt.NDArray[np.uint8], role: npt.NDArray[np.int64]) -> None:
        self._ticks = ticks
        self._role = role
        holding = (SENDING | COMPLETING)[role]
        enters = np.flatnonzero((kind == Kind.ENTER) & holding)
        leaves = np.flatnonzero((kind == Kind.LEAVE) & holding)
        # Beginnings and ends of calls that lie in no other one, each with its own
        rows = np.concatenate((enters, leaves))
        order = np.argsort(rows)
        rows, entering = rows[order], (np.arange(len(rows)) < len(enters))[order]
        whole = np.flatnonzero(entering[:-1] & ~entering[1:]) if len(rows) > 1 else np.zeros(0, dtype=np.int64)
        self._enters, self._leaves = rows[whole], rows[whole + 1]

    def place_sends(self, ticks: IntArray) -> MessageEnds:
        """Return where messages are sent: in the last call that can send and had begun."""
        call, found = self._find_open_call(ticks, SENDING)
        kind = np.where(found & (self._find_roles(call) == Role.POST), Kind.ISEND, Kind.SEND).astype(np.uint8)
        return self._build_ends(np.arange(len(ticks)), self._find_next_rows(call, found, ticks), kind, ticks, found)

    def place_receives(self, post: IntArray, done: IntArray) -> tuple[MessageEnds, MessageEnds]:
        """Return where receives are posted, unless in the call that completes them, and where they complete."""
        begun, posted = self._find_open_call(post, POSTING)
        ended, completed = self._find_ending_call(done)
        apart = ~(posted & completed & (begun == ended))
        after = np.searchsorted(self._ticks, done, side="left")
        before = np.where(completed, self._leaves[ended] if len(self._leaves) else after, after)
        kinds = np.where(apart, Kind.IRECV, Kind.RECV).astype(np.uint8)
        there = np.flatnonzero(apart)
        posts = self._build_ends(
            there,
            self._find_next_rows(begun, posted, post)[there],
            np.full(len(there), Kind.IRECV_POST, dtype=np.uint8),
            post[there],
            posted[there],
        )
        return posts, self._build_ends(np.arange(len(done)), before, kinds, done, completed)

    def _find_roles(self, call: IntArray) -> npt.NDArray[np.int64]:
        return self._role[self._enters[call]] if len(self._enters) else np.full(len(call), -1)

    def _select_calls(self, roles: npt.NDArray[np.bool_]) -> IntArray:
        return np.flatnonzero(roles[self._role[self._enters]])

    def _find_open_call(self, ticks: IntArray, roles: npt.NDArray[np.bool_]) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the call among ``roles`` that was open at each time, the later of two, and whether there is one."""
        chosen = self._select_calls(roles)
        if not len(chosen):
            return np.zeros(len(ticks), dtype=np.int64), np.zeros(len(ticks), dtype=bool)
        place = np.searchsorted(self._ticks[self._enters[chosen]], ticks, side="right") - 1
        call = chosen[np.maximum(place, 0)]
        return call, (place >= 0) & (self._ticks[self._leaves[call]] >= ticks)

    def _find_ending_call(self, ticks: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the completing call that ends at each time or is open then, the earlier one of two."""
        chosen = self._select_calls(COMPLETING)
        if not len(chosen):
            return np.zeros(len(ticks), dtype=np.int64), np.zeros(len(ticks), dtype=bool)
        place = np.searchsorted(self._ticks[self._leaves[chosen]], ticks, side="left")
        call = chosen[np.minimum(place, len(chosen) - 1)]
        return call, (place < len(chosen)) & (self._ticks[self._enters[call]] <= ticks)

    def _find_next_rows(self, call: IntArray, found: npt.NDArray[np.bool_], ticks: IntArray) -> IntArray:
        """Return the row behind the beginning of each call; without one, the row that comes next in time."""
        next_row = np.searchsorted(self._ticks, ticks, side="right")
        return np.where(found, self._enters[call] + 1, next_row) if len(self._enters) else next_row

    def _build_ends(
        self,
        message: IntArray,
        before: IntArray,
        kind: npt.NDArray[np.uint8],
        ticks: IntArray,
        found: npt.NDArray[np.bool_],
    ) -> MessageEnds:
        if len(self._ticks):
            least = self._ticks[np.maximum(before - 1, 0)]
            most = self._ticks[np.minimum(before, len(self._ticks) - 1)]
            ticks = np.clip(ticks, least, np.maximum(least, most))
        return MessageEnds(message, before, kind, ticks, int(np.count_nonzero(~found)))
