"""What a traced program does between synchronizations: pieces of its threads' words, with a digest of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor_simulation.program.address_trace import TracedProcess, TracedThread, Words
    from advisor_simulation.program.code_loops import ProgramCode

FORK, JOIN, BEGIN, END, BARRIER = 2, 3, 4, 5, 6
_PLACE, _COUNT, _KIND, _X, _Y, _Z = range(6)
#: A loop around messages that runs so often is taken for the loop over time.
_FEWEST_TURNS: Final = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """What one thread does in a phase: its words, their objects, and the instructions executed at beginning and end."""

    words: Words
    owners: npt.NDArray[np.int32]
    begin_count: int
    end_count: int


@dataclass(frozen=True, slots=True)
class ProgramPhase:
    """A phase: ``parallel`` ones have a piece for each processor that took part, others one of processor 0.

    ``body`` is the address of the function that the threads execute, 0 for none. ``closes`` where all wait at its end.
    """

    parallel: bool
    body: int
    pieces: Mapping[int, Piece]
    closes: bool = True

    @property
    def digest(self) -> str:
        """What is equal for phases that execute the same instructions on the same data."""
        made = hashlib.blake2b(repr((self.parallel, self.body)).encode(), digest_size=16)
        for processor in sorted(self.pieces):
            words = self.pieces[processor].words
            marks = words >> np.uint64(63) == 1
            made.update(f"{processor} {len(words)}".encode())
            made.update(np.where(marks, words >> np.uint64(48), words).tobytes())
        return made.hexdigest()


def split_team_phases(process: TracedProcess) -> Iterator[ProgramPhase]:
    """Yield the phases of a process with teams of threads, in the order of the first thread."""
    first = next((thread for thread in process.threads if (thread.told[:, _KIND] == FORK).any()), process.threads[0])
    parts = _collect_parts(process)
    done = 0
    inside, outer = False, 0
    for place, _, kind, number, body, *_ in first.told.tolist():
        if kind == FORK and not inside:
            inside, outer = True, number
            if place > done:
                yield ProgramPhase(False, 0, {0: _cut_piece(first, done, place)})
            members = parts.get(number, {})
            for turn in range(max((len(pieces) for pieces in members.values()), default=0)):
                pieces = {tid: pieces[turn] for tid, pieces in members.items() if turn < len(pieces)}
                yield ProgramPhase(True, body, pieces)
        elif kind == JOIN and inside and number == outer:
            inside, done = False, place
    if len(first.words) > done:
        yield ProgramPhase(False, 0, {0: _cut_piece(first, done, len(first.words))})


def _collect_parts(process: TracedProcess) -> dict[int, dict[int, list[Piece]]]:
    """Return by team and by number of the thread in it what it did between barriers.

    A team that a thread of a team begins belongs to what that thread does: runtimes give it one thread.
    """
    found: dict[int, dict[int, list[Piece]]] = {}
    for thread in process.threads:
        team, tid, begin, began, within = -1, 0, 0, 0, 0
        for place, count, kind, x, y, *_ in thread.told.tolist():
            if team >= 0 and kind in (BEGIN, END) and within + (kind == BEGIN):
                within += 1 if kind == BEGIN else -1
            elif kind == BEGIN:
                team, tid, begin, began = x, y, place, count
            elif team >= 0 and not within and (kind == END or (kind == BARRIER and x == 0)):
                found.setdefault(team, {}).setdefault(tid, []).append(_make_piece(thread, begin, place, began, count))
                begin, began = place, count
                team = -1 if kind == END else team
    return found


def _make_piece(thread: TracedThread, begin: int, end: int, began: int, ended: int) -> Piece:
    owners = thread.owners[begin:end] if thread.owners is not None else np.full(end - begin, -1, dtype=np.int32)
    return Piece(thread.words[begin:end], owners, began, ended)


def _cut_piece(thread: TracedThread, begin: int, end: int) -> Piece:
    """Return a piece of a thread; its instructions are those at the next record that states them."""
    marks = np.flatnonzero(thread.words[begin:end] >> np.uint64(63) == 1)
    counts = (thread.words[begin:end][marks] & np.uint64((1 << 48) - 1)).astype(np.int64)
    told = thread.told
    before = told[told[:, _PLACE] <= begin][:, _COUNT]
    after = told[told[:, _PLACE] >= end][:, _COUNT]
    first = int(before.max(initial=counts[0] if len(counts) and not begin else 0))
    if not len(before) and begin and len(counts):
        first = int(counts[0])
    last = int(after.min()) if len(after) else int(counts[-1]) if len(counts) else first
    return _make_piece(thread, begin, end, first, max(first, last))


def find_time_loop(words: Words, code: ProgramCode) -> int:
    """Return the loop over time; -1 where no loop holds messages.

    Of the outermost loops of functions around most messages it is the one that runs least often: loops of functions
    that are called in each of its iterations seem to hold as many, from their first execution to their last one.
    """
    marks = np.flatnonzero(words >> np.uint64(63) == 1)
    numbers = (words[marks] >> np.uint64(48) & np.uint64(0x7FFF)).astype(np.int64)
    first_call = len(code.loops) + len(code.exits)
    calls = marks[numbers >= first_call]
    found: list[tuple[int, int, int]] = []
    for loop, one in enumerate(code.loops):
        heads = marks[numbers == loop]
        if one.parent < 0 and len(heads) >= _FEWEST_TURNS:
            inside = int(((calls > heads[0]) & (calls < heads[-1])).sum())
            found.append((len(heads), loop, inside))
    most = max((inside for _, _, inside in found), default=0)
    return min(((turns, loop) for turns, loop, inside in found if inside and 2 * inside >= most), default=(0, -1))[1]


def split_turns(thread: TracedThread, loop: int) -> list[Piece]:
    """Return what is before the loop, each of its iterations, and what is from its last one on."""
    words = thread.words
    if loop < 0:
        return [_cut_piece(thread, 0, len(words))]
    heads = np.flatnonzero(words >> np.uint64(48) == np.uint64(0x8000 | loop))
    edges = [0, *heads.tolist(), len(words)]
    return [_cut_piece(thread, begin, end) for begin, end in pairwise(edges)]
