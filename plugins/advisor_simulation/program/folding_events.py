"""The accesses of a phase by processor, cut into steps and rounds: what folding looks for loops and formulas in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.program.folded_phases import PlacedEvents, RaggedList

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

    Mask = npt.NDArray[np.bool_]
    Small = npt.NDArray[np.int32] | IntArray

#: The outermost "loop" of what is in none.
NO_LOOP: Final = -1
#: Instructions that repeat themselves are loops with numbers from here on.
REPEATED: Final = 1 << 20
#: Loops that are entered this often at most in a phase, outside of others, are steps of their own each time.
_MOST_STEPS: Final = 32
#: Keys of rows that are larger are replaced by their ranks.
_LARGEST_KEY: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Accesses by processor and in program order: columns of one length, ``turns`` (n, depth) of the loops around."""

    processor: IntArray
    path: IntArray
    turns: Small
    number: IntArray
    stores: Mask
    data: IntArray
    offset: IntArray
    place: IntArray


@dataclass(frozen=True, slots=True)
class Events:
    """Some ``rows`` of the accesses (None: all): each level of a nest of loops holds most of them."""

    columns: EventColumns
    rows: Small | None = None

    def select_rows(self, rows: Small | Mask) -> Events:
        """Return some of these accesses."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if self.rows is not None:
            return Events(self.columns, self.rows[chosen])
        return Events(self.columns, chosen.astype(np.int32))

    def change_turns(self, turns: Small, path: IntArray | None = None) -> Events:
        """Return these accesses with other turns, and in other loops."""
        around = self.path if path is None else path
        kept = (self.number, self.stores, self.data, self.offset, self.place)
        return Events(EventColumns(self.processor, around, turns, *kept))

    @property
    def processor(self) -> IntArray:
        """Who made each access."""
        return self._take(self.columns.processor)

    @property
    def path(self) -> IntArray:
        """The number of the path of loops around each access."""
        return self._take(self.columns.path)

    @property
    def turns(self) -> Small:
        """The turns of these loops."""
        return self.columns.turns if self.rows is None else self.columns.turns[self.rows]

    @property
    def number(self) -> IntArray:
        """The number of the instruction."""
        return self._take(self.columns.number)

    @property
    def stores(self) -> Mask:
        """Whether it stores."""
        return self.columns.stores if self.rows is None else self.columns.stores[self.rows]

    @property
    def data(self) -> IntArray:
        """The object that is accessed, -1 for none."""
        return self._take(self.columns.data)

    @property
    def offset(self) -> IntArray:
        """Where in it, bytes."""
        return self._take(self.columns.offset)

    @property
    def place(self) -> IntArray:
        """The place of each access in the order of its processor."""
        return self._take(self.columns.place)

    def _take(self, column: IntArray) -> IntArray:
        return column if self.rows is None else column[self.rows]


@dataclass(frozen=True, slots=True)
class Space:
    """All executions of a body, in order of index: ``columns`` (n, d) domain index and inner indices, processors."""

    columns: IntArray
    processor: IntArray
    size: int

    def find_rows(self, turns: Small) -> IntArray:
        """Return which executions columns of indices belong to."""
        key = np.zeros(len(self.columns), dtype=np.int64)
        wanted = np.zeros(len(turns), dtype=np.int64)
        for k in range(self.columns.shape[1]):
            radix = int(max(self.columns[:, k].max(initial=0), turns[:, k].max(initial=0))) + 1
            if int(max(key.max(initial=0), wanted.max(initial=0))) * radix > _LARGEST_KEY:
                ranks = np.unique(np.r_[key, wanted], return_inverse=True)[1]
                key, wanted = ranks[: len(key)], ranks[len(key) :]
            key, wanted = key * radix + self.columns[:, k], wanted * radix + turns[:, k]
        return np.asarray(np.searchsorted(key, wanted), dtype=np.int64)

    def list_values(self, rows: IntArray, values: IntArray) -> RaggedList:
        """Return values of executions (rising ``rows``) as lists by domain index."""
        counts = np.bincount(self.columns[rows, 0], minlength=self.size)
        return RaggedList(np.r_[0, np.cumsum(counts)].astype(np.int64), values.astype(np.int64))

    @property
    def variables(self) -> IntArray:
        """Columns and processor (n, d + 1): what formulas are of."""
        return np.asarray(np.c_[self.columns, self.processor], dtype=np.int64)

    def repeat_rows(self, times: IntArray) -> Space:
        """Return the executions of a body that each execution here runs ``times`` times."""
        total = int(times.sum())
        turn = np.arange(total) - np.repeat(np.cumsum(times) - times, times)
        return Space(np.c_[np.repeat(self.columns, times, axis=0), turn], np.repeat(self.processor, times), self.size)


def group_rows(events: Events) -> list[IntArray]:
    """Return the rows of each reference: of one path, instruction and object; those with most rows first."""
    # all of these are small numbers, and numbers of 16 bits are sorted by counting
    small = [one.astype(np.int16) for one in (events.stores, events.data, events.number, events.path)]
    order = np.lexsort(small)
    keys = np.stack(small, axis=1)[order]
    edges = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)]) if len(keys) else np.zeros(0, np.int64)
    groups = np.split(order, edges[1:]) if len(edges) else []
    return sorted(groups, key=lambda rows: -len(rows))


def join_events(events: Mapping[int, PlacedEvents]) -> Events:
    """Return the accesses of all processors, one processor after the other."""
    parts = sorted(events.items())

    def join_column(name: str) -> IntArray:
        return np.concatenate([np.asarray(getattr(one.located, name)) for _, one in parts])

    width = max(one.located.turns.shape[1] for _, one in parts)
    turns = np.concatenate([_widen_turns(one.located.turns, width) for _, one in parts])
    processor = np.concatenate([np.full(len(one.data), q, dtype=np.int64) for q, one in parts])
    columns = EventColumns(
        processor=processor,
        path=join_column("path"),
        turns=turns,
        number=join_column("number"),
        stores=join_column("stores").astype(np.bool_),
        data=np.concatenate([one.data for _, one in parts]),
        offset=np.concatenate([one.offset for _, one in parts]),
        place=join_column("place").astype(np.int64),
    )
    return Events(columns)


def _widen_turns(turns: npt.NDArray[np.int32], width: int) -> npt.NDArray[np.int32]:
    """Return turns with zeros for loops as deep as on other processors."""
    wide = np.zeros((len(turns), width), dtype=np.int32)
    wide[:, : turns.shape[1]] = turns
    return wide


def unroll_repeats(events: Events, paths: Sequence[tuple[int, ...]]) -> tuple[Events, Sequence[tuple[int, ...]]]:
    """Turn an instruction that makes several accesses in a row, such as ``rep movsq``, into a loop."""
    paths = list(paths)
    path, turns = events.path.copy(), np.c_[events.turns, np.zeros(len(events.path), dtype=np.int32)]
    columns = (events.processor, events.path, events.number, *events.turns.T)
    begins = mark_changes(columns)
    run = np.cumsum(begins) - 1
    if run.size == 0 or begins.all():
        return events.change_turns(turns), paths
    order = np.lexsort((events.stores, run))
    turn = np.empty(len(run), dtype=np.int64)
    same = np.flatnonzero(mark_changes((run[order], events.stores[order])))
    turn[order] = np.arange(len(run)) - np.repeat(same, np.diff(np.r_[same, len(run)]))
    for number in np.unique(events.number[turn > 0]).tolist():
        rows = np.flatnonzero(events.number == number)
        for before in np.unique(events.path[rows]).tolist():
            mine = rows[events.path[rows] == before]
            own = (*paths[before], REPEATED + number)
            if own not in paths:
                paths.insert(len(paths) - 1, own)  # the last one, also by the number -1, is that of no loop
            turns[mine, len(own) - 1] = turn[mine]
            path[mine] = paths.index(own)
    return events.change_turns(turns, path), paths


def mark_changes(columns: Sequence[IntArray | Mask]) -> Mask:
    """Return where a row differs from the one before."""
    changed = np.ones(len(columns[0]), dtype=np.bool_)
    if len(changed):
        changed[1:] = False
        for column in columns:
            changed[1:] |= column[1:] != column[:-1]
    return changed


@dataclass(frozen=True, slots=True)
class StepEvents:
    """The ``rows`` of a step's accesses, and its loop; ``shared`` where only a share of the phase's work is known."""

    top: int
    rows: IntArray
    shared: bool


def split_steps(events: Events, tops: IntArray) -> list[StepEvents]:
    """Return the steps of a phase in their order; ``tops`` are the outermost loops of the accesses.

    A loop that is entered a few times, in the same order on all processors, is a step each time. Loops that come in
    turns more often are one step without a loop, whose rounds they are.
    """
    looping = np.flatnonzero(tops != NO_LOOP)
    turn = events.turns[looping, 0]
    begins = mark_changes((events.processor[looping], tops[looping]))
    begins[1:] |= turn[1:] < turn[:-1]
    first = looping[begins]
    entered = {
        q: tuple(tops[first[events.processor[first] == q]].tolist())
        for q in np.unique(events.processor[first]).tolist()
    }
    again = any(len(set(each)) < len(each) for each in entered.values())
    part = np.full(len(tops), -1, dtype=np.int64)
    part[looping] = np.unique(tops[looping], return_inverse=True)[1]
    merged: set[int] = set()
    few = len(set(entered.values())) == 1 and len(first) <= _MOST_STEPS * len(entered)
    if again and few:
        part[looping] = (np.searchsorted(first, looping, "right") - 1) % len(next(iter(entered.values())))
    elif again:
        merged = _merge_turns(events, tops, part, entered)
    steps: list[tuple[int, StepEvents]] = []
    for number in np.unique(part).tolist():
        rows = np.flatnonzero(part == number)
        top = NO_LOOP if number in merged else int(tops[rows[0]])
        steps.append((int(events.place[rows].min()), StepEvents(top, rows, again and (few or number in merged))))
    return [step for _, step in sorted(steps, key=lambda one: one[0])]


def _merge_turns(events: Events, tops: IntArray, part: IntArray, entered: Mapping[int, Sequence[int]]) -> set[int]:
    """Give one number to all that is between the first and the last time that a loop is entered; return the numbers."""
    merged: set[int] = set()
    for q, order in entered.items():
        for top in {one for one in order if order.count(one) > 1}:
            rows = np.flatnonzero((events.processor == q) & (tops == top))
            begin, end = int(rows[0]), int(rows[-1]) + 1
            target = int(part[begin])
            inside = np.unique(part[begin:end])
            part[np.isin(part, inside[inside >= 0])] = target
            part[begin:end] = target
            merged.add(target)
    return merged & set(np.unique(part).tolist())


def count_rounds(events: Events, following: Small, width: int) -> IntArray | None:
    """Return for each access how often something had come again before in this execution of a body.

    ``following`` is the loop within the body that an access is in. None where nothing comes twice.
    """
    if not len(following):
        return None
    own = following == NO_LOOP
    turns = events.turns
    item = np.where(own, events.number * 2 + events.stores, -2 - following)
    inner = np.where(own, 0, turns[:, width]) if turns.shape[1] > width else np.zeros(len(own), np.int32)
    begins = mark_changes((events.processor, *turns[:, :width].T))
    entered = begins | mark_changes((item,)) | own
    entered[1:] |= inner[1:] < inner[:-1]
    rank = _rank_first(item)
    rows = np.flatnonzero(entered)
    back = np.zeros(len(item), dtype=np.bool_)
    back[rows[1:]] = rank[rows[1:]] <= rank[rows[:-1]]
    back &= ~begins
    if not back.any():
        return None
    body = np.cumsum(begins) - 1
    if len(np.unique(body[rows] * (int(rank.max()) + 1) + rank[rows])) == len(rows):
        return None
    count = np.cumsum(back)
    started = np.flatnonzero(begins)
    return np.asarray(count - count[started][body], dtype=np.int64)


def _rank_first(item: IntArray) -> IntArray:
    """Return the order in which values come for the first time."""
    _, first, inverse = np.unique(item, return_index=True, return_inverse=True)
    rank: IntArray = np.argsort(np.argsort(first))[inverse]
    return rank
