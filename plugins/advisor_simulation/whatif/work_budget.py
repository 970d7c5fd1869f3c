"""How much simulation one run of the advice may cost, counted in work instead of seconds.

The load of the machine must not decide what is advised, so nothing here looks at a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor_simulation.whatif.trial import Trial

#: Rows, or values of phases, that all simulations of a run may go through: some 20 s of one core.
MOST: Final = 60_000_000
#: What a simulation costs however small the run is, in rows.
LEAST: Final = 5_000


@dataclass(slots=True)
class WorkBudget:
    """What is ``left`` to be spent on simulations of a run, in rows of its operations or values of its phases."""

    left: int = MOST

    def can_afford(self, trial: Trial, keep: float = 0.0) -> bool:
        """Return whether a change can be tried on a run so that a share ``keep`` of all is left for later ones."""
        return self.left - cost_of_trial(trial) >= keep * MOST

    def spend_on(self, trial: Trial) -> None:
        """Take what trying a change on a run costs."""
        self.left -= cost_of_trial(trial)


def cost_of_trial(trial: Trial) -> int:
    """Return what trying a change costs: the rows that are changed and replayed, or the values of all loads."""
    if trial.traced is not None:
        return LEAST + len(trial.traced.rows)
    return LEAST + sum(phase.work.size for phase in trial.run.phases)
