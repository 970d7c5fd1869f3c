"""Whether a run is advised on, has nothing significant, or is known too little; and what large gap advice leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.analysis import quality
from advisor.analysis.disturbance import DISTURBED_GAPS, LONGEST_DELAY, TAKEN, disturbance_seconds, doubtful_seconds
from advisor.analysis.measures import derive_quantities
from advisor.model.policy import MERGED_SHARE
from advisor.model.records import DEVICES_UNSEEN, OTHER_PROGRAMS, RANKS_ADDED_UP, UNANSWERED, Finding
from advisor.model.units import format_seconds, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.advice.ranking import Ranking
    from advisor.advice.rules import RuleMatches
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Bound, Gap, Grade, Profile, Verdict

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


def decide_verdict(
    profile: Profile, grade: Grade, found: Sequence[Gap], matches: RuleMatches, ranked: Ranking
) -> Verdict:
    """Return whether there is advice.

    ``nothing significant`` needs a computable gap; no large gap may be undecided or merged, and waiting must be
    separated from work. Where only I/O was recorded the verdict is about I/O alone, and a large O without an action
    against it leaves it open, as what is known of one rank alone always does.
    """
    if ranked.recommendations:
        return "advice"
    io_alone = derive_quantities(profile).all_but_io
    unseen = (quality.HIDDEN, DEVICES_UNSEEN)
    doubts = (*unseen, RANKS_ADDED_UP if io_alone else quality.UNTOLD)
    hidden = any(note.name in doubts for note in grade.notes)
    hidden |= io_alone and max((gap.share for gap in found), default=0.0) > MERGED_SHARE
    hidden |= _disturbed_share(profile, found) > MERGED_SHARE or _waiting_share(profile, found) > MERGED_SHARE
    merged = _merged_share(profile, found) >= MERGED_SHARE
    merged |= profile.devices is not None and max((gap.share for gap in found), default=0.0) > MERGED_SHARE
    known = found and grade.letter != "F" and not (matches.has_undecided_gap or hidden or merged)
    return "nothing significant" if known else "insufficient evidence"


def _merged_share(profile: Profile, found: Sequence[Gap]) -> float:
    """Return the largest share of the run in a gap that merges what ranks lose, start-up and shutdown aside."""
    shares = [
        (gap.seconds - (profile.start_and_shutdown_s if "X" in gap.members else 0.0)) / profile.actual_s
        for gap in found
        if len(gap.members) > 1 and not {"M", "A", "C", "S"} & set(gap.members)
    ]
    return max(shares, default=0.0)


def _disturbed_share(profile: Profile, found: Sequence[Gap]) -> float:
    """Return the largest share of the run in a gap of which nobody knows whether other programs made it."""
    seconds = disturbance_seconds(profile)
    gaps_s = (min(gap.seconds, seconds) for gap in found if DISTURBED_GAPS & set(gap.members))
    return max(gaps_s, default=0.0) / profile.actual_s


def _waiting_share(profile: Profile, found: Sequence[Gap]) -> float:
    """Return the share of the run in O where threads wait for cores that they share, and others took part of these."""
    told = any(note.name == OTHER_PROGRAMS for note in profile.notes)
    if not told or TAKEN not in profile.counts or LONGEST_DELAY in profile.counts:
        return 0.0
    return max((gap.share for gap in found if "O" in gap.members), default=0.0)


def describe_unanswered(
    profile: Profile, gaps: Sequence[Gap], recommendations: Sequence[Recommendation]
) -> tuple[Finding, ...]:
    """Return a sentence on the largest gap that the recommendations leave; nothing where they leave no large one."""
    large = [gap for gap in gaps if gap.name in _GAPS and gap.share >= LARGE]
    promised = {gap.name: _promised_seconds(gap, recommendations) for gap in large}
    left = [gap for gap in large if promised[gap.name] < ANSWERED * gap.seconds]
    if not left:
        return ()
    gap = max(left, key=lambda one: one.seconds)
    promised_s = promised[gap.name]
    about = f"the items address {format_seconds(promised_s)} of it" if promised_s else "no item addresses it"
    amount = f"{format_seconds(gap.seconds)}, {format_share(gap.share)} of the run"
    text = f"How to reduce {gap.name} ({amount}{_name_place(gap)}): {about}"
    certain_s = gap.seconds - doubtful_seconds(profile, gap.name)
    if certain_s < (1.0 - ANSWERED) * gap.seconds:
        text += "; the rest may be the doing of other programs: record it again when less else runs, or longer"
    text += "."
    measures = {"seconds": gap.seconds, "share": gap.share, "promised_s": promised_s, "certain_s": max(certain_s, 0.0)}
    return (Finding("advice", UNANSWERED, gap.name, text, measures),)


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


def list_hot_spots(profile: Profile, grade: Grade, levels: Sequence[Bound]) -> list[Finding]:
    """Return where most was counted, for a run of which no more can be said: nothing tells its ranks' computation."""
    computes = any(bound.name == "I" and bound.seconds is not None for bound in levels)
    one_rank = not computes and any(note.name == RANKS_ADDED_UP for note in grade.notes)
    if profile.has_run_time and grade.letter != "F" and not one_rank:
        return []
    from advisor.advice.hot_spots import describe_hot_spots

    found = describe_hot_spots(profile)
    return [found] if found else []
