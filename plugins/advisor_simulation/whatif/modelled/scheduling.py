"""Who does what in a model: sub-domains bound, work fetched or stolen, serial loops shared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor_simulation.model import records
from advisor_simulation.whatif.modelled.setting import ModelSetting, change_each_step

if TYPE_CHECKING:
    from advisor_simulation.model.records import Model, Step

#: Chunks of a dynamic schedule for each processor.
CHUNKS: Final = 16


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
