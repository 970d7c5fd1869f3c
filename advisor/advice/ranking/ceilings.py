"""The ceiling of an action (the most it can save), and its status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from advisor.model import policy
from advisor.model.devices import DEVICE_GAPS
from advisor.model.records import GAP_NAMES, Gap, Grade

if TYPE_CHECKING:
    from advisor.advice.facts import FactSheet, Site
    from advisor.advice.rules import RuleMatch

#: Gaps of uneven work: making a phase even removes its part of all three at once.
IMBALANCE: Final = ("L", "M'", "D")


@dataclass(frozen=True, slots=True)
class GapBudget:
    """The gaps of a run by letter and by name, and its sites by number: the inputs of ceilings.

    Sites are those of the sheet; -1 is what lies in none of them. ``explained`` are seconds of gaps that actions of
    their own are about: no other action can win them.
    """

    sheet: FactSheet
    gaps: Mapping[str, Gap]
    grade: Grade | None
    noise_s: float
    explained: Mapping[str, float] = field(default_factory=dict)

    def find_gap_with(self, letter: str) -> str:
        """Return the name of the gap that holds a letter; letters below the lowest bound known are one gap."""
        held = {member for gap in self.gaps.values() for member in gap.members}
        ladder = [name for name in GAP_NAMES if (name in DEVICE_GAPS) == (letter in DEVICE_GAPS)]
        unknown = "+".join(name for name in ladder if name not in held)
        return next((gap.name for gap in self.gaps.values() if letter in gap.members), unknown)

    def gap_seconds(self, name: str) -> float:
        """Return the seconds of a gap that no action of its own explains; the most that they can be without a bound."""
        return max(self._whole_seconds(name) - self.explained.get(name, 0.0), 0.0)

    def _whole_seconds(self, name: str) -> float:
        known = self.gaps.get(name)
        return max(known.seconds if known else self.sheet.run.gap_span(_first_letter(name)).high, 0.0)

    def part_seconds(self, name: str, site: int) -> float:
        """Return the seconds of a gap at a site, or outside of all sites (-1)."""
        if site >= 0:
            whole = self._whole_seconds(name)
            left = self.gap_seconds(name) / whole if whole > 0 else 1.0
            return left * max(self.sheet.sites[site].gap_span(_first_letter(name)).high, 0.0)
        return max(
            self.gap_seconds(name) - sum(self.part_seconds(name, number) for number in range(len(self.sheet.sites))),
            0.0,
        )

    def imbalance_s(self, site: int) -> float:
        """Return B_r + D_r of the phases of a site: what making them even can win (docs/concepts.md)."""
        place = self.sheet.sites[site].place
        loads = self.sheet.loads.phases
        return sum(loads[p].steady_s + loads[p].dynamic_s for p in place.phases) if place else 0.0


def _first_letter(name: str) -> str:
    return name.split("+")[0]


def build_gap_budget(
    sheet: FactSheet, gaps: Iterable[Gap], grade: Grade | None = None, noise_s: float = 0.0
) -> GapBudget:
    """Return the ledger of a run; ``noise_s`` is what runs of the same build differ by."""
    return GapBudget(sheet, {gap.name: gap for gap in gaps}, grade, noise_s)


def find_gap_letters(match: RuleMatch) -> tuple[str, ...]:
    """Return the gaps an action is about here: targets that its conditions found large, else those with seconds.

    So an action whose conditions name one of two targets promises nothing about the other.
    """
    seen = [piece.fact for piece in match.outcome.evidence if not piece.condition.startswith("not ")]
    met = [name for name in seen if name in GAP_NAMES]
    targets = [str(gap) for gap in match.action.targets] or met
    held = [gap for gap in targets if match.site.gap_span(gap).high > 0]
    return tuple(dict.fromkeys([gap for gap in held if gap in met] or held))


def compute_ceiling(budget: GapBudget, claims: Iterable[tuple[int, str]]) -> float:
    """Return the most that fixing these (site, gap) can win in seconds; never more than the gaps hold.

    Of L, M' and D a site yields B_r + D_r together, however they share it out; of other gaps what lies at the site.
    """
    pairs = tuple(dict.fromkeys(claims))
    uneven = [(site, name) for site, name in pairs if site >= 0 and name in IMBALANCE]
    most = sum(budget.imbalance_s(site) for site in {site for site, _ in uneven})
    found = min(most, sum(budget.gap_seconds(name) for name in {name for _, name in uneven}))
    others: dict[str, float] = {}
    for site, name in pairs:
        if (site, name) not in uneven:
            others[name] = others.get(name, 0.0) + budget.part_seconds(name, site)
    return found + sum(min(seconds, budget.gap_seconds(name)) for name, seconds in others.items())


def restrict_ceiling(match: RuleMatch, ceiling_s: float) -> float:
    """Return how much of a ceiling an action is about: the share or seconds that its calibration names, else all.

    What the operating system takes for anything but input and output no action on files wins.
    """
    if match.other_system_s and "O" in find_gap_letters(match):
        ceiling_s = max(ceiling_s - match.other_system_s, 0.0)
    calibration = match.action.gain
    value = match.site.values.get(calibration.of) if calibration is not None else None
    if calibration is None or value is None or isinstance(value, str):
        return ceiling_s
    if match.site.vocabulary[calibration.of].unit == "s":
        return min(max(float(value), 0.0), ceiling_s)
    return min(max(float(value), 0.0), 1.0) * ceiling_s


def compute_confidence(
    budget: GapBudget, match: RuleMatch, names: Iterable[str], ceiling_s: float, certainty: float | None = None
) -> float:
    """Return how sure a promise is (0 to 1).

    The product of: the ``certainty`` of its seconds, by default the least sure status of its gaps; the grade of the
    profile; how far the values lie beyond the thresholds (``Comparison.surety``); and what the ceiling is worth against
    the noise between runs.
    """
    status = certainty
    if status is None:
        status = min((_status_certainty(budget, match.site, name) for name in names), default=policy.LIMIT_CERTAINTY)
    grade = budget.grade.score if budget.grade else 1.0
    noise = ceiling_s / (ceiling_s + budget.noise_s) if budget.noise_s > 0 else 1.0
    return round(status * grade * match.outcome.surety * noise, 3)


def _status_certainty(budget: GapBudget, site: Site, name: str) -> float:
    gap = budget.gaps.get(name)
    if gap is None or len(gap.members) > 1:
        return policy.LIMIT_CERTAINTY
    span = site.gap_span(name)
    return policy.STATUS_CERTAINTY[gap.status] if span.low == span.high else policy.LIMIT_CERTAINTY
