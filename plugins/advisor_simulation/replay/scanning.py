"""The time line of each process, cut into computation and the operations of its communication calls.

One plain loop over the events, in Python for small traces and compiled for large ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor.trace.events import Kind, Role, Trace
from advisor.trace.meetings import are_set_up
from advisor_simulation.replay.numba_compiler import choose_compiled, numba_helper
from advisor_simulation.replay.program import Op

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Mask = npt.NDArray[np.bool_]

ENTER, LEAVE = int(Kind.ENTER), int(Kind.LEAVE)
SENDRECV: Final = int(Role.SENDRECV)
BURST, FIXED, SENT, IRECV, DONE = int(Op.BURST), int(Op.FIXED), int(Op.SENT), int(Op.IRECV), int(Op.DONE)
SEND, ISEND, RECV, JOIN = int(Op.SEND), int(Op.ISEND), int(Op.RECV), int(Op.JOIN)
#: Calls nested deeper than this count as the one at this depth.
DEEPEST: Final = 256
#: Role of a region that is no call of MPI, and of calls whose time no processor speed changes.
_MPI: Final = tuple(int(role) for role in Role if Role.INIT <= role <= Role.LOCAL)
#: Calls in which all meet, and which then take their own time on any network.
SETTING_UP: Final = (Role.INIT, Role.FINALIZE, Role.COMM_OTHER)
_OPS: Final = {
    Kind.SEND: SEND, Kind.ISEND: ISEND, Kind.ISEND_DONE: SENT, Kind.RECV: RECV, Kind.IRECV: DONE,
    Kind.IRECV_POST: IRECV, Kind.COLLECTIVE: JOIN,
}  # fmt: skip


class ScannedRows(NamedTuple):
    """Operations by rank: ``first``, ``op``, ``event`` and ``mate`` (row) or -1, ``call``, ``region``, ``end_s``."""

    first: IntArray
    op: npt.NDArray[np.uint8]
    event: IntArray
    mate: IntArray
    call: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    end_s: FloatArray


class RegionMasks(NamedTuple):
    """Which regions are calls of MPI, set it up, exchange messages, or are local."""

    is_mpi: Mask
    is_fixed: Mask
    is_exchange: Mask
    is_local: Mask


def scan_trace(trace: Trace) -> ScannedRows:
    """Return the operations of all locations of a trace."""
    room = 3 * len(trace.time_s) + 3 * len(trace.locations) + 8
    rows = ScannedRows(
        first=np.zeros(len(trace.locations) + 1, dtype=np.int64),
        op=np.zeros(room, dtype=np.uint8),
        event=np.full(room, -1, dtype=np.int64),
        mate=np.full(room, -1, dtype=np.int64),
        call=np.full(room, -1, dtype=np.int32),
        region=np.full(room, -1, dtype=np.int32),
        end_s=np.zeros(room),
    )
    role = np.array([region.role for region in trace.regions] or [Role.USER], dtype=np.int64)
    is_fixed = np.isin(role, SETTING_UP)
    is_fixed[: len(trace.regions)] |= are_set_up(trace)
    masks = RegionMasks(np.isin(role, _MPI), is_fixed, role == SENDRECV, role == Role.LOCAL)
    op_of = np.full(max(Kind) + 1, -1, dtype=np.int64)
    op_of[list(_OPS)] = list(_OPS.values())
    scan = choose_compiled(scan_locations, len(trace.time_s))
    stack = np.full(DEEPEST, -1, dtype=np.int64)
    count = scan(trace.first, trace.time_s, trace.kind, trace.region, op_of, masks, stack, rows)
    return rows._replace(**{name: getattr(rows, name)[:count].copy() for name in rows._fields[1:]})


@numba_helper
def end_call(
    n: int, opened: int, row_of_send: int, fixed: bool, local: bool, names: tuple[int, int], rows: ScannedRows
) -> int:
    """Add what a call ends with: its own time behind a meeting, the completion of an exchange, or all of its time.

    A call in which nothing is recorded computes if it is ``local``; else no processor makes it faster.
    """
    added, mated = -1, -1
    if fixed and n > opened and rows.op[n - 1] == JOIN:
        added, mated = FIXED, n - 1
    elif row_of_send >= 0:
        added, mated = SENT, row_of_send
    elif n == opened:
        added = BURST if local else FIXED
    if added < 0:
        return n
    rows.op[n], rows.mate[n], rows.call[n], rows.region[n] = added, mated, names[0], names[1]
    return n + 1


def scan_locations(
    first: IntArray,
    time_s: FloatArray,
    kind: npt.NDArray[np.uint8],
    region: npt.NDArray[np.int32],
    op_of: IntArray,
    masks: RegionMasks,
    stack: IntArray,
    rows: ScannedRows,
) -> int:
    """Fill the rows and return how many there are; ``stack`` is room for nested regions."""
    begins, op, event, mate, call, within, end_s = rows
    n = 0
    for location in range(len(first) - 1):
        begins[location] = n
        depth, outer, posted, opened, row_of_send = 0, -1, -1, n, -1
        now = last = time_s[first[location]]
        for e in range(first[location], first[location + 1]):
            now = time_s[e]
            user = stack[depth - 1] if depth > 0 else -1
            if kind[e] == ENTER:
                if outer < 0 and now > last:
                    op[n], within[n], end_s[n], last = BURST, user, now, now
                    n += 1
                if outer < 0 and masks.is_mpi[region[e]]:
                    outer, opened, posted, row_of_send = depth, n, -1, -1
                    if masks.is_exchange[region[e]]:
                        op[n], call[n], within[n], end_s[n], posted = FIXED, region[e], user, now, n
                        n += 1
                if depth < DEEPEST:
                    stack[depth] = region[e]
                depth += 1
            elif kind[e] == LEAVE and depth > 0:
                depth -= 1
                mpi = stack[outer] if outer >= 0 else -1
                if outer >= 0 and depth <= outer:
                    user = stack[outer - 1] if outer > 0 else -1
                    fixed, local = masks.is_fixed[mpi], masks.is_local[mpi]
                    n = end_call(n, opened, row_of_send, fixed, local, (mpi, user), rows)
                    end_s[n - 1] = now
                    outer, last = -1, now
                elif outer < 0 and now > last:
                    op[n], within[n], end_s[n] = BURST, user, now
                    n, last = n + 1, now
            elif op_of[kind[e]] >= 0 and outer >= 0:
                op[n], event[n], call[n] = op_of[kind[e]], e, stack[outer]
                within[n] = stack[outer - 1] if outer > 0 else -1
                end_s[n] = now
                if posted >= 0 and op[n] == RECV:
                    op[n], mate[n], op[posted] = DONE, posted, IRECV
                elif posted >= 0 and op[n] == SEND:
                    op[n], row_of_send = ISEND, n
                n += 1
        if outer < 0 and now > last:
            op[n], end_s[n] = BURST, now
            n += 1
    begins[len(first) - 1] = n
    return n
