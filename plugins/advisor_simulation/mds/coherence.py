"""Caches that keep each other coherent by invalidation, line by line, with what each transaction was for.

A miss is *communication* where a word that is asked for was written by another processor since this one last had the
line, *migration* where that word was written by the same sub-domain while it ran on another processor, *false sharing*
where only other words of the line were written, *capacity* where the line had been replaced, and *cold* the first
time. Taking a line away from its readers (an upgrade) is told apart in the same way by who has read the words written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.mds.references import ReferenceStream

Bits = npt.NDArray[np.uint64]
Function = TypeVar("Function", bound=Callable[..., Any])

#: Kinds of transactions, in the order of the columns of counts and costs.
KINDS: Final = ("communication", "migration", "false sharing", "cold miss", "capacity miss")
#: The first of them move data between processors; the others fetch from memory and count as computation.
COHERENCE: Final = 3
_COMMUNICATION, _MIGRATION, _FALSE, _COLD, _CAPACITY = range(len(KINDS))
#: Holders of a line are bits of one number.
MOST_PROCESSORS: Final = 64
#: Bytes that the state of all lines and words may take: by word 21, by line 16, by line and processor 9.
LARGEST: Final = 2**31


def _compile_function(function: Function, inline: str = "never") -> Function:
    if find_spec("numba") is None:
        return function
    writable = os.access(Path(__file__).parent, os.W_OK)
    made: Function = import_module("numba").njit(cache=writable, inline=inline)(function)
    return made


def _compile_inlined(function: Function) -> Function:
    """Compile inline the steps of every reference: passing the state would take longer than the work."""
    return _compile_function(function, "always")


class CacheState(NamedTuple):
    """The state of all caches and words; ``line`` is in words.

    By line: ``holders`` (bits), ``dirty`` (the processor that wrote it last and alone holds it, or -1). By line and
    processor: ``lost`` the time at which it last had the line (-1: never), ``evicted``. By word: ``writer``, ``by``
    (its sub-domain), ``written`` (time), ``readers`` (bits, since then). ``tags`` and ``used`` (P, sets, ways) are
    empty for infinite caches. ``clock`` (1,) counts references.
    """

    line: int
    holders: Bits
    dirty: IntArray
    lost: IntArray
    evicted: npt.NDArray[np.bool_]
    writer: npt.NDArray[np.int8]
    by: npt.NDArray[np.int32]
    written: IntArray
    readers: Bits
    tags: IntArray
    used: IntArray
    clock: IntArray


def make_caches(words: int, line: int, processors: int, sets: int = 0, ways: int = 0) -> CacheState:
    """Return empty caches over ``words`` words; ``sets`` of ``ways`` lines each, or infinite ones for 0."""
    if processors > MOST_PROCESSORS:
        raise UsageError(f"data references are simulated for at most {MOST_PROCESSORS} processors, not {processors}")
    lines = -(-words // line) + 1
    if lines * (21 * line + 9 * processors + 16) > LARGEST:
        raise UsageError(f"{lines:,} lines on {processors} processors do not fit into memory; make the arrays smaller")
    return CacheState(
        line=line,
        holders=np.zeros(lines, dtype=np.uint64),
        dirty=np.full(lines, -1, dtype=np.int64),
        lost=np.full((lines, processors), -1, dtype=np.int64),
        evicted=np.zeros((lines, processors), dtype=np.bool_),
        writer=np.full(lines * line, -1, dtype=np.int8),
        by=np.full(lines * line, -1, dtype=np.int32),
        written=np.zeros(lines * line, dtype=np.int64),
        readers=np.zeros(lines * line, dtype=np.uint64),
        tags=np.full((processors, sets, ways), -1, dtype=np.int64),
        used=np.zeros((processors, sets, ways), dtype=np.int64),
        clock=np.ones(1, dtype=np.int64),
    )


class Traffic(NamedTuple):
    """What one loop's references caused: ``counts`` and ``cost`` (P, kinds), ``flow`` (P, P) words read by q from p.

    ``overwritten`` (P, P): words that q writes, and that p has read or written last. ``arrays`` (A, P, kinds): the
    counts by array.
    """

    counts: IntArray
    cost: FloatArray
    flow: IntArray
    overwritten: IntArray
    arrays: IntArray


class MissPrices(NamedTuple):
    """What a miss costs that memory, a processor of the same ``node`` (P,) or one of another node serves."""

    memory: float
    near: float
    far: float
    node: IntArray


def simulate_references(state: CacheState, parts: ReferenceStream, processor: IntArray, prices: MissPrices) -> Traffic:
    """Make all references of a stream; ``processor`` (sub-domains,) runs each sub-domain. Changes ``state``."""
    count = state.lost.shape[1]
    made = Traffic(
        np.zeros((count, len(KINDS)), dtype=np.int64),
        np.zeros((count, len(KINDS))),
        np.zeros((count, count), dtype=np.int64),
        np.zeros((count, count), dtype=np.int64),
        np.zeros((int(parts.array.max(initial=-1)) + 1, count, len(KINDS)), dtype=np.int64),
    )
    _run_stream(state, parts.word, parts.words, parts.write, parts.sub, parts.array, processor, prices, made)
    return made


@_compile_function
def _classify_miss(state: CacheState, p: int, line: int, start: int, stop: int, sub: int) -> int:
    """Return the kind of a miss."""
    fresh, foreign = False, False
    for w in range(start, stop):
        if state.writer[w] >= 0 and state.writer[w] != p and state.written[w] > state.lost[line, p]:
            fresh = True
            foreign = foreign or state.by[w] != sub
    if fresh:
        return _COMMUNICATION if foreign else _MIGRATION
    if state.lost[line, p] < 0:
        return _COLD
    return _CAPACITY if state.evicted[line, p] else _FALSE


@_compile_function
def _miss_price(dirty: int, p: int, kind: int, state: CacheState, line: int, prices: MissPrices) -> float:
    """Return what a miss costs: the way to the processor that has the line, or to memory."""
    if dirty >= 0 and dirty != p:
        return prices.near if prices.node[dirty] == prices.node[p] else prices.far
    if kind >= COHERENCE or state.holders[line] == 0:
        return prices.memory
    near = False
    for q in range(len(prices.node)):
        if q != p and prices.node[q] == prices.node[p] and state.holders[line] >> np.uint64(q) & np.uint64(1) != 0:
            near = True
    return prices.near if near else prices.far


@_compile_function
def _classify_sharing(state: CacheState, p: int, start: int, stop: int, sub: int) -> int:
    """Return why others have a line that is about to be written."""
    bit = np.uint64(1) << np.uint64(p)
    for w in range(start, stop):
        if state.writer[w] >= 0 and state.writer[w] != p and state.by[w] == sub:
            return _MIGRATION
    for w in range(start, stop):
        if state.readers[w] & ~bit != 0:
            return _COMMUNICATION
    return _FALSE


@_compile_inlined
def _store_words(
    state: CacheState, p: int, line: int, start: int, stop: int, sub: int, held: bool, array: int, prices: MissPrices,
    made: Traffic,
) -> None:  # fmt: skip
    """Write words; the line is taken from everybody else, which costs if this processor did not miss it anyway."""
    bit = np.uint64(1) << np.uint64(p)
    others = state.holders[line] & ~bit
    if others != 0:
        far = False
        for q in range(len(prices.node)):
            if others >> np.uint64(q) & np.uint64(1) != 0:
                far = far or prices.node[q] != prices.node[p]
                state.lost[line, q] = state.clock[0] - 1
        if held:
            kind = _classify_sharing(state, p, start, stop, sub)
            made.counts[p, kind] += 1
            made.arrays[array, p, kind] += 1
            made.cost[p, kind] += prices.far if far else prices.near
        state.holders[line] = bit
    state.dirty[line] = p
    for w in range(start, stop):
        used = state.readers[w] & ~bit
        if state.writer[w] >= 0 and state.writer[w] != p:
            used |= np.uint64(1) << np.uint64(state.writer[w])
        if used != 0:
            for q in range(len(prices.node)):
                made.overwritten[q, p] += used >> np.uint64(q) & np.uint64(1)
        state.writer[w] = p
        state.by[w] = sub
        state.written[w] = state.clock[0]
        state.readers[w] = bit


@_compile_inlined
def _update_cache_set(state: CacheState, p: int, line: int) -> None:
    """Note the use of a line in a finite cache; a full set evicts its least recently used line.

    A line that another processor has taken away leaves room.
    """
    chosen = line % state.tags.shape[1]
    oldest = 0
    bit = np.uint64(1) << np.uint64(p)
    for way in range(state.tags.shape[2]):
        held = state.tags[p, chosen, way]
        if held == line:
            state.used[p, chosen, way] = state.clock[0]
            return
        if held >= 0 and state.holders[held] & bit == 0:
            state.used[p, chosen, way] = 0
        if state.used[p, chosen, way] < state.used[p, chosen, oldest]:
            oldest = way
    gone = state.tags[p, chosen, oldest]
    if gone >= 0 and state.holders[gone] & bit != 0:
        state.holders[gone] &= ~bit
        state.evicted[gone, p] = True
        state.lost[gone, p] = state.clock[0]
        if state.dirty[gone] == p:
            state.dirty[gone] = -1
    state.tags[p, chosen, oldest] = line
    state.used[p, chosen, oldest] = state.clock[0]


@_compile_inlined
def _access_line(
    state: CacheState,
    p: int,
    line: int,
    start: int,
    stop: int,
    write: bool,
    sub: int,
    array: int,
    prices: MissPrices,
    made: Traffic,
) -> None:
    """Read or write words of one line."""
    bit = np.uint64(1) << np.uint64(p)
    held = state.holders[line] & bit != 0
    if not held:
        kind = _classify_miss(state, p, line, start, stop, sub)
        made.counts[p, kind] += 1
        made.arrays[array, p, kind] += 1
        made.cost[p, kind] += _miss_price(state.dirty[line], p, kind, state, line, prices)
        if state.dirty[line] >= 0 and state.dirty[line] != p:
            state.dirty[line] = -1
        state.holders[line] |= bit
        state.evicted[line, p] = False
    if state.tags.shape[1] > 0:
        _update_cache_set(state, p, line)
    if write:
        _store_words(state, p, line, start, stop, sub, held, array, prices, made)
        return
    for w in range(start, stop):
        if state.readers[w] & bit == 0 and state.writer[w] >= 0 and state.writer[w] != p:
            made.flow[state.writer[w], p] += 1
        state.readers[w] |= bit


@_compile_function
def _run_stream(
    state: CacheState, word: IntArray, words: IntArray, write: npt.NDArray[np.bool_], sub: IntArray,
    array: npt.NDArray[np.int32], processor: IntArray, prices: MissPrices, made: Traffic,
) -> None:  # fmt: skip
    """Make references one after the other, line by line."""
    for k in range(len(word)):
        here = word[k]
        end = here + words[k]
        p = processor[sub[k]]
        while here < end:
            line = here // state.line
            stop = min(end, (line + 1) * state.line)
            state.clock[0] += 1
            _access_line(state, p, line, here, stop, write[k], sub[k], array[k], prices, made)
            here = stop
