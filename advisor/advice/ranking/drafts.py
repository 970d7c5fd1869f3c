"""From fired rules to recommendations, each by itself: its place, ceiling, confidence and effects."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.advice.facts.code_facts import compute_code_imbalance
from advisor.advice.facts.places import family_name
from advisor.advice.facts.sheet import find_slowest_processors
from advisor.advice.ranking.ceilings import compute_ceiling, compute_confidence, find_gap_letters, restrict_ceiling
from advisor.advice.ranking.effects import find_effects, find_spot, select_instructions, spot_code
from advisor.advice.ranking.gains import cap_gain
from advisor.analysis.loads.computation import find_sequential_regions
from advisor.model import policy
from advisor.model.recommendations import Recommendation
from advisor.model.records import RANKS_ADDED_UP
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from advisor.advice.ranking.ceilings import GapBudget
    from advisor.advice.ranking.effects import SourceSpot
    from advisor.advice.rules import RuleMatch, RuleMatches
    from advisor.model.gap_parts import GapPart
    from advisor.model.records import Gap, Profile

Claim = tuple[int, str]

#: Gaps that one processor, or a few, are to blame for.
_BLAMED = ("L", "M'", "D", "P", "O")
#: Changes of the decomposition, or of how the program is started: one for all phases.
_OF_PROGRAM = frozenset({"rebalance", "volume", "mapping", "locality", "ranks", "placement"})
_COLLECTIVES = frozenset({Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN})
_MESSAGES = frozenset({Role.SEND, Role.RECV, Role.SENDRECV, Role.POST})
_JOINT = _COLLECTIVES | {Role.COMM_OTHER}
_CALLS = _JOINT | _MESSAGES | {Role.BARRIER, Role.WAIT, Role.RMA, Role.INIT, Role.FINALIZE}
#: Changes of calls of one kind, or of computation, and the other calls of MPI, which are no place for them.
_OTHER_CALLS = {
    "reductions": _MESSAGES, "collectives": _MESSAGES, "messages": _JOINT, "send": _JOINT, "receive": _JOINT,
    "serial": _CALLS, "rebalance": _CALLS, "schedule": _CALLS,
}  # fmt: skip
#: The gap that calls make up, by the changes that are about these calls.
_GAPS_OF_CALLS = {"io": "O", "barriers": "S'"}
#: Changes of the compiler's options that concern all code.
_OF_BUILD = frozenset({"optimized", "unchecked"})


@dataclass(frozen=True, slots=True)
class Draft:
    """A recommendation before it is compared with others.

    ``claims`` are the (site, gap) whose seconds it is about, ``match`` the rule where it matters most, ``sites`` the
    phases of each place that it is about; it is about the ``whole`` program if it can't be made at one place.
    ``further_s`` is what a simulation says it wins behind all better ones, ``part`` the seconds of a gap that a finding
    explains and that it is about alone. ``said_s`` is what a simulation said before it was corrected by the history.
    """

    match: RuleMatch
    claims: tuple[Claim, ...]
    recommendation: Recommendation
    sites: tuple[tuple[int, ...], ...] = ()
    whole: bool = False
    further_s: float | None = None
    part: GapPart | None = None
    said_s: float | None = None

    @property
    def score(self) -> float:
        """Ranking score: seconds that such a change usually wins, times confidence, over effort (docs/rules.md).

        A simulation carries the change out to perfection, so what it promises counts by the typical fraction, as a
        ceiling does. What was won before, here or in similar programs, or measured, counts as it is.
        """
        made = self.recommendation
        seconds = made.ceiling_s if made.expected_s is None else made.expected_s
        simulated = made.basis is None or made.basis == "simulation"
        usual = self.match.action.typical_fraction if simulated else 1.0
        return seconds * usual * made.confidence / made.effort

    @property
    def sort_key(self) -> tuple[float, int, tuple[str, int], tuple[int, ...]]:
        """Sorts the best first; of equals the more specific one, then by number of the action and by place."""
        score = float(f"{self.score:.9g}")
        return -score, -len(self.match.action.comparisons), _split_number(self.match.action.id), self.position

    @property
    def position(self) -> tuple[int, ...]:
        """The phases of its place in their order; nothing for the whole run, which comes first."""
        place = self.match.site.place
        return place.phases if place else ()


def _split_number(action: str) -> tuple[str, int]:
    found = re.search(r"\d+$", action)
    return (action[: found.start()], int(found[0])) if found else (action, 0)


def build_drafts(matches: RuleMatches, profile: Profile, budget: GapBudget) -> Iterator[Draft]:
    """Yield a draft for each action and cause.

    What fires in phases of one family is one; so is what changes the program as a whole, or is about M' alone.
    """
    groups: dict[tuple[str, tuple[str, ...], tuple[int, ...]], list[RuleMatch]] = {}
    for match in matches.fired:
        letters = find_gap_letters(match)
        place = match.site.place
        family = place.family if place and not _is_about_program(match, letters) else ()
        groups.setdefault((match.action.id, letters, family), []).append(match)
    conflicting = {match.action.id for match in matches.fired}
    for (_, letters, _), group in groups.items():
        held = tuple(dict.fromkeys(budget.find_gap_with(letter) for letter in letters))
        names = tuple(name for name in held if budget.gap_seconds(name) > 0) or held
        draft = _build_draft(matches, group, names, profile, budget, conflicting)
        shown = names if all(name in budget.gaps for name in names) else letters
        yield replace(draft, recommendation=replace(draft.recommendation, gaps=shown))


def _is_about_program(match: RuleMatch, letters: tuple[str, ...]) -> bool:
    return letters == ("M'",) or not _OF_PROGRAM.isdisjoint(match.action.change) or _is_about_build(match)


def _is_about_build(match: RuleMatch) -> bool:
    """Return whether an action changes how the program is compiled: once, for all of its phases."""
    return match.action.change.get("cpu") in _OF_BUILD


def _find_unfit_regions(profile: Profile, change: Collection[str]) -> frozenset[str]:
    """Return the names of regions that are no place for a change."""
    sequential = find_sequential_regions(profile) if "threads" in change else frozenset()
    other = frozenset[Role]().union(*(_OTHER_CALLS.get(each, ()) for each in change))
    if not other:
        return sequential
    return sequential.union(region.name for region in profile.regions if classify_region(region.name)[1] in other)


def _select_gaps(main: RuleMatch, names: tuple[str, ...], budget: GapBudget) -> list[Gap]:
    """Return the gaps among ``names`` that tell where an action belongs.

    An action on files belongs to the calls on files, and one on barriers to these, although others wait for them in all
    gaps of imbalance. What lies outside of all phases is in no region that a gap of several holds beside it.
    """
    for change, letter in _GAPS_OF_CALLS.items():
        held = budget.find_gap_with(letter)
        if change in main.action.change and held in budget.gaps and budget.gap_seconds(held) > 0:
            names = (held,)
    gaps = [budget.gaps[name] for name in names if name in budget.gaps]
    return [gap for gap in gaps if len(gap.members) == 1] if find_gap_letters(main) == ("X",) else gaps


def _build_draft(
    matches: RuleMatches,
    group: list[RuleMatch],
    names: tuple[str, ...],
    profile: Profile,
    budget: GapBudget,
    fired: Collection[str],
) -> Draft:
    claims = tuple(claim for match in group for claim in _claims_of(matches, match, names))
    main = _select_leading(matches, group, names, budget)
    whole = _is_about_program(main, names)
    shown = [main] if whole and not _is_about_build(main) else group
    phases = sorted({p for match in shown if match.site.place for p in match.site.place.phases})
    where = find_spot(
        _select_gaps(main, names, budget),
        {profile.phases[p].name for p in phases},
        _find_unfit_regions(profile, main.action.change),
    )
    action, most = main.action, restrict_ceiling(main, compute_ceiling(budget, claims))
    if _is_about_build(main):
        most = sum(restrict_ceiling(each, compute_ceiling(budget, _claims_of(matches, each, names))) for each in group)
    if action.gain is not None and action.gain.of.startswith("code."):
        where = spot_code(profile, action.gain.of, phases)
        every = phases or range(len(profile.phases))
        most = min(most * compute_code_imbalance(profile, action.gain.of, every), profile.actual_s)
    gain, loss = find_effects(matches.book, action, names, budget)
    told = all(note.name != RANKS_ADDED_UP for note in profile.notes)
    blamed = find_slowest_processors(matches.sheet, main.site) if told and set(names) & set(_BLAMED) else ()
    made = Recommendation(
        rank=0,
        action=action.id,
        title=action.title,
        step=int(action.step),
        issue=str(action.issue),
        gaps=names,
        phase=main.site.place.name if main.site.place else None,
        region=where.region,
        file=where.file,
        line=where.line,
        processors=tuple(profile.processors[q].name for q in blamed),
        ceiling_s=most,
        expected_s=None,
        interval_s=None,
        basis=None,
        confidence=compute_confidence(budget, main, names, most),
        effort=action.effort,
        may_help=gain,
        may_hurt=loss,
        conflicts=tuple(str(other) for other in action.conflicts if other in fired),
        alternatives=(),
        how=select_instructions(action, profile, matches.sheet.model),
        why=action.why,
        evidence=main.outcome.evidence,
        fingerprint=_compute_fingerprint(profile, main, where, whole=whole),
        rule_place=action.place,
        more_phases=_more_phases(main, claims, budget),
    )
    sites = tuple(match.site.place.phases for match in group if match.site.place)
    return Draft(main, claims, made, sites, whole or not sites)


def _more_phases(main: RuleMatch, claims: tuple[Claim, ...], budget: GapBudget) -> tuple[str, ...]:
    """Return the other phases in which an action at one phase wins a share worth naming, the largest first."""
    place, seconds = main.site.place, dict[str, float]()
    for site, gap in claims if place else ():
        here = budget.sheet.sites[site].place if site >= 0 else None
        if here and here.name and here != place:
            seconds[here.name] = seconds.get(here.name, 0.0) + budget.part_seconds(gap, site)
    least = policy.NAMED_PHASE * compute_ceiling(budget, claims)
    return tuple(sorted((name for name in seconds if seconds[name] >= least), key=lambda name: -seconds[name]))


def find_near_largest(seconds: Sequence[float]) -> int:
    """Return the place of the first number that is nearly the largest, of negative ones too."""
    largest = max(seconds)
    least = largest - (1 - policy.NEAR_EQUAL) * abs(largest)
    return next(place for place, own in enumerate(seconds) if own >= least)


def _select_leading(
    matches: RuleMatches, group: list[RuleMatch], names: tuple[str, ...], budget: GapBudget
) -> RuleMatch:
    """Return the match that is shown: the first that comes near the largest, so that noise does not choose."""
    seconds = [
        compute_ceiling(budget, ((s, n) for s in _site_numbers(matches, match) for n in names)) for match in group
    ]
    return group[find_near_largest(seconds)]


def _claims_of(matches: RuleMatches, match: RuleMatch, names: tuple[str, ...]) -> tuple[Claim, ...]:
    return tuple((site, name) for site in _site_numbers(matches, match) for name in names)


def _site_numbers(matches: RuleMatches, match: RuleMatch) -> tuple[int, ...]:
    """Return the number of a match's site; all, and what lies outside of them, for the run."""
    if match.site.place is None:
        return (*range(len(matches.sheet.sites)), -1)
    return tuple(number for number, site in enumerate(matches.sheet.sites) if site.place == match.site.place)


