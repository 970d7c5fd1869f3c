"""The records of a Dimemas trace as columns: what a replay runs on, and what a profile is made from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from advisor.model.records import IntArray


class RecordKind(IntEnum):
    """What a record says, and how the columns of ``DimemasRecords`` are used for it."""

    BURST = 1  # amount = nanoseconds of computation
    SEND = 2  # partner, amount = bytes, tag, reference = message, code = 1 rendezvous + 2 non-blocking
    RECEIVE = 3  # partner, amount = bytes, tag, reference = message, code = 0 blocking, 1 posting, 2 waiting for it
    COLLECTIVE = (
        4  # partner = root, amount = bytes sent, more = bytes received, reference = communicator, code = OPERATIONS
    )
    EVENT = 5  # code = type of event, amount = value


#: The columns of ``DimemasRecords``.
RECORDED = ("kind", "amount", "more", "partner", "tag", "reference", "code")
#: Collective operations by their number in the trace, named after the calls that they stand for.
OPERATIONS = (
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Reduce_scatter",
    "MPI_Scan",
)


@dataclass(frozen=True, slots=True)
class DimemasRecords:
    """All records of a trace, thread after thread, in recorded order within each.

    ``rank`` and ``thread`` (threads,) describe the threads, ``first`` (threads + 1,) delimits their records.
    ``communicators`` maps ids to the members as ranks. Columns of one length: ``kind`` (``RecordKind``), ``amount``,
    ``more``, ``partner`` (rank, -1 none), ``tag``, ``reference``, ``code``. The two records of a message (three where
    the receive was posted before) have the same ``reference``. The root is given as recorded: prv2dim writes 1 at
    the root itself and 0 at all others, not its rank. ``other_records`` counts records of kinds that are not kept.
    """

    rank: IntArray
    thread: IntArray
    communicators: dict[int, tuple[int, ...]]
    first: IntArray
    kind: npt.NDArray[np.uint8]
    amount: IntArray
    more: IntArray
    partner: npt.NDArray[np.int32]
    tag: npt.NDArray[np.int32]
    reference: npt.NDArray[np.int32]
    code: npt.NDArray[np.int32]
    other_records: int = 0
