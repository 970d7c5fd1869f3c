"""From the accesses of a phase to loops with references: index expressions, trip counts, conditions, and who does what.

Each outermost loop of a phase becomes a loop over a domain. Its index is recovered from who touches what: a reference
that moves by a constant stride gives each processor's first index. All references are then fitted, over all processors
at once, to linear functions of the indices and of the processor; what fits none is irregular, and stays a list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.program.fitting import LinearForm, fit_linear
from advisor_simulation.program.folded_phases import (
    FoldedItem,
    FoldedLoop,
    FoldedPhase,
    FoldedReference,
    FoldedStep,
    Formula,
    PlacedEvents,
    RaggedList,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Mask = npt.NDArray[np.bool_]

#: The outermost "loop" of what is in none.
NO_LOOP = -1
#: Instructions that repeat themselves are loops with numbers from here on.
_REPEATED = 1 << 20
#: This share of a loop's instructions is a test of its condition.
_LITTLE_WORK = 0.01
#: So few lines of memory without a name for each processor are scalars of frames.
_FEW_LINES, _LINE_B = 64, 64
#: Keys of rows that are larger are replaced by their ranks.
_LARGEST_KEY: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class _Events:
    processor: IntArray
    path: IntArray
    turns: IntArray
    number: IntArray
    stores: Mask
    data: IntArray
    offset: IntArray
    place: IntArray

    def select_rows(self, rows: IntArray | Mask) -> _Events:
        return _Events(
            self.processor[rows], self.path[rows], self.turns[rows], self.number[rows], self.stores[rows],
            self.data[rows], self.offset[rows], self.place[rows],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Space:
    """All executions of a body, in order of index: ``columns`` (n, d) domain index and inner indices, processors."""

    columns: IntArray
    processor: IntArray
    size: int

    def find_rows(self, turns: IntArray) -> IntArray:
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

    def repeat_rows(self, times: IntArray) -> _Space:
        """Return the executions of a body that each execution here runs ``times`` times."""
        total = int(times.sum())
        turn = np.arange(total) - np.repeat(np.cumsum(times) - times, times)
        return _Space(np.c_[np.repeat(self.columns, times, axis=0), turn], np.repeat(self.processor, times), self.size)


def fold_phase(
    events: Mapping[int, PlacedEvents],
    paths: Sequence[tuple[int, ...]],
    sizes: Mapping[int, int],
    fresh: bool,
    shared: bool,
) -> FoldedPhase:
    """Return the steps of a phase from the accesses of its processors.

    A phase that is not ``fresh`` may begin within loops, whose iterations count from its beginning; those that hold all
    of it are no loops of its own. Processors that share no memory (not ``shared``) share no domains either.
    """
    whole = _join_events(events)
    made = FoldedPhase(accesses=len(whole.path), unplaced=_count_unplaced(whole))
    if (whole.data < 0).any():
        whole = whole.select_rows(whole.data >= 0)
    around = 0 if fresh else _count_loops_around(whole, paths)
    paths = [path[around:] for path in paths] + [()]
    deepest = max((len(paths[number]) for number in np.unique(whole.path).tolist()), default=0)
    whole, paths = _unroll_repeats(replace(whole, turns=whole.turns[:, around : around + deepest]), paths)
    tops = np.array([path[0] if path else NO_LOOP for path in paths])[whole.path]
    found = {top: float(whole.place[tops == top].min()) for top in np.unique(tops).tolist()}
    for top in sorted(found, key=lambda one: found[one]):
        part = whole.select_rows(tops == top) if len(found) > 1 else whole
        if not fresh:
            part.turns[:, 0] -= _first_turns(part)[part.processor]
        weighed = _weigh_share(events, len(part.path) / max(len(whole.path), 1)) if around or not fresh else None
        made.steps.append(_fold_top(part, top, events, paths, sizes, weighed, shared))
    return made


def _first_turns(events: _Events) -> IntArray:
    first = np.full(int(events.processor.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, events.processor, events.turns[:, 0])
    return first


def _weigh_share(events: Mapping[int, PlacedEvents], share: float) -> FloatArray:
    """Return a share of the instructions of each processor."""
    weight = np.zeros(max(events) + 1)
    for q, one in events.items():
        weight[q] = share * (one.end_count - one.begin_count)
    return weight


def _count_unplaced(events: _Events) -> int:
    """Return how many accesses go to memory without a name, where that is more than a few scalars of each processor."""
    unplaced = events.data < 0
    lines = np.unique(events.offset[unplaced] // _LINE_B)
    return int(unplaced.sum()) if len(lines) > _FEW_LINES * len(np.unique(events.processor)) else 0


def _unroll_repeats(events: _Events, paths: Sequence[tuple[int, ...]]) -> tuple[_Events, Sequence[tuple[int, ...]]]:
    """Turn a repeating instruction, such as ``rep movsq``, into a loop."""
    paths = list(paths)
    path, turns = events.path.copy(), np.c_[events.turns, np.zeros(len(events.path), dtype=np.int64)]
    for rows in _group_rows(events):
        depth = len(paths[path[rows[0]]])
        keys = np.c_[events.processor[rows], turns[rows][:, :depth]]
        change = np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)]
        if change.all():
            continue
        own = (*paths[path[rows[0]]], _REPEATED + int(events.number[rows[0]]))
        if own not in paths:
            paths.insert(len(paths) - 1, own)  # the last one, also by the number -1, is that of no loop
        turns[rows, depth] = np.arange(len(rows)) - np.flatnonzero(change)[np.cumsum(change) - 1]
        path[rows] = paths.index(own)
    return replace(events, path=path, turns=turns), paths


def _count_loops_around(events: _Events, paths: Sequence[tuple[int, ...]]) -> int:
    """Return how many outermost loops hold all accesses in one iteration."""
    used = [paths[number] if number >= 0 else () for number in np.unique(events.path).tolist()]
    around = 0
    while used and all(len(path) > around and path[: around + 1] == used[0][: around + 1] for path in used):
        turn = events.turns[:, around]
        if any(len(np.unique(turn[events.processor == q])) != 1 for q in np.unique(events.processor)):
            break
        around += 1
    return around


def _join_events(events: Mapping[int, PlacedEvents]) -> _Events:
    parts = sorted(events.items())

    def join_column(name: str) -> IntArray:
        return np.concatenate([np.asarray(getattr(one.located, name)) for _, one in parts])

    width = max(one.located.turns.shape[1] for _, one in parts)
    turns = np.concatenate([_widen_turns(one.located.turns, width) for _, one in parts])
    processor = np.concatenate([np.full(len(one.data), q, dtype=np.int64) for q, one in parts])
    return _Events(
        processor=processor,
        path=join_column("path"),
        turns=turns,
        number=join_column("number"),
        stores=join_column("stores").astype(np.bool_),
        data=np.concatenate([one.data for _, one in parts]),
        offset=np.concatenate([one.offset for _, one in parts]),
        place=join_column("place").astype(np.int64),
    )


def _widen_turns(turns: IntArray, width: int) -> IntArray:
    """Return turns with zeros for loops as deep as on other processors."""
    wide = np.zeros((len(turns), width), dtype=np.int64)
    wide[:, : turns.shape[1]] = turns
    return wide


def _fold_top(
    events: _Events,
    top: int,
    located: Mapping[int, PlacedEvents],
    paths: Sequence[tuple[int, ...]],
    sizes: Mapping[int, int],
    weighed: FloatArray | None,
    shared: bool,
) -> FoldedStep:
    processors = max(located) + 1
    executed = _count_instructions(located, paths, top)
    counted = top != NO_LOOP and shared and not _works_unseen(events, executed)
    indices = _find_indices(events, paths, processors) if counted else None
    recovered = indices is not None
    turns = events.turns.copy()
    if indices is not None:
        begin, stride = indices
        turns[:, 0] = begin[events.processor] + stride * turns[:, 0]
        size = int(turns[:, 0].max()) + 1
        owner = np.full(size, events.processor[0])  # of one processor, which may have no access in some indices
        owner[turns[:, 0]] = events.processor
        prefix: tuple[int, ...] = (top,)
    else:
        turns = np.c_[events.processor, turns]
        size, owner, prefix = processors, np.arange(processors), ()
    moved = _Events(events.processor, events.path, turns, events.number, events.stores, events.data, events.offset,
                    events.place)  # fmt: skip
    space = _Space(np.arange(size, dtype=np.int64)[:, None], owner, size)
    body = _fold_body(moved, prefix, space, paths, sizes, 1 - len(prefix))
    if weighed is not None:
        weight = (weighed / np.maximum(np.bincount(owner, minlength=processors), 1))[owner]
    else:
        weight = executed if indices is None else _weigh_indices(located, paths, top, indices, owner)
    return FoldedStep(top, owner, weight, body, recovered)


def _count_instructions(located: Mapping[int, PlacedEvents], paths: Sequence[tuple[int, ...]], top: int) -> FloatArray:
    """Return what each processor executes in an outermost loop."""
    executed = np.zeros(max(located) + 1)
    mine = np.array([bool(path) and path[0] == top for path in paths])
    for q, one in located.items():
        head = one.located
        executed[q] = np.diff(np.r_[head.head_count, one.end_count])[mine[head.head_path]].sum()
    return executed


def _works_unseen(events: _Events, executed: FloatArray) -> bool:
    """Return whether processors without an access in a loop, whose indices are unknown, do a part of its work."""
    seen = np.bincount(events.processor, minlength=len(executed)) > 0
    return bool(executed[~seen].sum() > _LITTLE_WORK * executed.sum())


def _find_indices(events: _Events, paths: Sequence[tuple[int, ...]], processors: int) -> tuple[IntArray, int] | None:
    """Return each processor's first index in a loop and the step of the index, from a reference that shows them.

    Such a reference moves by the same stride on all processors, and their places together leave no gaps.
    """
    present = np.unique(events.processor)
    turns = np.zeros(processors, dtype=np.int64)
    np.maximum.at(turns, events.processor, events.turns[:, 0] + 1)
    if len(present) == 1:
        return np.zeros(processors, dtype=np.int64), 1
    for rows in _group_rows(events):
        group = events.select_rows(rows)
        depth = len(paths[group.path[0]])
        begin, stride = np.zeros(processors, dtype=np.int64), 0
        fits = True
        for q in present.tolist():
            mine = group.processor == q
            form = fit_linear(group.turns[mine][:, :depth], group.offset[mine]) if mine.any() else None
            if form is None or (stride and form.factors[0] not in (0, stride)):
                fits = False
                break
            stride = stride or form.factors[0]
            begin[q] = form.constant
        if not fits:
            continue
        places = np.concatenate([begin[q] + stride * np.arange(turns[q]) for q in present.tolist()])
        unit = int(np.gcd.reduce(places - places.min()))
        if unit and len(np.unique(places)) == len(places) == int(places.max() - places.min()) // unit + 1:
            return (begin - int(places.min())) // unit, stride // unit if stride else 1
    return None


def _group_rows(events: _Events) -> list[IntArray]:
    """Return the rows of each reference: of one path, instruction and object; those with most rows first."""
    # all of these are small numbers, and numbers of 16 bits are sorted by counting
    small = [one.astype(np.int16) for one in (events.stores, events.data, events.number, events.path)]
    order = np.lexsort(small)
    keys = np.stack(small, axis=1)[order]
    edges = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)]) if len(keys) else np.zeros(0, np.int64)
    groups = np.split(order, edges[1:]) if len(edges) else []
    return sorted(groups, key=lambda rows: -len(rows))


def _fold_body(
    events: _Events, prefix: tuple[int, ...], space: _Space, paths: Sequence[tuple[int, ...]],
    sizes: Mapping[int, int], extra: int,
) -> tuple[FoldedItem, ...]:  # fmt: skip
    """Return what is executed below a path of loops, in program order; ``extra`` indices stand before its loops'."""
    depth = len(prefix)
    width = depth + extra
    following = np.array([path[depth] if len(path) > depth else NO_LOOP for path in paths])[events.path]
    begins = _iteration_begins(events, width)
    items: list[tuple[float, FoldedItem]] = []
    own = events.select_rows(following == NO_LOOP)
    own_begins = begins[following == NO_LOOP]
    for rows in _group_rows(own):
        position = float((own.place[rows] - own_begins[rows]).mean())
        items.append((position, _fold_reference(own.select_rows(rows), width, space, sizes)))
    for loop in np.unique(following[following >= 0]).tolist():
        rows = np.flatnonzero(following == loop)
        first = np.unique(begins[rows] + events.processor[rows] * (1 << 40), return_index=True)[1]
        position = float((events.place[rows][first] - begins[rows][first]).mean())
        items.append((position, _fold_loop(events.select_rows(rows), (*prefix, loop), space, paths, sizes, extra)))
    return tuple(item for _, item in sorted(items, key=lambda one: one[0]))


