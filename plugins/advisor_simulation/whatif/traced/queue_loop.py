"""The loop that follows a queue for cores through the beginnings and ends of computations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor_simulation.replay.numba_compiler import numba_helper

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Mask = npt.NDArray[np.bool_]

#: Places in ``QueueState.counts``: the first in the queue, how many entries it has, how many of these still wait, the
#: slice that ends first, how many slices there are, free cores.
_FIRST, _ENTRIES, _WAITING, _SOONEST, _SLICES, _FREE = range(6)
#: Ends while others are queued from which on too many of them in the queue say that there is none.
_ENOUGH: Final = 60


class QueueState(NamedTuple):
    """What is known while a queue is followed.

    By stretch: ``since`` when it is on a core (-1: not), its ``seconds`` there, the number of its ``turn`` and whether
    it is ``gone``. Rings: the stretches that are ``queued``; those ``running`` with the ``limit`` of their slice and
    the turn that this is about, ``which``. ``counts`` are numbers of all.
    """

    since: FloatArray
    seconds: FloatArray
    turn: IntArray
    gone: Mask
    queued: IntArray
    running: IntArray
    limit: FloatArray
    which: IntArray
    counts: IntArray


def prepare_queue(stretches: int, cores: int) -> QueueState:
    """Return the state before anything has begun."""
    size, numbers = stretches + 1, np.int64
    return QueueState(
        np.full(stretches, -1.0), np.zeros(stretches), np.zeros(stretches, dtype=numbers),
        np.zeros(stretches, dtype=np.bool_), np.empty(size, dtype=numbers), np.empty(size, dtype=numbers),
        np.empty(size), np.empty(size, dtype=numbers), np.array([0, 0, 0, 0, 0, cores]),
    )  # fmt: skip


@numba_helper
def _join_queue(state: QueueState, one: int) -> None:
    counts = state.counts
    state.queued[(counts[_FIRST] + counts[_ENTRIES]) % len(state.queued)] = one
    counts[_ENTRIES] += 1
    counts[_WAITING] += 1


@numba_helper
def _give_cores(state: QueueState, now: float, slice_s: float) -> None:
    """Give free cores to those in the queue."""
    counts, size = state.counts, len(state.queued)
    while counts[_FREE] and counts[_ENTRIES]:
        one = state.queued[counts[_FIRST]]
        counts[_FIRST] = (counts[_FIRST] + 1) % size
        counts[_ENTRIES] -= 1
        if not state.gone[one]:
            counts[_WAITING] -= 1
            counts[_FREE] -= 1
            state.since[one] = now
            state.turn[one] += 1
            here = (counts[_SOONEST] + counts[_SLICES]) % size
            state.running[here], state.limit[here], state.which[here] = one, now + slice_s, state.turn[one]
            counts[_SLICES] += 1


@numba_helper
def _find_limit(state: QueueState) -> float:
    """Return when the first slice ends of those who still compute."""
    counts, size = state.counts, len(state.queued)
    while counts[_SLICES]:
        here = counts[_SOONEST]
        one = state.running[here]
        if state.since[one] >= 0 and state.turn[one] == state.which[here]:
            return float(state.limit[here])
        counts[_SOONEST] = (here + 1) % size
        counts[_SLICES] -= 1
    return np.inf


@numba_helper
def _end_part(state: QueueState, one: int, now: float, last: bool) -> bool:
    """Note that a part ends, ``last`` the stretch with it; return whether it is on a core."""
    held = bool(state.since[one] >= 0)
    if held:
        state.seconds[one] += now - state.since[one]
        state.since[one] = now
    if last:
        state.gone[one] = True
        state.since[one] = -1.0
        state.counts[_FREE if held else _WAITING] += 1 if held else -1
    return held


def follow_queue(
    start: FloatArray, end: FloatArray, job: IntArray, last: Mask, rules: FloatArray, state: QueueState,
    on_core: FloatArray, counts: IntArray,
) -> bool:  # fmt: skip
    """Note how long each part was ``on_core``, and return False as soon as too many end in the queue.

    ``start`` (stretches,), and of each part ``end``, its stretch ``job`` and whether that ends there, ``last``, in
    order of time. ``counts`` are the ends while others were queued, and those of stretches that were; ``rules`` the
    slice, times that are one, and the part of the ends that may be in the queue.
    """
    begun, part = 0, 0
    while part < len(end):
        begins = start[begun] if begun < len(start) else np.inf
        expires = _find_limit(state)
        if end[part] <= expires + rules[1] and end[part] <= begins:
            now, one = end[part], job[part]
            contested = state.counts[_WAITING] > 0
            held = _end_part(state, one, now, last[part])
            on_core[part] = state.seconds[one]
            state.seconds[one] = 0.0
            counts[0] += contested
            counts[1] += not held
            part += 1
            if counts[0] >= _ENOUGH and counts[1] > rules[2] * counts[0]:
                return False
        elif expires <= begins:
            now, one = expires, state.running[state.counts[_SOONEST]]
            state.seconds[one] += now - state.since[one]
            state.since[one] = -1.0
            state.counts[_FREE] += 1
            _join_queue(state, one)
        else:
            now = begins
            _join_queue(state, begun)
            begun += 1
        _give_cores(state, now, rules[0])
    return bool(counts[1] <= rules[2] * counts[0])
