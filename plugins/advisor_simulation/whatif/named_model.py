"""Gains by an application model that a run names: its parameter ``model`` is the path of one.

The unchanged model's error on the run widens the interval; gains are scaled to the run's measured time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import AdvisorError
from advisor_simulation.model.checks import read_model
from advisor_simulation.whatif.gains import EIGHTY, REMEDY
from advisor_simulation.whatif.model_report import ModelBench
from advisor_simulation.whatif.modelled.change_table import CHANGES

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor.model.records import Profile
    from advisor_simulation.model.records import Model


class NamedModel:
    """The model of a run, and what its changes win."""

    def __init__(self, profile: Profile, model: Model, bench: ModelBench) -> None:
        self.profile, self.model, self.bench = profile, model, bench
        self.setting = bench.build_setting(model)

    def estimate_gain(self, action: str) -> tuple[float, float, float] | None:
        """Return what an action is expected to win with its 80 % interval, seconds; None where it changes nothing."""
        change = next((one for one in CHANGES if action in one.actions), None)
        try:
            made = change.make(self.model, self.setting) if change is not None else None
            if made is None:
                return None
            before, after = self.bench.total_seconds(self.model), self.bench.total_seconds(made)
        except AdvisorError:
            return None
        actual = self.profile.actual_s
        gain = (before - after) / before * actual
        spread = EIGHTY * abs(gain) * float(np.hypot(REMEDY, before / actual - 1.0))
        return gain, gain - spread, gain + spread


def find_named_model(profile: Profile, machine: Machine | None) -> NamedModel | None:
    """Return the model that a run names, None where it names none that can be read and simulated."""
    named = profile.parameters.get("model")
    if not isinstance(named, str) or not Path(named).is_file():
        return None
    path = Path(named)
    try:
        model = read_model(path)
        bench = ModelBench(path.parent, machine, len(profile.processors))
        return NamedModel(profile, model, bench) if bench.total_seconds(model) > 0 else None
    except (AdvisorError, OSError):
        return None
