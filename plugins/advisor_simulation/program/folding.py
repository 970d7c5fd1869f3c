"""From the accesses of a phase to loops with references: index expressions, trip counts, conditions, and who does what.

Each outermost loop of a phase becomes a loop over a domain. Its index is recovered from who touches what: a reference
that moves by a constant stride gives each processor's first index. All references are then fitted, over all processors
at once, to linear functions of the indices and of the processor; what fits none is irregular, and stays a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
)
from advisor_simulation.program.folding_events import (
    NO_LOOP,
    Events,
    Space,
    count_rounds,
    group_rows,
    join_events,
    mark_changes,
    split_steps,
    unroll_repeats,
)

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.program.folding_events import Small

#: The loop over the rounds of a body.
ROUNDS: Final = -2
#: This share of a loop's instructions is a test of its condition.
_LITTLE_WORK = 0.01
#: So few lines of memory without a name for each processor are scalars of frames.
_FEW_LINES, _LINE_B = 64, 64


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
    whole = join_events(events)
    made = FoldedPhase(accesses=len(whole.path), unplaced=_count_unplaced(whole))
    if (whole.data < 0).any():
        whole = whole.select_rows(whole.data >= 0)
    around = 0 if fresh else _count_loops_around(whole, paths)
    paths = [path[around:] for path in paths] + [()]
    deepest = max((len(paths[number]) for number in np.unique(whole.path).tolist()), default=0)
    whole, paths = unroll_repeats(whole.change_turns(whole.turns[:, around : around + deepest]), paths)
    for step in split_steps(whole, np.array([path[0] if path else NO_LOOP for path in paths])[whole.path]):
        part = whole.select_rows(step.rows)
        if not fresh and step.top != NO_LOOP:
            turns = part.turns.copy()
            turns[:, 0] -= _first_turns(part)[part.processor]
            part = part.change_turns(turns)
        weighed = None
        if around or not fresh or step.shared:
            weighed = _weigh_share(events, len(part.path) / max(len(whole.path), 1))
        made.steps.append(_fold_top(part, step.top, events, paths, sizes, weighed, shared))
    return made


def _first_turns(events: Events) -> IntArray:
    first = np.full(int(events.processor.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, events.processor, events.turns[:, 0])
    return first


def _weigh_share(events: Mapping[int, PlacedEvents], share: float) -> FloatArray:
    """Return a share of the instructions of each processor."""
    weight = np.zeros(max(events) + 1)
    for q, one in events.items():
        weight[q] = share * (one.end_count - one.begin_count)
    return weight


def _count_unplaced(events: Events) -> int:
    """Return how many accesses go to memory without a name, where that is more than a few scalars of each processor."""
    unplaced = events.data < 0
    lines = np.unique(events.offset[unplaced] // _LINE_B)
    return int(unplaced.sum()) if len(lines) > _FEW_LINES * len(np.unique(events.processor)) else 0


def _count_loops_around(events: Events, paths: Sequence[tuple[int, ...]]) -> int:
    """Return how many outermost loops hold all accesses in one iteration."""
    used = [paths[number] if number >= 0 else () for number in np.unique(events.path).tolist()]
    around = 0
    while used and all(len(path) > around and path[: around + 1] == used[0][: around + 1] for path in used):
        turn = events.turns[:, around]
        if any(len(np.unique(turn[events.processor == q])) != 1 for q in np.unique(events.processor)):
            break
        around += 1
    return around


def _fold_top(
    events: Events,
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
    split = 0
    if indices is not None:
        begin, stride, split = indices
        turns[:, 0] = begin[events.processor] + stride * turns[:, 0]
        size = int(turns[:, 0].max()) + 1
        owner = np.full(size, events.processor[0])  # of one processor, which may have no access in some indices
        owner[turns[:, 0]] = events.processor
        turns = np.insert(turns, 1, turns[:, 0] // split, axis=1) if split else turns
        prefix: tuple[int, ...] = (top,)
    else:
        turns = np.c_[events.processor, turns]
        size, owner, prefix = processors, np.arange(processors), ()
    index = np.arange(size, dtype=np.int64)
    space = Space(np.stack([index, index // split], axis=1) if split else index[:, None], owner, size)
    body = _fold_body(events.change_turns(turns), prefix, space, paths, sizes, bool(split) + 1 - len(prefix))
    if weighed is not None:
        weight = (weighed / np.maximum(np.bincount(owner, minlength=processors), 1))[owner]
    elif indices is not None:
        weight = _weigh_indices(located, paths, top, indices[:2], owner)
    else:
        weight = executed
    return FoldedStep(top, owner, weight, body, recovered, split)


def _count_instructions(located: Mapping[int, PlacedEvents], paths: Sequence[tuple[int, ...]], top: int) -> FloatArray:
    """Return what each processor executes in an outermost loop."""
    executed = np.zeros(max(located) + 1)
    mine = np.array([bool(path) and path[0] == top for path in paths])
    for q, one in located.items():
        head = one.located
        executed[q] = np.diff(np.r_[head.head_count, one.end_count])[mine[head.head_path]].sum()
    return executed


def _works_unseen(events: Events, executed: FloatArray) -> bool:
    """Return whether processors without an access in a loop, whose indices are unknown, do a part of its work."""
    seen = np.bincount(events.processor, minlength=len(executed)) > 0
    return bool(executed[~seen].sum() > _LITTLE_WORK * executed.sum())


def _find_indices(
    events: Events, paths: Sequence[tuple[int, ...]], processors: int
) -> tuple[IntArray, int, int] | None:
    """Return each processor's first index in a loop, the step of the index, and how it splits (0: it does not).

    They come from a reference that moves by the same stride on all processors, whose places together leave no gaps.
    """
    present = np.unique(events.processor)
    turns = np.zeros(processors, dtype=np.int64)
    np.maximum.at(turns, events.processor, events.turns[:, 0] + 1)
    if len(present) == 1:
        return np.zeros(processors, dtype=np.int64), 1, 0
    for rows in group_rows(events):
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
            return (begin - int(places.min())) // unit, stride // unit if stride else 1, 0
    return _find_split(events, turns)


def _find_split(events: Events, turns: IntArray) -> tuple[IntArray, int, int] | None:
    """Return the indices of two loops that were made one and dealt out in blocks, by the ``turns`` of processors.

    Where the inner loop begins anew, the places of a reference leap.
    """
    begin = np.cumsum(turns) - turns
    index = begin[events.processor] + events.turns[:, 0]
    for rows in group_rows(events):
        firsts = rows[mark_changes((index[rows],))]
        place, value = index[firsts], events.offset[firsts]
        if len(place) != turns.sum() or (np.diff(place) != 1).any():
            continue
        step = np.diff(value)
        usual = np.bincount(np.unique(step, return_inverse=True)[1])
        leaps = np.flatnonzero(step != np.unique(step)[usual.argmax()]) + 1
        split = int(np.gcd.reduce(leaps)) if len(leaps) else 0
        if split > 1 and fit_linear(np.stack([place, place // split], axis=1), value) is not None:
            return begin, 1, split
    return None


def _fold_body(
    events: Events, prefix: tuple[int, ...], space: Space, paths: Sequence[tuple[int, ...]],
    sizes: Mapping[int, int], extra: int,
) -> tuple[FoldedItem, ...]:  # fmt: skip
    """Return what is executed below a path of loops, in program order; ``extra`` indices stand before its loops'.

    What comes again within one execution of the body, as where a function calls itself or is called from two places,
    makes it a loop over rounds.
    """
    depth = len(prefix)
    width = depth + extra
    following = np.array([path[depth] if len(path) > depth else NO_LOOP for path in paths], dtype=np.int32)[events.path]
    rounds = count_rounds(events, following, width)
    if rounds is None:
        return _fold_items(events, following, prefix, space, paths, sizes, extra)
    times, form = _count_times(events, rounds, width, space)
    again = events.change_turns(np.insert(events.turns, width, rounds, axis=1))
    del rounds
    body = _fold_items(again, following, prefix, space.repeat_rows(times), paths, sizes, extra + 1)
    return (FoldedLoop(ROUNDS, form, int(times.max()), body),)


def _fold_items(
    events: Events, following: Small, prefix: tuple[int, ...], space: Space, paths: Sequence[tuple[int, ...]],
    sizes: Mapping[int, int], extra: int,
) -> tuple[FoldedItem, ...]:  # fmt: skip
    """Return the references and loops of a body, each of which comes once in an execution of it."""
    begins = _iteration_begins(events, len(prefix) + extra)
    items = _fold_references(events, following, begins, len(prefix) + extra, space, sizes)
    inside = _find_loops(events, following, begins)
    del begins, following  # what is held at each level of a deep nest adds up
    for position, loop, rows in inside:
        items.append((position, _fold_loop(events.select_rows(rows), (*prefix, loop), space, paths, sizes, extra)))
    return tuple(item for _, item in sorted(items, key=lambda one: one[0]))


def _fold_references(
    events: Events, following: Small, begins: IntArray, width: int, space: Space, sizes: Mapping[int, int]
) -> list[tuple[float, FoldedItem]]:
    """Return the references of a body that are in no loop of it, each with its mean place in an iteration."""
    own = events.select_rows(following == NO_LOOP)
    since = own.place - begins[following == NO_LOOP]
    return [
        (float(since[rows].mean()), _fold_reference(own.select_rows(rows), width, space, sizes))
        for rows in group_rows(own)
    ]


def _find_loops(events: Events, following: Small, begins: IntArray) -> list[tuple[float, int, Small]]:
    """Return the loops of a body: the mean place in an iteration where each begins, its number, its accesses."""
    place, processor = events.place, events.processor
    found: list[tuple[float, int, Small]] = []
    for loop in np.unique(following[following >= 0]).tolist():
        rows = np.flatnonzero(following == loop).astype(np.int32)
        first = np.unique(begins[rows] + processor[rows] * (1 << 40), return_index=True)[1]
        found.append((float((place[rows][first] - begins[rows][first]).mean()), loop, rows))
    return found


def _iteration_begins(events: Events, width: int) -> IntArray:
    """Return for each access where the first access of its iteration stands."""
    keys = np.c_[events.processor, events.turns[:, :width]]
    change = np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)]
    begins: IntArray = events.place[np.flatnonzero(change)[np.cumsum(change) - 1]]
    return begins


def _fold_loop(
    events: Events, prefix: tuple[int, ...], space: Space, paths: Sequence[tuple[int, ...]],
    sizes: Mapping[int, int], extra: int,
) -> FoldedLoop:  # fmt: skip
    width = len(prefix) - 1 + extra
    times, formula = _count_times(events, events.turns[:, width], width, space)
    body = _fold_body(events, prefix, space.repeat_rows(times), paths, sizes, extra)
    return FoldedLoop(prefix[-1], formula, int(times.max()), body)


def _count_times(events: Events, turns: Small, width: int, space: Space) -> tuple[IntArray, Formula]:
    """Return how often each execution of a body runs a loop in it, and the formula of that."""
    times = np.zeros(len(space.columns), dtype=np.int64)
    np.maximum.at(times, space.find_rows(events.turns[:, :width]), turns + 1)
    some = times > 0
    form = _fit_with_processor(space.columns[some], space.processor[some], times[some])
    if form is not None and np.array_equal(np.maximum(form.evaluate_rows(space.variables), 0), times):
        return times, form
    return times, space.list_values(np.arange(len(times)), times)


def _fold_reference(events: Events, width: int, space: Space, sizes: Mapping[int, int]) -> FoldedReference:
    rows = space.find_rows(events.turns[:, :width])
    order = np.argsort(rows, kind="stable")
    rows, offset = rows[order], events.offset[order]
    counts = np.bincount(rows, minlength=len(space.columns))
    taken: Formula | None = None
    if counts.min() == 0:  # what comes in one round of several follows from the round
        taken = _fit_with_processor(space.columns, space.processor, np.minimum(counts, 1))
        taken = taken or space.list_values(np.arange(len(counts)), counts)
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
