"""Changes that could be made to a run, and what a plugin says each of them would have won."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change that an action would make in some phases (numbers; all phases, if there are none).

    ``change`` is the rule's ``change``; ``effort`` (1 to 5) and ``typical_fraction`` (0 to 1) decide between changes
    that win nearly the same. ``ceiling_s`` is the most that the rule expects of it: those with much to win are tried
    first.
    """

    action: str
    change: Mapping[str, str]
    phases: tuple[int, ...]
    effort: int
    typical_fraction: float
    ceiling_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What a run would have been shorter by with a change, seconds: expected, and the ends of an 80 % interval.

    ``order`` is the place among the changes that are worth making one after the other, the best first, -1 for none;
    ``further_s`` what the change wins behind those before it. A change that wins its seconds only in the place of a
    better one names that one's number in ``instead_of``. ``assumed`` says what the recording does not show and the
    gain depends on; ``region`` names the region of the program that the change is about, where that is known, and is
    None where the change is about several, the ``regions``, those with most seconds first. One that is not
    ``simulated`` could have been, but the others took all the work that a run may cost. ``most_s`` is what it wins if
    what it is about costs nothing at all, 0 where that is not known.
    """

    gain_s: float
    low_s: float
    high_s: float
    order: int = -1
    further_s: float = 0.0
    instead_of: int = -1
    assumed: str = ""
    region: str | None = ""
    simulated: bool = True
    regions: tuple[str, ...] = ()
    most_s: float = 0.0

    def scale_seconds(self, times: float) -> Counterfactual:
        """Return the same with so many times the seconds: what an excerpt stands for."""
        return replace(
            self, gain_s=times * self.gain_s, low_s=times * self.low_s, high_s=times * self.high_s,
            further_s=times * self.further_s, most_s=times * self.most_s,
        )  # fmt: skip
