"""Whether a run is advised on, has nothing significant, or is known too little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis import quality
from advisor.analysis.disturbance import DISTURBED_GAPS, LONGEST_DELAY, TAKEN, disturbance_seconds
from advisor.analysis.measures import derive_quantities
from advisor.model.policy import MERGED_SHARE
from advisor.model.records import DEVICES_UNSEEN, OTHER_PROGRAMS, RANKS_ADDED_UP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.advice.ranking import Ranking
    from advisor.advice.rules import RuleMatches
    from advisor.model.records import Gap, Grade, Profile, Verdict


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
