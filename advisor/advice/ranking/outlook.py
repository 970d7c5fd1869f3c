"""The scale that a program is meant for, from findings: what gaps will be there, and the order of advice by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from advisor.model.recommendations import Recommendation, TargetSeconds

if TYPE_CHECKING:
    from advisor.advice.ranking.ceilings import GapBudget
    from advisor.advice.ranking.drafts import Draft
    from advisor.model.records import Finding

#: A finding of this kind whose subject is a gap says that the gap will matter more than it does today; those on
#: ``RUN`` and ``GAPS`` hold the numbers.
KIND: Final = "scaling"
RUN: Final = "run"
GAPS: Final = "gaps"
#: Measures of those findings: the target's value of a parameter, the seconds of a gap there.
_POINT: Final = "target "
_SECONDS: Final = "seconds of "
#: Measures of a finding on a gap: the seconds of it in a region there.
_IN_REGION: Final = "seconds in "
#: Rules with conditions on such facts are about the gap as it will be.
_FACTS: Final = "run.target_"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is predicted at the ``point`` that a program is meant for, in words such as ``P=1024 N=8192``.

    ``words`` say of gaps that they will matter more than today, ``seconds`` are those of each gap there, ``places`` the
    region with most of a gap that will matter. A point that is ``stated`` by the user decides the order of advice.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    point: str = ""
    stated: bool = False
    places: Mapping[str, str] = field(default_factory=dict)


def find_outlook(findings: Iterable[Finding]) -> Outlook:
    """Return what findings say of the scale a program is meant for; nothing where none does."""
    of_kind = {one.subject: one for one in findings if one.kind == KIND}
    whole, shares = of_kind.pop(RUN, None), of_kind.pop(GAPS, None)
    words = {name: one.text for name, one in of_kind.items()}
    places = {name: region for name, one in of_kind.items() if (region := _find_largest_region(one))}
    if whole is None or shares is None:
        return Outlook(words, places=places)
    values = {name: value for name, value in whole.measures.items() if name.startswith(_POINT)}
    point = " ".join(f"{name.removeprefix(_POINT)}={value:g}" for name, value in values.items())
    seconds = {
        name.removeprefix(_SECONDS): value for name, value in shares.measures.items() if name.startswith(_SECONDS)
    }
    return Outlook(words, seconds, point, bool(whole.measures.get("stated")), places)


def _find_largest_region(finding: Finding) -> str | None:
    known = {name: value for name, value in finding.measures.items() if name.startswith(_IN_REGION)}
    return max(known, key=known.__getitem__).removeprefix(_IN_REGION) if known else None


def matters_at_target(draft: Draft, outlook: Outlook) -> bool:
    """Return whether a draft is about gaps that will matter at the scale a program is meant for."""
    return not outlook.words.keys().isdisjoint(draft.recommendation.gaps)


def add_outlook(draft: Draft, outlook: Outlook, budget: GapBudget) -> Draft:
    """Return the draft with what its gaps will be at the scale the program is meant for: in its reasons, and seconds.

    What it can win there is the same part of its gaps as what it can win today.
    """
    recommendation = draft.recommendation
    said = [outlook.words[name] for name in recommendation.gaps if name in outlook.words]
    recommendation = _move_to_later_place(
        replace(recommendation, why=" ".join([recommendation.why, *said])), outlook, budget
    )
    known = [name for name in recommendation.gaps if name in outlook.seconds and name in budget.gaps]
    if known:
        today = sum(budget.gap_seconds(name) for name in known)
        part = min(recommendation.ceiling_s / today, 1.0) if today > 0.0 else 1.0
        there = sum(outlook.seconds[name] for name in known)
        recommendation = replace(recommendation, target=TargetSeconds(outlook.point, part * there))
    return replace(draft, recommendation=recommendation)


def _move_to_later_place(recommendation: Recommendation, outlook: Outlook, budget: GapBudget) -> Recommendation:
    """Return advice on a gap as it will be with the region that will have most of it, not the one that has it today."""
    gap = next((name for name in recommendation.gaps if name in outlook.places), None)
    if gap is None or gap not in budget.gaps or not any(one.fact.startswith(_FACTS) for one in recommendation.evidence):
        return recommendation
    region = outlook.places[gap]
    spot = next((part for part in budget.gaps[gap].regions if part.name == region), None)
    return replace(recommendation, region=region, file=spot.file, line=spot.line) if spot else recommendation


def sort_by_target(chosen: Sequence[Draft], outlook: Outlook, noise_s: float) -> list[Draft]:
    """Return the drafts in the order of what they win at a target that the user states, of others as they are.

    The score of each counts by how much its ceiling grows. What repeated runs differ by (``noise_s``) makes small
    seconds of today doubtful, and large ones at the target not.
    """
    if not outlook.stated:
        return list(chosen)

    def compute_score(draft: Draft) -> float:
        recommendation = draft.recommendation
        if recommendation.target is None or not recommendation.ceiling_s > 0.0:
            return (
                draft.score
                if recommendation.target is None
                else recommendation.target.seconds * draft.match.action.typical_fraction
            )
        doubt = (recommendation.ceiling_s + noise_s) / (recommendation.target.seconds + noise_s)
        return draft.score * (recommendation.target.seconds / recommendation.ceiling_s) ** 2 * doubt

    return sorted(chosen, key=lambda draft: -float(f"{compute_score(draft):.9g}"))
