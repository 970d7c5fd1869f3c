"""Large gaps that hardly any recommendation is about, and what would tell what to do about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.analysis.disturbance import doubtful_seconds
from advisor.model.records import UNANSWERED, Finding
from advisor.model.units import format_seconds, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Gap, Profile

#: A gap is large from this share of the run on: less is seldom worth a measurement of its own.
LARGE: Final = 0.10
#: … and left where the recommendations about it are expected to win less than this share of it.
ANSWERED: Final = 0.20
#: Waiting of all kinds: one late processor makes several of these, and what helps against one helps against all.
_WAITING: Final = frozenset({"L", "M'", "D", "S'", "W"})
#: Gaps that a program may lessen. Computation has sentences of its own, and what lies outside the phases has none.
_GAPS: Final = _WAITING | {"P", "C'", "O"}
#: A region is named from this share of the gap on.
_NAMED: Final = 0.5


def describe_unanswered(
    profile: Profile, gaps: Sequence[Gap], recommendations: Sequence[Recommendation]
) -> Finding | None:
    """Return a sentence on the largest gap that the recommendations leave; None where there is none, or no advice."""
    large = [gap for gap in gaps if gap.name in _GAPS and gap.share >= LARGE]
    promised = {gap.name: _promised_seconds(gap, recommendations) for gap in large}
    left = [gap for gap in large if promised[gap.name] < ANSWERED * gap.seconds]
    if not recommendations or not left:
        return None
    gap = max(left, key=lambda one: one.seconds)
    promised_s = promised[gap.name]
    about = f"the items are about {format_seconds(promised_s)} of it" if promised_s else "no item is about it"
    amount = f"{format_seconds(gap.seconds)}, {format_share(gap.share)} of the run"
    text = f"What to do about {gap.name} ({amount}{_name_place(gap)}): {about}"
    certain_s = gap.seconds - doubtful_seconds(profile, gap.name)
    if certain_s < (1.0 - ANSWERED) * gap.seconds:
        text += "; the rest may be the doing of other programs: record it again when less else runs, or longer"
    text += "."
    measures = {"seconds": gap.seconds, "share": gap.share, "promised_s": promised_s, "certain_s": max(certain_s, 0.0)}
    return Finding("advice", UNANSWERED, gap.name, text, measures)


def _promised_seconds(gap: Gap, recommendations: Sequence[Recommendation]) -> float:
    """Return what the recommendations about a gap are expected to win, or can at most where that is unknown."""
    alike = _WAITING if gap.name in _WAITING else {gap.name}
    about = [item for item in recommendations if alike & set(item.gaps)]
    return sum(item.ceiling_s if item.expected_s is None else item.expected_s for item in about)


def _name_place(gap: Gap) -> str:
    """Return where most of a gap is, after a comma; nothing where no place stands out."""
    largest = max(gap.regions, key=lambda share: share.seconds, default=None)
    if largest is None or largest.seconds < _NAMED * gap.seconds:
        return ""
    line = f":{largest.line}" if largest.line else ""
    where = f" at {largest.file}{line}" if largest.file else ""
    return f", most of it in {largest.name}{where}"
