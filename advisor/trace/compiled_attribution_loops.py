"""Loops that book the seconds of pieces and calls, compiled by numba: each value is touched once.

Each gives what functions of plain numpy give, which are named there and used for small traces and without numba.
Importing this module imports numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.support.compiling import jit
from advisor.trace.compiled_loops import Bools, Kinds, Words, find_instance
from advisor.trace.events import SENDS, SYNCHRONIZING_ROLES, Kind, Role

if TYPE_CHECKING:
    import numpy as np

    from advisor.model.records import FloatArray, IntArray

_INIT, _TOOL, _IO_ROLE, _OS = int(Role.INIT), int(Role.TOOL), int(Role.IO), int(Role.OS)
_SYNCHRONIZING: Final = tuple(map(int, SYNCHRONIZING_ROLES))
_SENDS: Final = tuple(map(int, SENDS))
_COLLECTIVE, _IO = int(Kind.COLLECTIVE), int(Kind.IO)

_lent: Final = jit(allocating=False, without_gil=True)
_inlined: Final = jit(allocating=False, inlined=True, without_gil=True)


@_lent
def sum_pieces(
    pieces: tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray, FloatArray],
    calls: tuple[IntArray, IntArray, IntArray],
    first_threads: Bools,
    phase_of: IntArray,
    rows: int,
    sums: FloatArray,
    outside: FloatArray,
    place: IntArray,
) -> None:
    """Fill ``sums`` (3, calls), ``outside`` (5, locations) and ``place`` as ``piece_totals._sum_columns`` does.

    ``pieces`` are location, call, instance and seconds inside, before and after, ``calls`` role, anchor and row.
    """
    location, call_of, instance, inside, before, after = pieces
    role, anchor, row = calls
    for piece in range(len(location)):
        here, call, seconds = location[piece], call_of[piece], inside[piece]
        place[piece] = -1
        started = call >= 0 and role[call] == _INIT
        outside[0, here] += before[piece] + seconds if started else before[piece]
        outside[1, here] += after[piece]
        if call < 0:
            outside[3 if first_threads[here] else 2, here] += seconds
            continue
        sums[1, call] += before[piece]
        sums[2, call] += after[piece]
        if anchor[call] >= 0:
            sums[0, call] += seconds
        if role[call] == _TOOL:
            outside[4, here] += seconds
        elif not started:
            place[piece] = phase_of[instance[piece]] * rows + row[call]


@_lent
def split_calls(
    sums: FloatArray,
    calls: tuple[IntArray, IntArray, FloatArray],
    wait_s: FloatArray,
    leaves_s: FloatArray,
    places: IntArray,
    seconds: FloatArray,
) -> int:
    """Fill ``places`` with calls and instances and ``seconds`` (7, calls) as ``categories._split_calls`` does.

    ``calls`` are role, location and start. Returns how many calls have any seconds.
    """
    role, location, start_s = calls
    count, here, instance, latest = 0, -1, 0, 0.0
    for call in range(len(role)):
        total, before, after = sums[0, call], sums[1, call], sums[2, call]
        if total == 0.0 and before == 0.0 and after == 0.0:
            continue
        if location[call] != here or start_s[call] < latest:
            here, instance = location[call], 0
        latest = start_s[call]
        instance = find_instance(leaves_s, here, instance, start_s[call])
        what = role[call]
        wait = min(wait_s[call], total)
        rest = total - wait
        places[0, count], places[1, count] = call, instance
        seconds[:, count] = 0.0
        if what in _SYNCHRONIZING:
            seconds[1, count] = rest
        elif what == _IO_ROLE:
            seconds[3, count] = rest
        elif what == _OS:
            seconds[4, count] = rest
        elif what not in (_TOOL, _INIT):
            seconds[2, count] = rest
        if what not in (_TOOL, _INIT):
            seconds[0, count] = wait
        seconds[5, count] = before + (total if what == _INIT else 0.0)
        seconds[6, count] = after
        count += 1
    return count


@_lent
def add_piece_seconds(
    keys: IntArray,
    location: IntArray,
    instance: IntArray,
    seconds: FloatArray,
    layout: tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray],
    size: tuple[int, int],
    booked: FloatArray,
) -> None:
    """Add the seconds of pieces to their cells; their ``keys`` are those of ``sum_pieces``, ``layout`` as of a cell."""
    for piece in range(len(keys)):
        if keys[piece] >= 0:
            booked[_find_cell(keys[piece], instance[piece], location[piece], layout, size)] += seconds[piece]


@_lent
def add_call_seconds(
    places: tuple[IntArray, IntArray],
    calls: tuple[IntArray, IntArray],
    seconds: tuple[FloatArray, ...],
    layout: tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray],
    size: tuple[int, int],
    booked: FloatArray,
) -> None:
    """Add the ``seconds`` of calls in instances to the cells of each measure, the rows of ``booked``.

    The last of the seconds, of which there may be more than measures, decide with the others which entries are none.
    """
    call_of, instance_of = places
    row, location = calls
    phase_of = layout[3]
    for entry in range(len(call_of)):
        total = 0.0
        for measure in range(len(seconds)):
            total += seconds[measure][entry]
        if total == 0.0:
            continue
        call, instance = call_of[entry], instance_of[entry]
        key = phase_of[instance] * size[0] + row[call]
        cell = _find_cell(key, instance, location[call], layout, size)
        for measure in range(len(booked)):
            booked[measure, cell] += seconds[measure][entry]


@_inlined
def _find_cell(
    key: np.int64,
    instance: np.int64,
    location: np.int64,
    layout: tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray],
    size: tuple[int, int],
) -> np.int64:
    """Return the cell of phase * rows + row, as ``CellLayout.find_cells`` does.

    ``layout`` are the keys that are present, where each phase begins among them, the base of its cells, the phases and
    iterations of instances, and how many iterations each phase has; ``size`` how many rows and locations there are.
    """
    present, starts, base, phase_of, iteration_of, iterations = layout
    phase = phase_of[instance]
    low, high = starts[phase], starts[phase + 1]
    while low < high:
        middle = (low + high) // 2
        if present[middle] < key:
            low = middle + 1
        else:
            high = middle
    place = ((low - starts[phase]) * size[1] + location) * iterations[phase]
    cell: np.int64 = base[phase] + place + iteration_of[instance]
    return cell


@_lent
def count_events(
    inner: tuple[IntArray, Kinds, IntArray],
    columns: tuple[IntArray, Words],
    cell_of_call: IntArray,
    counts: FloatArray,
    occurring: Bools,
) -> None:
    """Add to ``counts`` (5, cells) what ``counts.count_events`` counts besides calls, and tell which are ``occurring``.

    ``inner`` are event, kind and call of the events inside of calls, ``columns`` the size and tag of all events.
    """
    events, kinds, call = inner
    size, tag = columns
    for place in range(len(events)):
        kind, event, cell = kinds[place], events[place], cell_of_call[call[place]]
        if kind in _SENDS:
            counts[0, cell] += 1.0
            counts[1, cell] += max(size[event], 0)
            occurring[0] = occurring[1] = True
        elif kind == _COLLECTIVE:
            counts[2, cell] += 1.0
            occurring[2] = True
        elif kind == _IO:
            counts[3, cell] += 1.0 + max(tag[event], 0)
            counts[4, cell] += max(size[event], 0)
            occurring[3] = occurring[4] = True
