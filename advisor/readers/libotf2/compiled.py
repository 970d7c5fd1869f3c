"""The callbacks of ``events`` compiled by numba: they write rows into a buffer without touching Python.

The buffer is an array of 64-bit words. Word 0 holds the index of the next free word, then come the counters of
``COUNTED``; a row takes five words, laid out as ``events.ROW``: time, size, request, reference and partner,
tag and event. numba compiles these functions as they stand: every argument is an unsigned integer as wide as OTF2
makes it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from advisor.readers.libotf2 import events
from advisor.readers.libotf2.events import ALL_32, ALL_64, COUNTED, EVENTS

numba: Any = import_module("numba")

_WORDS = 5
#: Where the rows begin.
_ROWS = 1 + len(COUNTED)
_WORD_BYTES = 8
_NOBODY = ALL_32 << 32
_NOTHING = ALL_32 | _NOBODY

Callback = Callable[..., int]
Words = list[int]


class CompiledRows:
    """Room for the rows of ``capacity`` events, filled by compiled callbacks."""

    def __init__(self, capacity: int) -> None:
        self._words = (ctypes.c_uint64 * (_ROWS + _WORDS * capacity))(_ROWS)
        self._bytes = memoryview(self._words).cast("B")
        self.data = ctypes.c_void_p(ctypes.addressof(self._words))
        self.callbacks = [_compile(event.arguments, _SHAPES[event.row](i << 32)) for i, event in enumerate(EVENTS)]
        self.counters = [_compile("", _counter(1 + index)) for index in range(len(COUNTED))]

    @property
    def counts(self) -> list[int]:
        """How many events of each of ``COUNTED`` have been read."""
        return list(self._words[1:_ROWS])

    def take(self) -> memoryview:
        """Return the rows since the last call, packed; valid until the next event is read."""
        used = self._bytes[_ROWS * _WORD_BYTES : self._words[0] * _WORD_BYTES]
        self._words[0] = _ROWS
        return used


def _compile(arguments: str, callback: Callback) -> ctypes.c_void_p:
    """Return where the machine code of ``callback`` begins; ``arguments`` are the event's own."""
    word = numba.uint64
    widths = {"B": numba.uint8, "I": numba.uint32, "Q": word}
    leading = (word, word, word, numba.types.CPointer(word), numba.types.voidptr)
    signature = numba.int32(*leading, *(widths[letter] for letter in arguments))
    compiled = numba.cfunc(signature, cache="NUMBA_CACHE_DIR" in os.environ, error_model="numpy")
    return ctypes.c_void_p(compiled(callback).address)


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _put(rows: Words, time: int, size: int, request: int, place: int, what: int) -> None:
    """Write a row behind the last one."""
    word = rows[0]
    rows[word] = time
    rows[word + 1] = size
    rows[word + 2] = request
    rows[word + 3] = place
    rows[word + 4] = what
    rows[0] = word + 5


def _counter(word: int) -> Callback:
    def count(_place: int, _time: int, _at: int, rows: Words, _more: int) -> int:
        rows[word] += 1
        return 0

    return count


def _reference(event: int) -> Callback:
    def write(_place: int, time: int, _at: int, rows: Words, _more: int, reference: int) -> int:
        _put(rows, time, ALL_64, 0, reference | _NOBODY, ALL_32 | event)
        return 0

    return write


def _message(event: int) -> Callback:
    def write(
        _place: int,
        time: int,
        _at: int,
        rows: Words,
        _more: int,
        partner: int,
        comm: int,
        tag: int,
        size: int,
    ) -> int:
        _put(rows, time, size, 0, comm | partner << 32, tag | event)
        return 0

    return write


def _posted(event: int) -> Callback:
    def write(
        _place: int,
        time: int,
        _at: int,
        rows: Words,
        _more: int,
        partner: int,
        comm: int,
        tag: int,
        size: int,
        request: int,
    ) -> int:
        _put(rows, time, size, request, comm | partner << 32, tag | event)
        return 0

    return write


def _request(event: int) -> Callback:
    def write(_place: int, time: int, _at: int, rows: Words, _more: int, request: int) -> int:
        _put(rows, time, ALL_64, request, _NOTHING, ALL_32 | event)
        return 0

    return write


def _collective(event: int) -> Callback:
    def write(
        _place: int,
        time: int,
        _at: int,
        rows: Words,
        _more: int,
        _operation: int,
        comm: int,
        root: int,
        sent: int,
        received: int,
    ) -> int:
        _put(
            rows,
            time,
            sent + received if sent != ALL_64 and received != ALL_64 else ALL_64,
            0,
            comm | root << 32,
            ALL_32 | event,
        )
        return 0

    return write


def _non_blocking(event: int) -> Callback:
    def write(
        _place: int,
        time: int,
        _at: int,
        rows: Words,
        _more: int,
        _operation: int,
        comm: int,
        root: int,
        sent: int,
        received: int,
        request: int,
    ) -> int:
        _put(
            rows,
            time,
            sent + received if sent != ALL_64 and received != ALL_64 else ALL_64,
            request,
            comm | root << 32,
            ALL_32 | event,
        )
        return 0

    return write


def _fork(event: int) -> Callback:
    def write(_place: int, time: int, _at: int, rows: Words, _more: int, _paradigm: int, threads: int) -> int:
        _put(rows, time, threads, 0, _NOTHING, ALL_32 | event)
        return 0

    return write


def _omp_fork(event: int) -> Callback:
    def write(_place: int, time: int, _at: int, rows: Words, _more: int, threads: int) -> int:
        _put(rows, time, threads, 0, _NOTHING, ALL_32 | event)
        return 0

    return write


def _bare(event: int) -> Callback:
    def write(_place: int, time: int, _at: int, rows: Words, _more: int) -> int:
        _put(rows, time, ALL_64, 0, _NOTHING, ALL_32 | event)
        return 0

    return write


def _ignored(event: int) -> Callback:
    def write(_place: int, time: int, _at: int, rows: Words, _more: int, _reference: int) -> int:
        _put(rows, time, ALL_64, 0, _NOTHING, ALL_32 | event)
        return 0

    return write


def _io(event: int) -> Callback:
    def write(
        _place: int,
        time: int,
        _at: int,
        rows: Words,
        _more: int,
        handle: int,
        size: int,
        _matching: int,
    ) -> int:
        _put(rows, time, size, 0, handle | _NOBODY, ALL_32 | event)
        return 0

    return write


_SHAPES: dict[Callable[..., object], Callable[[int], Callback]] = {
    events.reference: _reference,
    events.message: _message,
    events.posted: _posted,
    events.request: _request,
    events.collective: _collective,
    events.non_blocking: _non_blocking,
    events.fork: _fork,
    events.omp_fork: _omp_fork,
    events.bare: _bare,
    events.ignored: _ignored,
    events.io: _io,
}
