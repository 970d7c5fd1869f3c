"""Records and samples as numpy maps them (see ``docs/formats/recording.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

#: What a process file begins with.
MAGIC: Final = "gapwatch/trace/1 process"
#: Kinds of records.
CALL, MESSAGE, STATE, FORK, JOIN, FOLDED = 1, 2, 3, 4, 5, 6
#: Locks that are taken more often than that in one record are only counted and timed.
COUNTED = 64
#: Bits of a caller's address; the kind and the event of the record stand above them.
ADDRESS_BITS: Final = 48
#: Set in a caller that is the number of a place in Python, and no address.
PYTHON_BIT: Final = np.uint64(1 << 47)
ADDRESS_MASK: Final = np.uint64((1 << ADDRESS_BITS) - 1)

#: One call, message or state. ``caller`` also holds ``kind`` and ``event``: mask it. Times are nanoseconds of the
#: clock of one host; a CPU time of 0 was not read, and a call whose ``end_ns`` is 0 never ended. Of folded calls
#: ``cpu_start_ns`` is how long the shortest took and, times 2^32, the longest.
RECORD: Final = np.dtype(
    {
        "names": [
            "start_ns", "end_ns", "caller", "kind", "event", "size", "cpu_start_ns", "cpu_end_ns", "function", "comm",
            "partner", "tag", "request",
        ],
        "formats": ["<u8", "<u8", "<u8", "u1", "u1", "<i8", "<u8", "<u8", "<u2", "<u2", "<i4", "<i4", "<u4"],
        "offsets": [0, 8, 16, 22, 23, 24, 32, 40, 48, 50, 52, 56, 60],
        "itemsize": 64,
    }
)  # fmt: skip
#: The tag of a collective that brings what the one before at its place has brought.
REPEATED: Final = 1
#: In the state of a sample: the thread computes with numbers below the smallest normal one.
SUBNORMAL: Final = 1
#: One sample: when, the thread's CPU time, where it computed, and who called that, innermost first (0: unknown).
SAMPLE: Final = np.dtype(
    [
        ("time_ns", "<u8"),
        ("cpu_ns", "<u8"),
        ("address", "<u8"),
        ("callers", "<u8", (4,)),
        ("core", "<u2"),
        ("state", "<u2"),
        ("missed", "<u4"),
    ]
)
#: The registers of integers at a sample, as they follow each other in the contexts of signals on x86-64.
REGISTERS: Final = np.dtype(("<u8", (16,)))
REGISTER_NAMES: Final = (
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp",
)  # fmt: skip


def map_records(path: Path) -> npt.NDArray[Any]:
    """Return the records of a thread's file, mapped; behind the last one there may be room without any.

    What is written into the array stays in memory: the file is not changed.
    """
    mapped = _mapped(path, RECORD)
    return mapped[: _filled(mapped["kind"])]


def map_samples(path: Path) -> npt.NDArray[Any]:
    """Return the samples of a thread's file, mapped."""
    mapped = _mapped(path, SAMPLE)
    return mapped[: _filled(mapped["time_ns"])]


def map_registers(path: Path, samples: int) -> npt.NDArray[np.uint64]:
    """Return the registers at the first samples of a thread (n, 16), mapped; of the last ones they may be missing."""
    return _mapped(path, REGISTERS)[:samples]


def _mapped(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    try:
        count = path.stat().st_size // dtype.itemsize
    except FileNotFoundError:
        count = 0
    return np.memmap(path, dtype=dtype, mode="c", shape=(count,)) if count else np.zeros(0, dtype=dtype)


def _filled(column: npt.NDArray[Any]) -> int:
    """Return how many values stand before the first zero; zeros only come behind the others."""
    low, high = 0, len(column)
    if not high or column[high - 1]:
        return high
    while low < high:
        middle = (low + high) // 2
        if column[middle]:
            low = middle + 1
        else:
            high = middle
    return low
