"""From a file to a simulated profile, in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.model.errors import UsageError
from advisor_simulation.mds.costs import costs_of
from advisor_simulation.mds.engine import Settings, Simulation
from advisor_simulation.mds.profile import profile_of
from advisor_simulation.model.world import build

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.analysis.machines import Machine
    from advisor.model.records import Profile
    from advisor_simulation.mds.costs import MachineCosts
    from advisor_simulation.mds.log import Log
    from advisor_simulation.model.records import Model
    from advisor_simulation.model.world import Profiles

MOST_PROCESSORS = 4096


@dataclass(frozen=True, slots=True)
class Simulated:
    """One simulated run: its profile, its log in the model's unit, and what things cost."""

    profile: Profile
    log: Log
    costs: MachineCosts


def simulate(
    model: Model,
    folder: Path,
    machine: Machine | None,
    processors: int,
    finite: bool = False,
    settings: Settings | None = None,
    profiles: Profiles | None = None,
) -> Simulated:
    """Return one run of ``model`` on ``processors`` processors; tables are looked for in ``folder``.

    Raises DocumentError with places for mistakes in the model, UsageError for what can't be simulated.
    """
    if not 1 <= processors <= MOST_PROCESSORS:
        raise UsageError(f"expected 1 to {MOST_PROCESSORS} processors, not {processors}")
    costs = costs_of(model, machine, processors, finite)
    world = build(model, folder, processors, profiles, costs.line)
    log = Simulation(world, costs, settings).run()
    name = machine.name if machine else None
    return Simulated(profile_of(model, log, costs, processors, name), log, costs)
