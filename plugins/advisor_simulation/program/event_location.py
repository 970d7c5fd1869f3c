"""The accesses of a thread with the loops that they are made in, followed through the words of the tracer."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor_simulation.program.address_trace import compile_part

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray
    from advisor_simulation.program.address_trace import Words
    from advisor_simulation.program.code_loops import ProgramCode

    Numbers = npt.NDArray[np.int32]

_ENTRIES: Final = 64
_PATHS: Final = 1 << 14


class _Code(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("loop_of", "function_of", "parent", "loop_function", "exit_function")),
        ("loops", ctypes.c_int32),
        ("exits", ctypes.c_int32),
    )


class _State(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_int32),
        ("paths", ctypes.c_int32),
        ("deepest", ctypes.c_int32),
        *((name, ctypes.c_int32 * _ENTRIES) for name in ("loop", "turn", "path")),
        *((name, ctypes.c_int32 * _PATHS) for name in ("path_parent", "path_loop")),
    )


class _Columns(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("path", "turns", "number", "place", "address")),
        *((name, ctypes.c_void_p) for name in ("head_path", "head_turn", "head_count")),
        ("accesses", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("width", ctypes.c_int64),
    )


@dataclass(frozen=True, slots=True)
class LocatedEvents:
    """Accesses in program order: ``path`` of loops (-1: in none), ``turns`` (n, deepest) of its loops, ``number`` of
    the instruction, whether it ``stores``, ``address``, and ``place`` among the words.

    ``head_path``, ``head_turn``, ``head_count`` are the beginnings of iterations of outermost loops, with the
    instructions executed so far.
    """

    path: Numbers
    turns: Numbers
    number: Numbers
    stores: npt.NDArray[np.bool_]
    address: IntArray
    place: Numbers
    head_path: Numbers
    head_turn: Numbers
    head_count: IntArray


class EventLocator:
    """Follows a thread; ``paths`` lists the loops of each path from the outermost one on, shared by all threads."""

    def __init__(self, code: ProgramCode, cache: Path) -> None:
        self._library: Any = ctypes.CDLL(str(compile_part("locate.c", cache)))
        self._library.locate_events.restype = ctypes.c_int64
        self._kept = (
            np.array([access.loop for access in code.accesses], dtype=np.int32),
            np.array([access.function for access in code.accesses], dtype=np.int32),
            np.array([loop.parent for loop in code.loops], dtype=np.int32),
            np.array([loop.function for loop in code.loops], dtype=np.int32),
            np.array(code.exits, dtype=np.int32),
        )
        self._code = _Code(*(column.ctypes.data for column in self._kept), len(code.loops), len(code.exits))
        self._state = _State()

    @property
    def paths(self) -> list[tuple[int, ...]]:
        """The loops of each path, from the outermost one on."""
        found: list[tuple[int, ...]] = []
        for number in range(self._state.paths):
            parent = self._state.path_parent[number]
            found.append(((*found[parent],) if parent >= 0 else ()) + (self._state.path_loop[number],))
        return found

    def hold_loops(self) -> bytes:
        """Return which loops the thread is in, and begin outside of all loops."""
        held = bytes(self._state)[: 12 + 3 * 4 * _ENTRIES]
        self._state.size = 0
        return held

    def resume_loops(self, held: bytes) -> None:
        """Go on in the loops that ``hold_loops`` returned."""
        paths = self._state.paths
        ctypes.memmove(ctypes.byref(self._state), held, len(held))
        self._state.paths = paths

    def follow_words(self, words: Words) -> None:
        """Follow the thread without looking at its accesses."""
        self._run(words, None)

    def locate_words(self, words: Words) -> LocatedEvents:
        """Return the accesses among the words of a thread, and follow it."""
        n = len(words)
        accesses = int((words >> np.uint64(63) == 0).sum())
        begin = bytes(self._state)[: 12 + 3 * 4 * _ENTRIES]
        self._state.deepest = 0
        self._run(words, None)
        width = max(int(self._state.deepest), 1)
        self.resume_loops(begin)
        heads = n - accesses
        path, number, place = (np.zeros(accesses, dtype=np.int32) for _ in range(3))
        turns, address = np.zeros((accesses, width), dtype=np.int32), np.zeros(accesses, dtype=np.int64)
        head_path, head_turn = np.zeros(heads, dtype=np.int32), np.zeros(heads, dtype=np.int32)
        head_count = np.zeros(heads, dtype=np.int64)
        columns = _Columns(
            *(one.ctypes.data for one in (path, turns, number, place, address, head_path, head_turn, head_count)),
            0, 0, width,
        )  # fmt: skip
        self._run(words, columns)
        made = int(columns.heads)
        return LocatedEvents(
            path, turns, number >> 1, (number & 1).astype(np.bool_), address, place,
            head_path[:made], head_turn[:made], head_count[:made],
        )  # fmt: skip

    def _run(self, words: Words, columns: _Columns | None) -> None:
        whole = np.ascontiguousarray(words)
        self._library.locate_events(
            ctypes.byref(self._code), ctypes.byref(self._state), ctypes.c_void_p(whole.ctypes.data),
            ctypes.c_int64(len(whole)), ctypes.byref(columns) if columns is not None else None,
        )  # fmt: skip
