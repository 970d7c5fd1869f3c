"""How much a recommended change is expected to win, by the best that is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.advice.ranking.gains import ExpectedGain

if TYPE_CHECKING:
    from advisor.advice.ranking.similar_program_gain import Shares
    from advisor.model.devices import DeviceUse
    from advisor.model.recommendations import Recommendation


@dataclass(frozen=True, slots=True)
class GainSources:
    """What gains are known from.

    ``won`` are the shares of its ceiling that each action has won in this program before, ``similar`` those in similar
    programs. ``devices`` have their changes replayed already, ``changes`` names those of each action. ``simulate``
    returns seconds and their interval, or None where no plugin can tell.
    """

    won: Mapping[str, Sequence[float]]
    similar: Mapping[str, Shares]
    changes: Mapping[str, Mapping[str, str]]
    devices: DeviceUse | None
    simulate: Callable[[Recommendation], tuple[float, float, float] | None]

    def estimate_gain(self, recommendation: Recommendation) -> ExpectedGain | None:
        """Return what a recommended change is expected to win; None where nothing is known of it.

        By what the action has won in this program before, which corrects what a simulation says where the
        recommendation holds that already; where it has not been applied yet, by a simulation; where there is none, by
        what it won in similar programs.
        """
        if recommendation.action in self.won:
            from advisor.advice.ranking import history_gain

            before, most = self.won[recommendation.action], recommendation.ceiling_s
            if recommendation.basis == "simulation" and recommendation.interval_s is not None:
                said = ExpectedGain(recommendation.expected_s or 0.0, *recommendation.interval_s, "simulation")
                return history_gain.correct_gain(before, most, said)
            return history_gain.compute_gain(before, most)
        if self.devices is not None:
            from advisor.advice.ranking import device_gain

            return device_gain.find_gain(self.devices, self.changes[recommendation.action])
        if found := self.simulate(recommendation):
            return ExpectedGain(*found, "simulation")
        from advisor.advice.ranking import similar_program_gain

        shares = self.similar.get(recommendation.action)
        return similar_program_gain.compute_gain(shares, recommendation.ceiling_s) if shares else None
