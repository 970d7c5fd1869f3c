"""From a file to a simulated profile, in one call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import UsageError
from advisor.model.records import CAUSE_CATEGORIES, Causes, FloatArray, Note, Phase, Processor, Profile, Region, Status
from advisor_simulation.mds.coherence import COHERENCE, KINDS
from advisor_simulation.mds.costs import MachineCosts, resolve_costs
from advisor_simulation.mds.engine import Simulation, SimulationSettings
from advisor_simulation.model.world import build_world

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor_simulation.mds.log import RegionEntry, SimulationLog, SyncSpan
    from advisor_simulation.model.records import Model
    from advisor_simulation.model.world import Profiles

MEASURED: Final = ("wall_s", "cpu_s", "transfer_s", "wait_s", "sync_s", "io_s")

MOST_PROCESSORS = 4096


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One simulated run: its profile, its log in the model's unit, and what things cost."""

    profile: Profile
    log: SimulationLog
    costs: MachineCosts


def simulate_model(
    model: Model,
    folder: Path,
    machine: Machine | None,
    processors: int,
    finite: bool = False,
    settings: SimulationSettings | None = None,
    profiles: Profiles | None = None,
) -> SimulatedRun:
    """Return one run of ``model`` on ``processors`` processors; tables are looked for in ``folder``.

    Raises DocumentError with places for mistakes in the model, UsageError for what can't be simulated.
    """
    if not 1 <= processors <= MOST_PROCESSORS:
        raise UsageError(f"expected 1 to {MOST_PROCESSORS} processors, not {processors}")
    costs = resolve_costs(model, machine, processors, finite)
    world = build_world(model, folder, processors, profiles, costs.line)
    log = Simulation(world, costs, settings).run_simulation()
    name = machine.name if machine else None
    return SimulatedRun(build_profile(model, log, costs, processors, name), log, costs)


def build_profile(
    model: Model, log: SimulationLog, costs: MachineCosts, processors: int, machine: str | None
) -> Profile:
    """Return what a profiler would have recorded of the simulated run; seconds, status ``modelled``."""
    grouped: dict[tuple[str, ...], list[SyncSpan]] = defaultdict(list)
    for span in log.spans:
        grouped[span.phase_key].append(span)
    names = tuple(dict.fromkeys(entry.region for span in log.spans for entry in span.entries))
    numbers = {name: number for number, name in enumerate(names)}
    phases = _name_phases([_build_phase(spans, numbers, costs.second) for spans in grouped.values()])
    ended = log.spans[-1].departed * costs.second if log.spans else 0.0
    outside = {"start-up": model.startup * costs.second, "shutdown": model.shutdown * costs.second}
    status: Mapping[str, Status] = dict.fromkeys(MEASURED, "modelled")
    return Profile(
        program=model.name,
        run=f"{model.name} simulated on {processors} processors",
        reader="simulation",
        actual_s=ended + sum(outside.values()),
        processors=tuple(Processor(rank=number) for number in range(processors)),
        regions=tuple(Region(name) for name in names),
        phases=phases,
        status=status,
        machine=machine,
        cores=processors,
        paradigms=("openmp",),
        outside={name: np.full(processors, seconds) for name, seconds in outside.items()},
        causes=_build_causes(list(grouped.values()), numbers, costs.second),
        notes=_build_notes(costs),
    )


def _build_notes(costs: MachineCosts) -> tuple[Note, ...]:
    if not costs.assumed:
        return ()
    listed = ", ".join(costs.assumed)
    return (Note("costs", f"neither model nor machine model says what these cost, so they cost nothing: {listed}"),)


def _name_phases(phases: Sequence[Phase]) -> tuple[Phase, ...]:
    """Return the phases with different names."""
    seen: dict[str, int] = defaultdict(int)
    found = []
    for phase in phases:
        seen[phase.name] += 1
        number = seen[phase.name]
        name = phase.name if number == 1 else f"{phase.name} ({number})"
        found.append(replace(phase, name=name))
    return tuple(found)


def _build_phase(spans: Sequence[SyncSpan], numbers: Mapping[str, int], second: float) -> Phase:
    regions = list(dict.fromkeys(entry.region for entry in spans[0].entries))
    shape = (len(regions), len(spans[0].arrived), len(spans))
    arrays = {name: np.zeros(shape) for name in MEASURED}
    for turn, span in enumerate(spans):
        for one in span.entries:
            for name, values in _entry_measures(one).items():
                arrays[name][regions.index(one.region), :, turn] += values * second
    main = [entry.region for entry in spans[0].entries[:-1]]
    closing = spans[0].closed_by
    return Phase(
        name=f"{_main_region(spans, main)} to {closing}" if main else f"to {closing}",
        kind=spans[0].kind if main else "parallel",
        regions=np.array([numbers[name] for name in regions], dtype=np.int64),
        arrays=arrays,
        closed_by=closing,
        start_s=np.array([span.start for span in spans]) * second,
        duration_s=np.array([span.departed - span.start for span in spans]) * second,
    )


def _main_region(spans: Sequence[SyncSpan], main: Sequence[str]) -> str:
    """Return the region with most of the work."""
    total = dict.fromkeys(main, 0.0)
    for one in spans[0].entries[:-1]:
        total[one.region] += float(one.work.sum() + one.memory.sum())
    return max(total, key=lambda name: total[name])


def _entry_measures(one: RegionEntry) -> dict[str, FloatArray]:
    return {
        "wall_s": one.wall,
        "cpu_s": one.work + one.memory,
        "transfer_s": one.transfer,
        "wait_s": one.wait,
        "sync_s": one.sync,
        "io_s": one.io,
    }


def _build_causes(groups: Sequence[Sequence[SyncSpan]], numbers: Mapping[str, int], second: float) -> Causes:
    """Return what coherence costs by kind, region and processor, over all iterations of each phase."""
    cost: dict[tuple[int, int], FloatArray] = {}
    count: dict[tuple[int, int], FloatArray] = {}
    for phase, spans in enumerate(groups):
        for span in spans:
            for one in span.entries:
                if one.counts.any():
                    key = (phase, numbers[one.region])
                    cost[key] = cost.get(key, 0.0) + one.traffic * second
                    count[key] = count.get(key, 0.0) + one.counts[:, :COHERENCE].astype(np.float64)
    rows = [
        (kind, phase, region, p, cost[phase, region][p, kind], count[phase, region][p, kind])
        for phase, region in cost
        for p, kind in zip(*np.nonzero(count[phase, region]), strict=True)
    ]
    columns = [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.zeros(0)] * 6
    whole = [column.astype(np.int64) for column in columns]
    nothing = np.full(len(rows), -1, dtype=np.int64)
    return Causes(
        kinds=KINDS[:COHERENCE],
        targets=(),
        category=np.full(len(rows), CAUSE_CATEGORIES.index("transfer"), dtype=np.int64),
        kind=whole[0],
        phase=whole[1],
        call=whole[2],
        caller=nothing,
        processor=whole[3],
        partner=nothing,
        target=nothing,
        size_class=nothing,
        seconds=columns[4].astype(np.float64),
        count=whole[5],
        bytes=np.zeros(len(rows), dtype=np.int64),
    )
