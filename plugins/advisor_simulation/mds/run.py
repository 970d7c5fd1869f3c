"""From a file to a simulated profile, in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.model.errors import UsageError
from advisor_simulation.mds.costs import resolve_costs
from advisor_simulation.mds.engine import Simulation, SimulationSettings
from advisor_simulation.mds.profile import build_profile
from advisor_simulation.model.world import build_world

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.analysis.machines import Machine
    from advisor.model.records import Profile
    from advisor_simulation.mds.costs import MachineCosts
    from advisor_simulation.mds.log import SimulationLog
    from advisor_simulation.model.records import Model
    from advisor_simulation.model.world import Profiles

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
