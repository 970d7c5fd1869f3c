"""Loops over the events of large traces, compiled by numba: what is a matter of order goes through them once.

Each gives what a function of plain numpy gives, which is named there and used for small traces and without numba.
Importing this module imports numba.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from advisor.compiling import keep_compiled
from advisor.traces.events import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model import FloatArray, IntArray

Bools = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int32]
Function = TypeVar("Function", bound="Callable[..., Any]")

_ENTER: Final = int(Kind.ENTER)
_LEAVE: Final = int(Kind.LEAVE)
_FORK: Final = int(Kind.FORK)
_JOIN: Final = int(Kind.JOIN)

keep_compiled()  # before numba is imported, which looks for its folder then


def _jit(**options: bool) -> Callable[[Function], Function]:
    made: Callable[[Function], Function] = import_module("numba").njit(
        cache="NUMBA_CACHE_DIR" in os.environ, error_model="numpy", **options
    )
    return made


#: For loops that allocate nothing: they need no count of who holds an array.
_lent = _jit(_nrt=False)
#: For what loops call.
_inlined = _jit(_nrt=False, forceinline=True)


@_lent
def nested(
    events: tuple[IntArray, Kinds, Words, FloatArray],
    claims: Bools,
    marks: Bools,
    calls: IntArray,
    times: FloatArray,
    threaded: Bools,
    open_after: IntArray,
    told: IntArray,
) -> int:
    """Fill the columns of ``Calls`` as ``nesting._nested`` does; return how many events are ``told``.

    ``events`` are first, kind, region and time. The rows of ``calls`` are location, region, parent, enter, leave and
    anchor, those of ``times`` start and end, those of ``told`` event, kind and call. Calls of regions that ``claims``
    claim the time of their callees, and those of regions that ``marks`` are parallel regions of threads.
    """
    first, kind, region, time_s = events
    locations, regions, parent, enter, leave, anchor = calls
    call, count = 0, 0
    for location in range(len(first) - 1):
        top = -1
        for event in range(first[location], first[location + 1]):
            if kind[event] == _ENTER:
                name = region[event]
                locations[call], regions[call], parent[call] = location, name, top
                enter[call], leave[call] = event, -1
                times[0, call], times[1, call] = time_s[event], time_s[first[location + 1] - 1]
                above = anchor[top] if top >= 0 else -1
                anchor[call] = call if above < 0 and claims[name] else above
                threaded[call] = marks[name] or (top >= 0 and threaded[top])
                top = call
                call += 1
            elif kind[event] == _LEAVE and top >= 0:
                leave[top], times[1, top] = event, time_s[event]
                top = parent[top]
            elif kind[event] > _LEAVE and top >= 0:
                told[0, count], told[1, count] = event, kind[event]
                told[2, count] = anchor[top] if anchor[top] >= 0 else top
                count += 1
            open_after[event] = top
    return count


@_jit()
def latest(keys: npt.NDArray[np.uint64], location: IntArray, is_source: Bools, found: IntArray) -> None:
    """Fill ``found`` with the number of the latest source up to each element that has its key and location, or -1.

    Locations stand one after the other. ``matching._latest`` does the same.
    """
    slots = 4
    while slots < 2 * len(keys):
        slots *= 2
    holder = np.full(slots, -1, dtype=np.int64)
    for n in range(len(keys)):
        slot = _slot(keys[n] * np.uint64(31) + np.uint64(location[n]), slots)
        while holder[slot] >= 0 and (keys[holder[slot]] != keys[n] or location[holder[slot]] != location[n]):
            slot = (slot + 1) & (slots - 1)
        if is_source[n]:
            holder[slot] = n
        found[n] = holder[slot]


@_jit()
def in_order(ends: IntArray, tag: Words, size: IntArray, sends: int, partner: IntArray) -> None:
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
        slot = _slot(key, slots)
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


@_jit()
def distinct(keys: IntArray, group: IntArray) -> IntArray:
    """Fill ``group`` (n,) with the number of each column of ``keys`` among different ones, and return their firsts.

    ``causes._groups`` does the same, and numbers them in their order.
    """
    slots = 1 << 12
    holder, first = np.full(slots, -1, dtype=np.int64), np.empty(slots // 2, dtype=np.int64)
    count = 0
    for n in range(keys.shape[1]):
        slot = _place(keys, n, holder, first)
        if holder[slot] < 0:
            holder[slot], first[count] = count, n
            count += 1
        group[n] = holder[slot]
        if count == len(first):
            slots *= 4
            first = np.concatenate((first, np.empty(slots // 2 - len(first), dtype=np.int64)))
            holder = np.full(slots, -1, dtype=np.int64)
            for number in range(count):
                holder[_place(keys, first[number], holder, first)] = number
    return first[:count].copy()


@_inlined
def _place(keys: IntArray, column: int, holder: IntArray, first: IntArray) -> np.int64:
    """Return the slot in which a column equal to this one is held, or would be."""
    key = np.uint64(0)
    for row in range(len(keys)):
        key = key * np.uint64(0x100000001B3) + np.uint64(keys[row, column])
    slot = _slot(key, len(holder))
    while holder[slot] >= 0:
        same = True
        for row in range(len(keys)):
            same &= keys[row, first[holder[slot]]] == keys[row, column]
        if same:
            break
        slot = (slot + 1) & (len(holder) - 1)
    return slot


@_inlined
def _slot(key: np.uint64, slots: int) -> np.int64:
    """Return where a key is looked for first among so many slots, a power of two."""
    mixed = key * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(slots - 1))


@_lent
def pieces(
    events: tuple[IntArray, Kinds, FloatArray, IntArray],
    calls: tuple[IntArray, Bools, FloatArray],
    spans: tuple[IntArray, FloatArray, FloatArray],
    leaves_s: FloatArray,
    run: tuple[float, float],
    latest: IntArray,
    places: IntArray,
    seconds: FloatArray,
    forks: Bools,
) -> int:
    """Fill the columns of ``accounts.Pieces`` and return how many rows they have.

    ``events`` are first, kind, time and open call, ``calls`` their anchors, which are idle and their starts; ``run`` is
    when the instances begin and end, and ``latest`` (calls + 1,) holds -1. ``places`` are the first three columns, and
    ``seconds`` the next three. Pieces of a call in one instance are one, but for its forks and joins; otherwise this is
    what ``accounts._cut_group`` does.
    """
    first, kind, time_s, opened = events
    anchor, idle, start_s = calls
    stopping, begin_s, end_s = spans
    row = 0
    for location in range(len(first) - 1):
        final = first[location + 1] - 1
        while final >= first[location] and not _is_move(kind[final]):
            final -= 1
        closer, latest[-1] = stopping[location], -1
        call, start, forking, instance = -1, begin_s[location], False, 0
        for event in range(first[location], final + 2):
            within = event <= final
            if within and not _is_move(kind[event]):
                continue
            end = time_s[event] if within else end_s[location]
            instance = _next(leaves_s, location, instance, start)
            forking = call >= 0 and (forking or (within and kind[event] == _JOIN))
            known = latest[call]
            if forking or known < 0 or forks[known] or places[2, known] != instance:
                places[0, row], places[1, row], places[2, row] = location, call, instance
                seconds[:, row], forks[row] = 0.0, forking
                known, latest[call] = row, row
                row += 1
            _add(seconds, known, start, end, run)
            if within:
                start, forking, call = end, kind[event] == _FORK, opened[event]
                call = anchor[call] if call >= 0 and anchor[call] >= 0 else call
                if closer >= 0 and (event == final or start >= start_s[closer]):
                    call = closer
                call = -1 if call >= 0 and idle[call] else call
    return row


@_inlined
def _is_move(kind: int) -> bool:
    """Return whether an event of this kind ends a piece."""
    return kind in (_ENTER, _LEAVE, _FORK, _JOIN)


@_inlined
def _next(leaves_s: FloatArray, location: int, instance: int, start: float) -> int:
    """Return the first instance from ``instance`` on that the location leaves after ``start``, looking near first."""
    step = 1
    while instance + step <= len(leaves_s) and leaves_s[instance + step - 1, location] <= start:
        instance += step
        step *= 2
    while step > 0:
        if instance + step <= len(leaves_s) and leaves_s[instance + step - 1, location] <= start:
            instance += step
        step //= 2
    return instance


@_inlined
def _add(seconds: FloatArray, row: int, start: float, end: float, run: tuple[float, float]) -> None:
    """Add what lies between ``start`` and ``end``: inside the run, before and after it."""
    whole = end - start
    before = min(max(run[0] - start, 0.0), max(whole, 0.0))
    after = min(max(end - run[1], 0.0), max(whole - before, 0.0))
    seconds[0, row] += whole - before - after
    seconds[1, row] += before
    seconds[2, row] += after
