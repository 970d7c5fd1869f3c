"""Loops over keys, compiled by numba: equal keys are found by hashing, where plain numpy sorts them.

Each gives what a function of plain numpy gives, which is named there and used for small traces and without numba.
Importing this module imports numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from advisor.support.compiling import jit
from advisor.trace.events import Kind

if TYPE_CHECKING:
    from advisor.model.records import IntArray

Kinds = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int32]

_ISEND: Final = int(Kind.ISEND)
_ISEND_DONE: Final = int(Kind.ISEND_DONE)
_IRECV_POST: Final = int(Kind.IRECV_POST)
_IRECV: Final = int(Kind.IRECV)

_inlined: Final = jit(allocating=False, inlined=True, without_gil=True)


@jit(allocating=True, without_gil=True)
def link_requests(
    inner: tuple[IntArray, Kinds, IntArray], request: npt.NDArray[np.uint64], location: IntArray, linked: IntArray
) -> None:
    """Fill ``linked`` with the post of each completed receive and the call that ends each send, by request, or -1.

    ``inner`` are event, kind and call of the events inside of calls, among which posts are numbered, ``request`` those
    of all events, ``location`` that of each call. ``matching._find_latest`` does the same with whole columns.
    """
    events, kinds, calls = inner
    slots = 4
    while slots < 2 * len(events):
        slots *= 2
    holder = np.full(slots, -1, dtype=np.int64)
    for n in range(len(events)):
        linked[n] = -1
        kind = kinds[n]
        if kind < _ISEND or kind > _IRECV:
            continue
        starts = kind in (_ISEND, _IRECV_POST)
        source = _ISEND if kind <= _ISEND_DONE else _IRECV_POST
        key, here = request[events[n]], location[calls[n]]
        slot = find_first_slot((key * np.uint64(31) + np.uint64(here)) * np.uint64(31) + np.uint64(source), slots)
        while holder[slot] >= 0:
            other = holder[slot]
            if kinds[other] == source and request[events[other]] == key and location[calls[other]] == here:
                break
            slot = (slot + 1) & (slots - 1)
        if starts:
            holder[slot] = n
        elif holder[slot] >= 0 and kind == _IRECV:
            linked[n] = holder[slot]
        elif holder[slot] >= 0:
            linked[holder[slot]] = calls[n]


@jit(allocating=True, without_gil=True)
def pair_in_order(ends: IntArray, tag: Words, size: IntArray, sends: int, partner: IntArray) -> None:
    """Fill ``partner`` (receives,) with the k-th send of a sort for the k-th receive of it, -1 where there is none.

    Sends come first in the columns. ``matching._in_order`` does the same.
    """
    slots = 4
    while slots < 2 * (sends + 1):
        slots *= 2
    first, last = np.full(slots, -1, dtype=np.int64), np.empty(slots, dtype=np.int64)
    waiting, following = np.empty(slots, dtype=np.int64), np.full(sends, -1, dtype=np.int64)
    for n in range(len(ends)):
        key = (np.uint64(ends[n]) * np.uint64(31) + np.uint64(tag[n])) * np.uint64(31) + np.uint64(size[n])
        slot = find_first_slot(key, slots)
        while first[slot] >= 0:
            other = first[slot]
            if ends[other] == ends[n] and tag[other] == tag[n] and size[other] == size[n]:
                break
            slot = (slot + 1) & (slots - 1)
        if n < sends:
            if first[slot] < 0:
                first[slot] = waiting[slot] = n
            else:
                following[last[slot]] = n
            last[slot] = n
        elif first[slot] >= 0 and waiting[slot] >= 0:
            partner[n - sends] = waiting[slot]
            waiting[slot] = following[waiting[slot]]


@_inlined
def find_first_slot(key: np.uint64, slots: int) -> np.int64:
    """Return where a key is looked for first among so many slots, a power of two."""
    mixed = key * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(slots - 1))