def restrict_draft(draft: Draft, claims: tuple[Claim, ...], budget: GapBudget) -> Draft:
    """Return the draft about some of its claims only."""
    made, names = draft.recommendation, tuple(dict.fromkeys(name for _, name in claims))
    most = restrict_ceiling(draft.match, compute_ceiling(budget, claims))
    phases = _more_phases(draft.match, claims, budget)
    made = replace(
        made, ceiling_s=most, confidence=compute_confidence(budget, draft.match, names, most), more_phases=phases
    )
    if all(name in budget.gaps for name in names):
        made = replace(made, gaps=names)
    if made.expected_s is not None and made.interval_s is not None:
        expected_s, interval_s = cap_gain(made.expected_s, *made.interval_s, most)
        made = replace(made, expected_s=expected_s, interval_s=interval_s)
    return replace(draft, claims=claims, recommendation=made)


def _compute_fingerprint(profile: Profile, match: RuleMatch, where: SourceSpot, *, whole: bool) -> str:
    """Return the fingerprint: an identity of the cause that no measured number and no line of the source changes."""
    gaps = "+".join(sorted(map(str, match.action.targets)) or [match.action.id])
    place = match.site.place
    if whole or place is None:
        return compute_digest(profile.program, gaps)
    phase = profile.phases[place.phases[0]]
    region, file = (where.region, where.file) if where.dominant else (None, None)
    return compute_digest(
        profile.program, gaps, family_name(phase.name), phase.closed_by or "", region or "", file or ""
    )


def compute_digest(*parts: str) -> str:
    """Return a short identity of these texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:12]