def _iteration_begins(events: _Events, width: int) -> IntArray:
    """Return for each access where the first access of its iteration stands."""
    keys = np.c_[events.processor, events.turns[:, :width]]
    change = np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)]
    begins: IntArray = events.place[np.flatnonzero(change)[np.cumsum(change) - 1]]
    return begins


def _fold_loop(
    events: _Events, prefix: tuple[int, ...], space: _Space, paths: Sequence[tuple[int, ...]],
    sizes: Mapping[int, int], extra: int,
) -> FoldedLoop:  # fmt: skip
    width = len(prefix) - 1 + extra
    times = np.zeros(len(space.columns), dtype=np.int64)
    np.maximum.at(times, space.find_rows(events.turns[:, :width]), events.turns[:, width] + 1)
    some = times > 0
    form = _fit_with_processor(space.columns[some], space.processor[some], times[some])
    formula: Formula
    if form is not None and np.array_equal(np.maximum(form.evaluate_rows(space.variables), 0), times):
        formula = form
    else:
        formula = space.list_values(np.arange(len(times)), times)
    body = _fold_body(events, prefix, space.repeat_rows(times), paths, sizes, extra)
    return FoldedLoop(prefix[-1], formula, int(times.max()), body)


def _fold_reference(events: _Events, width: int, space: _Space, sizes: Mapping[int, int]) -> FoldedReference:
    rows = space.find_rows(events.turns[:, :width])
    order = np.argsort(rows, kind="stable")
    rows, offset = rows[order], events.offset[order]
    counts = np.bincount(rows, minlength=len(space.columns))
    taken = space.list_values(np.arange(len(counts)), counts) if counts.min() == 0 else None
    form = _fit_with_processor(space.columns[rows], space.processor[rows], offset)
    number = int(events.number[0])
    return FoldedReference(
        int(events.data[0]), number, sizes.get(number, 8), bool(events.stores[0]),
        form if form is not None else space.list_values(rows, offset), len(rows), taken,
    )  # fmt: skip


def _fit_with_processor(columns: IntArray, processor: IntArray, values: IntArray) -> LinearForm | None:
    """Return a formula of the columns alone, else one of the processor as well."""
    form = fit_linear(columns, values)
    if form is not None:
        return LinearForm((*form.factors, 0), form.constant)
    return fit_linear(np.c_[columns, processor], values) if len(processor) and processor.max() > 0 else None


def _weigh_indices(
    located: Mapping[int, PlacedEvents],
    paths: Sequence[tuple[int, ...]],
    top: int,
    indices: tuple[IntArray, int],
    owner: IntArray,
) -> FloatArray:
    """Return the instructions of each index of a loop, from where its iterations begin to where the next thing does."""
    size = len(owner)
    weight = np.zeros(size)
    begin, stride = indices
    mine = np.array([bool(path) and path[0] == top for path in paths])
    for q in np.unique(owner).tolist():
        head = located[q].located
        rows = mine[head.head_path]
        counts = np.diff(np.r_[head.head_count, located[q].end_count])
        index = begin[q] + stride * head.head_turn[rows].astype(np.int64)
        inside = (index >= 0) & (index < size)  # the last test of a loop is no iteration
        np.add.at(weight, index[inside], counts[rows][inside])
    return weight
