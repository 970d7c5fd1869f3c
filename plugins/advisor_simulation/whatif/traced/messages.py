"""Changes of messages: fewer and larger ones, earlier ones, fewer bytes, and transposes in pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role
from advisor.trace.nesting import count_previous
from advisor_simulation.replay.program import RECEIVED, SENDING, Op
from advisor_simulation.whatif.call_grouping import FASTEST
from advisor_simulation.whatif.changes import PIECES
from advisor_simulation.whatif.traced.background import LARGE_B, role_mask
from advisor_simulation.whatif.traced.rows import ReplayRows, message_mask
from advisor_simulation.whatif.traced.stretches import count_since, find_message_ends, find_stretches, group_means

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

    Mask = npt.NDArray[np.bool_]

#: The part of the bytes that is left where not all of them are used.
FEWER: Final = 0.75
#: So many pieces of work become one, at most, and each rank still gets so many in a round, which keep the balance.
TOGETHER: Final = 16
LEAST_PIECES: Final = 20
#: Libraries send messages of 4 to 64 KiB at most at once by themselves.
EAGER_B: Final = 1 << 16
#: A message of at most so many bytes may be a token.
TOKEN_B: Final = 64
#: How far before a row those are put that come in front of it.
_BEFORE: Final = 0.25
_OF_NEIGHBOURS: Final = "eighbor_"
_PARTS: Final = (SENDING, (Op.SENT,), RECEIVED, (Op.IRECV,))


def group_messages(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Send one message where several go from one stretch of calls of a rank to one of another.

    It is sent with the first and received with the first. It takes as long as they do on average, and its
    additional bytes move at ``FASTEST``. Messages with computation in between, as in a wavefront, stay as they are, and
    so do those of a collective among neighbours: one call sends them all.
    """
    place = np.stack([find_stretches(rows).number, count_since(rows, (Op.JOIN,))], axis=1)
    send, receive = find_message_ends(rows)
    known = np.flatnonzero((send >= 0) & (receive >= 0))
    made_together = np.array([*(_OF_NEIGHBOURS in name for name in rows.program.names), False])[rows.call]
    known = known[(chosen & ~made_together)[send[known]]]
    if not len(known):
        return None
    _, group = np.unique(np.hstack([place[send[known]], place[receive[known]]]), axis=0, return_inverse=True)
    group = group.ravel()
    count = int(group.max()) + 1
    return _merge_groups(rows, known, group, count) if count < len(known) else None


def _merge_groups(rows: ReplayRows, known: IntArray, group: IntArray, count: int) -> ReplayRows:
    """Drop all messages but the first one sent of each group, which becomes the mean of them with all their bytes."""
    send = find_message_ends(rows)[0]
    order = np.argsort(send[known], kind="stable")[::-1]
    head = np.empty(count, dtype=np.int64)
    head[group[order]] = known[order]
    of_message = np.full(len(rows.program.source), -1, dtype=np.int64)
    of_message[known] = group
    of_row, message = np.full(len(rows), -1, dtype=np.int64), message_mask(rows)
    of_row[message] = of_message[rows.link[message]]  # of other rows the link is to a collective
    bytes_of = np.bincount(group, rows.value[send[known]], minlength=count)
    more = (bytes_of - rows.value[send[head]]) / FASTEST
    seconds, wait_s, value = rows.seconds.copy(), rows.wait_s.copy(), rows.value.copy()
    for ops in _PARTS:
        mine = np.flatnonzero(rows.op_mask(*ops) & (of_row >= 0))
        for part in (seconds, wait_s):
            part[mine] = group_means(part[mine], of_row[mine], count)[of_row[mine]]
        if ops == SENDING:
            seconds[mine] += more[of_row[mine]]
            value[mine] = bytes_of[of_row[mine]]
    return replace(rows, seconds=seconds, wait_s=wait_s, value=value).select_rows(
        (of_row < 0) | np.isin(rows.link, head)
    )


