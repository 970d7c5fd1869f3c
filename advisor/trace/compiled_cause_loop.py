"""The rows of causes, added up by a loop that numba compiles; ``causes._collect_by_columns`` gives the same.

Importing this module imports numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.compiling import jit
from advisor.trace.compiled_key_loops import Words, find_first_slot
from advisor.trace.events import GOES_ON

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

_KEYS: Final = 9
#: Odd numbers, one for each key: products that do not wait for each other.
_MIXERS: Final = tuple(0x9E3779B97F4A7C15 * (2 * row + 1) % 2**63 | 1 for row in range(_KEYS))
_inlined: Final = jit(allocating=False, inlined=True, without_gil=True)


@jit(allocating=True, without_gil=True)
def collect_causes(
    sources: tuple[IntArray, IntArray, int, int],
    measures: tuple[FloatArray, ...],
    entries: tuple[IntArray, IntArray, IntArray, IntArray],
    calls: tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray],
    columns: tuple[IntArray, IntArray, IntArray, IntArray, Words],
    team_wait: int,
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the keys (9, n) of different causes in the order of ``causes.COLUMNS``, their seconds, counts and bytes.

    ``sources`` are the category of each of the ``measures``, its kinds by region, and which categories are outside and
    synchronizing. ``entries`` are call, instance and teams of each entry, and the phases of instances. ``calls`` are
    region, parent, anchor, location, enter and row of each call, ``columns`` what calls wait for and for whom, their
    files and bytes, and the repeats of all events.
    """
    category, kinds, outside, synchronizing = sources
    call_of, instance, teams, phase_of = entries
    region, parent, anchor, location, enter, row = calls
    wait_kind, partner, target, size, repeats = columns
    slots, count = 1 << 12, 0
    holder = np.full(slots, -1, dtype=np.int64)
    keys, sums = np.empty((slots // 2, _KEYS), dtype=np.int64), np.zeros((3, slots // 2))
    key = np.empty(_KEYS, dtype=np.int64)
    for source in range(len(measures)):
        seconds = measures[source]
        for entry in range(len(seconds)):
            if seconds[entry] == 0.0:
                continue
            call = call_of[entry]
            kind, whom = kinds[source, region[call]], np.int64(-1)
            if kind < 0:
                kind, whom = team_wait if anchor[call] < 0 else wait_kind[call], partner[call]
            key[0], key[1] = category[source], kind
            key[2] = -1 if category[source] == outside else phase_of[instance[entry]]
            key[3], key[4] = row[call], row[parent[call]] if parent[call] >= 0 else -1
            key[5], key[6], key[7] = location[call], whom, target[call]
            key[8] = _size_class(size[call])
            slot = _find_slot(key, keys, holder)
            if holder[slot] < 0:
                holder[slot], keys[count] = count, key
                count += 1
            group = holder[slot]
            often = 0.0 if repeats[enter[call]] == GOES_ON else 1.0 + max(repeats[enter[call]], 0)
            sums[0, group] += seconds[entry]
            sums[1, group] += often * max(teams[entry], 1) if category[source] == synchronizing else often
            sums[2, group] += max(size[call], 0)
            if count == len(keys):
                slots *= 4
                keys = np.concatenate((keys, np.empty((slots // 2 - count, _KEYS), dtype=np.int64)))
                sums = np.concatenate((sums, np.zeros((3, slots // 2 - count))), axis=1)
                holder = np.full(slots, -1, dtype=np.int64)
                for number in range(count):
                    holder[_find_slot(keys[number], keys, holder)] = number
    return keys[:count].T.copy(), sums[0, :count].copy(), sums[1, :count].copy(), sums[2, :count].copy()


@_inlined
def _size_class(size: np.int64) -> np.int64:
    """Return the number of binary digits of a size, 1 for none, -1 where it is not known."""
    digits = np.int64(1 if size >= 0 else -1)
    left = size if size > 0 else np.int64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if left >> step:
            left >>= step
            digits += step
    return digits


@_inlined
def _find_slot(key: IntArray, keys: IntArray, holder: IntArray) -> np.int64:
    """Return the slot in which the number of this key is held, or would be."""
    mixed = np.uint64(0)
    for row in range(_KEYS):
        mixed += np.uint64(key[row]) * np.uint64(_MIXERS[row])
    slot = find_first_slot(mixed, len(holder))
    while holder[slot] >= 0:
        same = True
        for row in range(_KEYS):
            same &= keys[holder[slot], row] == key[row]
        if same:
            break
        slot = (slot + 1) & (len(holder) - 1)
    return slot
