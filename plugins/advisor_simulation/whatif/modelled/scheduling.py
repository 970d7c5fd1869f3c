"""Who does what in a model: sub-domains bound, work fetched or stolen, serial loops shared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor_simulation.model import records
from advisor_simulation.whatif.modelled.setting import each_step

if TYPE_CHECKING:
    from advisor_simulation.model.records import Model, Step
    from advisor_simulation.whatif.modelled.setting import Setting

#: Chunks of a dynamic schedule for each processor.
CHUNKS: Final = 16


def bound(model: Model, setting: Setting) -> Model | None:
    """Bind each sub-domain to a processor."""
    return replace(model, migration=0.0) if model.migration else None


def dynamic(model: Model, setting: Setting) -> Model | None:
    """Let processors fetch chunks of the loops themselves."""
    world = setting.world(model)

    def fetched(step: Step) -> Step:
        if not isinstance(step, records.Parallel) or step.schedule != "static":
            return step
        chunk = max(1, world.sizes[step.over.value] // (CHUNKS * setting.processors))
        return replace(step, schedule="dynamic", chunk=chunk)

    return each_step(model, fetched)


def affine(model: Model, setting: Setting) -> Model | None:
    """Let processors work off their own part in pieces, and then help whoever has most left."""

    def helped(step: Step) -> Step:
        if not isinstance(step, records.Parallel) or step.schedule != "static":
            return step
        return replace(step, schedule="affinity")

    return each_step(model, helped)


def spread(model: Model, setting: Setting) -> Model | None:
    """Share loops that one processor does alone by all of them."""

    def shared(step: Step) -> Step:
        if not isinstance(step, records.Serial) or step.over is None:
            return step
        return records.Parallel(step.serial, step.over, step.mark, step.index, step.weight, step.reads, step.writes)

    return each_step(model, shared)
