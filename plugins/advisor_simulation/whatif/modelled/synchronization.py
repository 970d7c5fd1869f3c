"""Changes of a model's synchronizations, fewer and looser, and of who does what: bound, fetched or stolen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor_simulation.model import records
from advisor_simulation.whatif.modelled.setting import (
    ModelSetting,
    change_each_step,
    change_sequences,
    find_parallel_loops,
    is_own_row,
    list_reads,
    list_writes,
    uses_array,
)

if TYPE_CHECKING:
    from advisor_simulation.model.records import Model, Parallel, Step

#: Chunks of a dynamic schedule for each processor.
CHUNKS: Final = 16


def merge_barriers(model: Model, setting: ModelSetting) -> Model | None:
    """Make one barrier of several in a row."""

    def drop_repeated(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        kept: list[Step] = []
        for step in steps:
            if not (kept and _closes_phase(kept[-1]) and _is_full_barrier(step)):
                kept.append(step)
        return tuple(kept)

    return change_sequences(model, drop_repeated)


def _is_full_barrier(step: Step) -> bool:
    return isinstance(step, records.Barrier) and step.kind == "all"


def _closes_phase(step: Step) -> bool:
    return _is_full_barrier(step) or (isinstance(step, records.Parallel) and step.end == "barrier")


def drop_unneeded(model: Model, setting: ModelSetting) -> Model | None:
    """Drop the barrier between two loops of which each index touches but its own rows of what they share."""

    def drop_barriers(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        kept: list[Step] = []
        place = 0
        while place < len(steps):
            step, behind = steps[place], place + 1
            while behind < len(steps) and _is_full_barrier(steps[behind]):
                behind += 1
            if isinstance(step, records.Parallel) and behind < len(steps) and _is_independent(step, steps[behind]):
                step, place = replace(step, end="none"), behind - 1
            kept.append(step)
            place += 1
        return tuple(kept)

    return change_sequences(model, drop_barriers)


def _is_independent(first: Parallel, second: Step) -> bool:
    """Return whether two loops with the same owner of each index hand nothing from one processor to another."""
    if not isinstance(second, records.Parallel) or first.end == "none":
        return False
    if first.over.value != second.over.value or {first.schedule, second.schedule} != {"static"}:
        return False
    both = [(one.value, step.index) for step in (first, second) for one in (*list_reads(step), *list_writes(step))]
    written = {write.value.array for step in (first, second) for write in list_writes(step)}
    shared = {name for name in written if uses_array(first, name) and uses_array(second, name)}
    return all(is_own_row(one, index) for one, index in both if one.array in shared)


def wait_pairwise(model: Model, setting: ModelSetting) -> Model | None:
    """Let processors wait only for those whose data they read; what that costs has to be known."""
    if not model.costs.signal or not any(list_reads(step) for step in find_parallel_loops(model)):
        return None
    return _set_end(model, "neighbours")


def make_fuzzy(model: Model, setting: ModelSetting) -> Model | None:
    """Let processors do what is independent of the others before they wait; the model has to say how much that is."""
    if not any(step.independent for step in find_parallel_loops(model)):
        return None
    return _set_end(model, "fuzzy")


def _set_end(model: Model, end: records.End) -> Model | None:
    def relax_step(step: Step) -> Step:
        return replace(step, end=end) if isinstance(step, records.Parallel) and step.end == "barrier" else step

    return change_each_step(model, relax_step)


def bind_subdomains(model: Model, setting: ModelSetting) -> Model | None:
    """Bind each sub-domain to a processor."""
    return replace(model, migration=0.0) if model.migration else None


def schedule_dynamically(model: Model, setting: ModelSetting) -> Model | None:
    """Let processors fetch chunks of the loops themselves."""
    world = setting.build_world(model)

    def fetch_chunks(step: Step) -> Step:
        if not isinstance(step, records.Parallel) or step.schedule != "static":
            return step
        chunk = max(1, world.sizes[step.over.value] // (CHUNKS * setting.processors))
        return replace(step, schedule="dynamic", chunk=chunk)

    return change_each_step(model, fetch_chunks)


def schedule_by_affinity(model: Model, setting: ModelSetting) -> Model | None:
    """Let processors work through their own part in pieces, then help those with most left."""

    def help_others(step: Step) -> Step:
        if not isinstance(step, records.Parallel) or step.schedule != "static":
            return step
        return replace(step, schedule="affinity")

    return change_each_step(model, help_others)


def spread_serial_loops(model: Model, setting: ModelSetting) -> Model | None:
    """Share loops that one processor does alone by all of them."""

    def share_loop(step: Step) -> Step:
        if not isinstance(step, records.Serial) or step.over is None or step.body:
            return step
        return records.Parallel(step.serial, step.over, step.mark, step.index, step.weight, step.reads, step.writes)

    return change_each_step(model, share_loop)
