"""A repair for what EZTrace 2.0 records wrongly: the communicator of receives that Fortran programs post early.

Their completion always names MPI_COMM_WORLD, beside the sender's rank in the communicator that was really used. The
sends are recorded rightly, so they tell which one it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Kind

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.otf2.columns import TraceColumns
    from advisor.formats.otf2.communicators import Members
    from advisor.model.records import IntArray


def repair_receives(columns: TraceColumns, rank: npt.NDArray[np.int32], members: tuple[Members, ...]) -> int:
    """Give completed receives the communicator and partner of the sends to them; return how many lose both.

    ``rank`` (rows,) is the rank of each row, ``members`` the communicators that the column ``comm`` counts in. A
    receive keeps what is recorded when no send fits it, and loses it when sends in several communicators fit, as far
    as receiver, the sender's place and tag tell.
    """
    if len(members) < 2:
        return 0
    rows = columns.rows
    kind, comm, partner = rows.kind, rows.comm, rows.partner
    receives = np.flatnonzero(kind == Kind.IRECV)
    sends = np.flatnonzero((kind == Kind.SEND) | (kind == Kind.ISEND))
    sends = sends[comm[sends] >= 0]
    if not len(receives) or len(np.unique(comm[np.concatenate([sends, receives])])) < 2:
        return 0
    both = np.concatenate([sends, receives])
    receiver = np.concatenate([partner[sends], rank[receives]])
    place = np.concatenate([_find_places(members, comm[sends], rank[sends]), partner[receives]])
    keys = _number_rows(receiver, place, rows.tag[both])
    offers = np.unique(np.stack([keys[: len(sends)], comm[sends]]), axis=1)
    begin = np.searchsorted(offers[0], keys[len(sends) :])
    fitting = np.searchsorted(offers[0], keys[len(sends) :], side="right") - begin
    clear, unclear = receives[fitting == 1], receives[fitting > 1]
    comm[clear] = offers[1][begin[fitting == 1]]
    partner[clear] = _find_ranks(members, comm[clear], partner[clear])
    comm[unclear] = partner[unclear] = -1
    return len(unclear)


def _number_rows(*columns: npt.NDArray[np.int32] | IntArray) -> IntArray:
    """Return one number per distinct row of the columns."""
    result = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, number = np.unique(column, return_inverse=True)
        result = result * len(values) + number
    return result


def _find_places(members: tuple[Members, ...], comm: npt.NDArray[np.int32], rank: npt.NDArray[np.int32]) -> IntArray:
    """Return the place of each rank within its communicator."""
    result = np.empty(len(comm), dtype=np.int64)
    for number in np.unique(comm).tolist():
        order = np.argsort(members[number])
        inside = comm == number
        result[inside] = order[np.searchsorted(np.array(members[number])[order], rank[inside])]
    return result


def _find_ranks(members: tuple[Members, ...], comm: npt.NDArray[np.int32], place: npt.NDArray[np.int32]) -> IntArray:
    """Return the rank at each place of its communicator."""
    result = np.empty(len(comm), dtype=np.int64)
    for number in np.unique(comm).tolist():
        inside = comm == number
        result[inside] = np.array(members[number])[place[inside]]
    return result