def hand_out_more(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Drop messages of each rank to a hub, and its answers, but every k-th: with those comes so much more work.

    The work stays with who did it. k is ``TOGETHER``, or less where too few pieces would be left in a round to keep the
    balance. A round ends with an answer behind which the rank asks again without work (there was none left) or meets
    others; these answers stay.
    """
    send, receive = find_message_ends(rows)
    known = np.flatnonzero((send >= 0) & (receive >= 0))
    known = known[chosen[send[known]]]
    if not len(known):
        return None
    known = known[np.argsort(send[known], kind="stable")]
    source, target = (ends[known].astype(np.int64) for ends in (rows.program.source, rows.program.target))
    hub = int(np.bincount(np.concatenate([source, target])).argmax())
    turn = count_previous(source * rows.program.ranks + target)
    answers = np.flatnonzero(source == hub)
    answers = answers[np.argsort(receive[known[answers]], kind="stable")]
    works, ends = _find_rounds(rows, receive[known[answers]])
    together = min(TOGETHER, int(works.sum() / max(ends.sum(), 1) // LEAST_PIECES))
    if together < 2:
        return None
    asker = np.where(source == hub, target, source)
    of_end = np.isin(asker * len(known) + turn, (asker * len(known) + turn)[answers[ends]])
    gone = known[(turn % together > 0) & ~of_end]
    return rows.select_rows(~(message_mask(rows) & np.isin(rows.link, gone)))


def _find_rounds(rows: ReplayRows, answers: IntArray) -> tuple[Mask, Mask]:
    """Return which ``answers`` of a hub (rows, in order) bring work, and which end a round."""
    stretch, meeting = find_stretches(rows).number[answers], count_since(rows, (Op.JOIN,))[answers]
    is_last = np.diff(rows.line[answers], append=-1) != 0
    works = is_last | (np.diff(stretch, append=-1) != 0)
    return works, ~works | is_last | (np.diff(meeting, append=-1) != 0)


def find_own_messages(rows: ReplayRows) -> Mask:
    """Return which rows are of messages that a rank sends to itself: its processor copies them, nothing travels."""
    found = message_mask(rows).copy()
    found[found] = (rows.program.source == rows.program.target)[rows.link[found]]
    return found


def drop_tokens(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Drop messages of a few bytes, which tell a rank that it is its turn: all do at once what they did in turn."""
    tokens = message_mask(rows) & chosen
    tokens[tokens] = rows.program.sizes[rows.link[tokens]] <= TOKEN_B
    return rows.select_rows(~tokens) if tokens.any() else None


def post_early(rows: ReplayRows, chosen: Mask) -> ReplayRows:
    """Post receives so early that no send waits for them: a send takes what it took once its receive was there."""
    waiting = rows.op_mask(*SENDING, Op.SENT) & chosen & (rows.awaits >= 0)
    return replace(rows, awaits=np.where(waiting, -1, rows.awaits)) if waiting.any() else rows


def send_at_once(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Send messages without asking, as the library does small ones; None where no send waits that could be.

    A synchronous send (MPI_Ssend) waits for its receive whatever the limit of the library is, and messages above
    ``EAGER_B`` cost more to be copied twice than to be waited for.
    """
    synchronous = np.array([*("ssend" in name.lower() for name in rows.program.names), False])
    of_message = np.zeros(len(rows.program.source) + 1, dtype=bool)
    asking = rows.op_mask(*SENDING) & (rows.link >= 0) & synchronous[rows.call]
    of_message[rows.link[asking]] = True
    eager = chosen & message_mask(rows)
    eager[eager] = ~of_message[rows.link[eager]] & (rows.program.sizes[rows.link[eager]] <= EAGER_B)
    waiting = eager & rows.op_mask(*SENDING, Op.SENT) & (rows.awaits >= 0)
    return post_early(rows, eager) if waiting.any() else None


def send_early(rows: ReplayRows, chosen: Mask) -> ReplayRows:
    """Send before the computation that comes in front of it, and post receives early.

    Not where that computation follows a receive: it may compute what is sent from what was received.
    """
    parts, joins = find_stretches(rows), count_since(rows, (Op.JOIN,))
    sends = np.flatnonzero(rows.op_mask(*SENDING) & chosen)
    here = parts.number[sends]
    computed = parts.find_previous(here)
    free = (computed >= 0) & (joins[sends] == joins[parts.first[here] - 1])
    free[free] &= ~_follows_receive(rows, parts.first[computed[free]])
    key = rows.key.copy()
    moved = sends[free]
    begin = parts.first[computed[free]]
    key[moved] = rows.key[begin] - _BEFORE + _BEFORE / 2 * (moved - begin) / len(rows)
    return replace(post_early(rows, chosen), key=key).sort_rows()


def _follows_receive(rows: ReplayRows, begin: IntArray) -> Mask:
    """Return whether the last call before a row, among those that decide, is a receive and not a meeting."""
    deciding = np.flatnonzero(rows.op_mask(*RECEIVED, Op.JOIN))
    last = deciding[np.maximum(np.searchsorted(deciding, begin) - 1, 0)] if len(deciding) else np.zeros_like(begin)
    same = (last < begin) & (rows.line[last] == rows.line[begin])
    found: Mask = same & rows.op_mask(*RECEIVED)[last]
    return found


def send_fewer_bytes(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Let large messages hold a quarter less, and take so much less time."""
    size = rows.program.sizes
    large = message_mask(rows) & chosen
    large[large] = size[rows.link[large]] >= LARGE_B
    moving = large & rows.op_mask(*SENDING, Op.SENT, Op.RECV, Op.DONE)
    if not moving.any():
        return None
    return _scale_times(rows, moving, FEWER)


def transpose_in_pieces(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Split all-to-all exchanges into ``PIECES``, each sent once computed: the last one can't be hidden."""
    names = np.array(["alltoall" in name.lower() for name in rows.program.collectives.name] + [False])
    joins = chosen & role_mask(rows, Role.ALL_TO_ALL)
    joins[joins] = names[rows.link[joins]]
    if not joins.any():
        return None
    return _scale_times(rows, joins, 1.0 / PIECES)


def _scale_times(rows: ReplayRows, these: Mask, factor: float) -> ReplayRows:
    scale = np.where(these, factor, 1.0)
    return replace(rows, seconds=rows.seconds * scale, wait_s=rows.wait_s * scale)
