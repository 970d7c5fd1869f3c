"""Gains by an application model that a run names: its parameter ``model`` is the path of one.

The unchanged model's error on the run widens the interval; gains are scaled to the run's measured time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import AdvisorError
from advisor_simulation.model.checks import read
from advisor_simulation.whatif.gains import EIGHTY, REMEDY
from advisor_simulation.whatif.modelled.table import CHANGES
from advisor_simulation.whatif.models import Bench

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor.model.records import Profile
    from advisor_simulation.model.records import Model


class Modelled:
    """The model of a run, and what its changes win."""

    def __init__(self, profile: Profile, model: Model, bench: Bench) -> None:
        self.profile, self.model, self.bench = profile, model, bench
        self.setting = bench.setting(model)

    def expected(self, action: str) -> tuple[float, float, float] | None:
        """Return what an action is expected to win with its 80 % interval, seconds; None where it changes nothing."""
        change = next((one for one in CHANGES if action in one.actions), None)
        try:
            made = change.make(self.model, self.setting) if change is not None else None
            if made is None:
                return None
            before, after = self.bench.total(self.model), self.bench.total(made)
        except AdvisorError:
            return None
        actual = self.profile.actual_s
        gain = (before - after) / before * actual
        spread = EIGHTY * abs(gain) * float(np.hypot(REMEDY, before / actual - 1.0))
        return gain, gain - spread, gain + spread


def of_profile(profile: Profile, machine: Machine | None) -> Modelled | None:
    """Return the model that a run names, None where it names none that can be read and simulated."""
    named = profile.parameters.get("model")
    if not isinstance(named, str) or not Path(named).is_file():
        return None
    path = Path(named)
    try:
        model = read(path)
        bench = Bench(path.parent, machine, len(profile.processors))
        return Modelled(profile, model, bench) if bench.total(model) > 0 else None
    except (AdvisorError, OSError):
        return None
