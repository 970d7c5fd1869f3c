"""A recorded run as a program: what each rank computes, sends, receives and does together with others, in order.

This is what all engines execute. Messages are matched once, when a program is made: whom a receive of any source
got its message from is taken from the recording, so the order of events does not depend on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray


class Op(IntEnum):
    """What an operation does, and how the columns of ``Program`` are used for it."""

    BURST = 0  # value = seconds of computation
    FIXED = 1  # value = seconds that no processor speed changes
    SEND = 2  # value = bytes, link = message; blocking
    ISEND = 3  # value = bytes, link = message
    SENT = 4  # link = message: wait until it is sent
    RECV = 5  # link = message; blocking
    IRECV = 6  # link = message: from here on it may be received
    DONE = 7  # link = message: wait until it is received
    JOIN = 8  # value = bytes, link = collective operation


SENDING: Final = (Op.SEND, Op.ISEND)
POSTING: Final = (Op.RECV, Op.IRECV)
RECEIVED: Final = (Op.RECV, Op.DONE)


@dataclass(frozen=True, slots=True)
class Collectives:
    """Collective operations: ``comm`` (index into communicators), ``role``, ``root`` (rank or -1), ``size`` (bytes).

    ``size`` is what one member contributes: the message of a broadcast or reduction, the block of a gather,
    scatter, allgather or alltoall.
    """

    comm: IntArray
    role: IntArray
    root: IntArray
    size: FloatArray
    name: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.comm)


@dataclass(frozen=True, slots=True)
class Program:
    """The operations of all ranks, rank after rank, in order within each; ``first`` (ranks + 1,) delimits them.

    Columns of one length: ``op`` (``Op``), ``value``, ``link`` (-1 none), ``call`` and ``region`` (indices
    into ``names``, -1 none: the communication call, and the region of the program that it is in). ``places`` holds
    the line of the program (``heat.c:33``) of each name that is a call from one, else nothing. Messages go from
    rank ``source`` to rank ``target`` (messages,). ``hosts`` holds the node of each rank where the recording
    names it. ``end_s`` (operations,) is when each ended in the recorded run, on one clock on which rank r began at
    ``start_s[r]``; its predecessor's end is its start. ``left_out`` says what of the recording has no place in here.
    """

    first: IntArray
    op: npt.NDArray[np.uint8]
    value: FloatArray
    link: npt.NDArray[np.int32]
    call: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    collectives: Collectives
    communicators: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    places: tuple[str, ...] = ()
    title: str = ""
    end_s: FloatArray | None = None
    hosts: tuple[str | None, ...] = ()
    left_out: tuple[str, ...] = ()
    start_s: FloatArray | None = None

    @property
    def ranks(self) -> int:
        """The number of processes."""
        return len(self.first) - 1

    @property
    def rank(self) -> IntArray:
        """The rank of every operation."""
        return np.repeat(np.arange(self.ranks), np.diff(self.first))

    @property
    def sizes(self) -> FloatArray:
        """Bytes of every message."""
        sizes = np.zeros(len(self.source))
        sending = (self.op == Op.SEND) | (self.op == Op.ISEND)
        sizes[self.link[sending]] = self.value[sending]
        return sizes

    def find_name(self, number: int) -> str:
        """The name of a call or region, empty for -1."""
        return self.names[number] if number >= 0 else ""

    def find_site(self, at: int) -> str:
        """The line of the program that an operation's call is in, as far as it is known, else the region."""
        call = int(self.call[at])
        place = self.places[call] if 0 <= call < len(self.places) else ""
        return place or self.find_name(int(self.region[at]))

    def describe_operation(self, at: int) -> str:
        """Return an operation as text, with its call and partner."""
        op, link = Op(self.op[at]), int(self.link[at])
        call = self.find_name(int(self.call[at])) or _PLAIN[op]
        if op in (Op.BURST, Op.FIXED):
            return call
        if op == Op.JOIN:
            members = self.communicators[int(self.collectives.comm[link])]
            return f"{call} with {len(members)} ranks"
        if op in (*SENDING, Op.SENT):
            return f"{call} to rank {self.target[link]}"
        return f"{call} from rank {self.source[link]}"


_PLAIN: Final = {
    Op.BURST: "computation",
    Op.FIXED: "fixed time",
    Op.SEND: "send",
    Op.ISEND: "isend",
    Op.SENT: "wait for a send",
    Op.RECV: "receive",
    Op.IRECV: "irecv",
    Op.DONE: "wait for a receive",
    Op.JOIN: "collective",
}


def find_last_ops(program: Program, kinds: tuple[Op, ...]) -> IntArray:
    """Return for each message the operation of one of ``kinds``, -1 where there is none."""
    found = np.full(len(program.source), -1, dtype=np.int64)
    at = np.flatnonzero(np.isin(program.op, kinds))
    found[program.link[at]] = at
    return found


def sum_burst_s(program: Program) -> float:
    """Return the total CPU time: the sum of all bursts of all ranks (seed 002, section 2.2)."""
    return float(program.value[program.op == Op.BURST].sum())
