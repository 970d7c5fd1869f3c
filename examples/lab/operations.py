"""What a process of a simulated program can do: a program is a generator of these, one for each rank or thread.

Sizes are in bytes, times in seconds. ``region`` names are those of an instrumented program.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple

#: A receive from whoever sends first.
ANY: Final = -1


class Enter(NamedTuple):
    """Begin a user region."""

    region: str


class Leave(NamedTuple):
    """End a user region."""

    region: str


class Work(NamedTuple):
    """Compute for so long; longer where threads share the cores of a host."""

    seconds: float


class Pass(NamedTuple):
    """Spend a fixed time in a call, such as MPI_Init."""

    call: str
    seconds: float


class Send(NamedTuple):
    """Send and wait until the buffer is free: at once below the eager limit, unless ``synchronous``."""

    to: int
    size_B: int
    tag: int = 0
    synchronous: bool = False


class Recv(NamedTuple):
    """Receive a message; the generator gets its source."""

    source: int
    tag: int = 0


class Isend(NamedTuple):
    """Start to send; ``request`` is a number of the program's choice."""

    to: int
    size_B: int
    request: int
    tag: int = 0


class Irecv(NamedTuple):
    """Post a receive."""

    source: int
    request: int
    tag: int = 0


class Wait(NamedTuple):
    """Wait for requests; ``call`` is the name of the call."""

    requests: tuple[int, ...]
    call: str = "MPI_Waitall"


class Sendrecv(NamedTuple):
    """Send and receive at the same time; the partner ``-1`` is MPI_PROC_NULL."""

    to: int
    size_B: int
    source: int
    tag: int = 0


class Collective(NamedTuple):
    """Call a collective operation; ``size_B`` is what each rank contributes for each partner.

    It is one of all ranks, or of the ``members`` of a communicator, in ascending order.
    """

    call: str
    size_B: int = 0
    root: int = -1
    members: tuple[int, ...] = ()


class StartCollective(NamedTuple):
    """Start a nonblocking collective operation of all ranks, or of ``members``."""

    call: str
    size_B: int
    request: int
    members: tuple[int, ...] = ()


class Put(NamedTuple):
    """Start to write into the memory of another rank; a fence or the end of the access says that it is there."""

    to: int
    size_B: int


class Fence(NamedTuple):
    """Wait until all ranks have come to this fence, and all that was put before it is there."""


class Expose(NamedTuple):
    """Let ``origins`` write into the memory of this rank (MPI_Win_post)."""

    origins: tuple[int, ...]


class Access(NamedTuple):
    """Wait until ``targets`` let this rank write (MPI_Win_start)."""

    targets: tuple[int, ...]


class EndAccess(NamedTuple):
    """Tell ``targets`` that all was put, and wait until it has left (MPI_Win_complete)."""

    targets: tuple[int, ...]


class EndExposure(NamedTuple):
    """Wait until all that ``origins`` put is there (MPI_Win_wait)."""

    origins: tuple[int, ...]


class Transfer(NamedTuple):
    """Do an I/O operation; with ``exclusive`` nobody else may do one on this file meanwhile."""

    call: str
    file: str
    size_B: int = 0
    exclusive: bool = False


class StartTransfer(NamedTuple):
    """Start an I/O operation in the background: ``size_B`` in so many ``pieces``, with ``syncs`` to storage."""

    call: str
    file: str
    size_B: int
    request: int
    pieces: int = 1
    syncs: int = 0
    exclusive: bool = False


class Background(NamedTuple):
    """Let a helper thread with a core of its own compute; ``request`` is done when it has."""

    seconds: float
    request: int


class Critical(NamedTuple):
    """Compute for so long while holding a lock."""

    lock: str
    seconds: float


class Parallel(NamedTuple):
    """Let the threads of the rank execute one program each; all end at the implicit barrier of the region."""

    region: str
    threads: tuple[Generator[Operation, int | None, None], ...]


Operation = (
    Enter | Leave | Work | Pass | Send | Recv | Isend | Irecv | Wait | Sendrecv | Collective | StartCollective
    | Put | Fence | Expose | Access | EndAccess | EndExposure
    | Transfer | StartTransfer | Background | Critical | Parallel
)  # fmt: skip
#: The program of a process: it gets the source of what it received with ``Recv``, else None.
Program = Generator[Operation, "int | None", None]
