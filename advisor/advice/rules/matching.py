"""Match rules to a run: which actions fire where, and which unknown facts would decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from advisor.advice.facts.places import is_significant
from advisor.advice.facts.sheet import SECOND_RUN, UNDISTURBED_RUN
from advisor.advice.rules.conditions import FactIs, Outcome, compute_truth, evaluate_condition

if TYPE_CHECKING:
    from advisor.advice.facts import FactSheet, Site
    from advisor.advice.facts.fact_records import Fact
    from advisor.advice.facts.source import GapSpan
    from advisor.advice.rules.records import Action, RuleBook
    from advisor.model.recommendations import Evidence, Need


#: The issue of actions against what the operating system takes: O holds I/O as well, which they do not shrink.
_OF_SYSTEM: Final = "I-30"
#: The issues of input and output: of many requests, of one process, of writing while others wait.
_OF_FILES: Final = frozenset({"I-27", "I-28", "I-29"})


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """An action at a site, the truth of its conditions there, and the seconds of input and output there."""

    action: Action
    site: Site
    outcome: Outcome
    io_s: float | None = None

    @property
    def stake_s(self) -> float:
        """The seconds that the action's gaps can hold here at most; of O an action on files can win only its I/O."""
        found = (self.site.gap_span(gap).high - (self.other_system_s if gap == "O" else 0.0) for gap in self._gaps())
        return max(found, default=0.0)

    @property
    def known_s(self) -> float:
        """The seconds that one of the action's gaps holds here for certain.

        Of O an action about the operating system can win only what is no I/O, and one on files nothing else.
        """
        return max((self.site.gap_span(gap).low - self._elsewhere_s(gap) for gap in self._gaps()), default=0.0)

    @property
    def other_system_s(self) -> float:
        """The seconds of O here that an action on files cannot win, since they are no input or output; else 0."""
        if self.io_s is None or self.action.issue not in _OF_FILES:
            return 0.0
        return max(self.site.gap_span("O").high - self.io_s, 0.0)

    def _gaps(self) -> Sequence[str]:
        return self.action.targets or [leaf.gap for leaf in self.action.comparisons if not isinstance(leaf, FactIs)]

    def _elsewhere_s(self, gap: str) -> float:
        """Return the seconds of a gap that are known to be nothing that the action is about."""
        if gap != "O" or self.io_s is None:
            return 0.0
        return self.io_s if self.action.issue == _OF_SYSTEM else self.other_system_s


@dataclass(frozen=True, slots=True)
class RuleMatches:
    """The actions that fire, and those that unknown facts leave undecided."""

    book: RuleBook
    sheet: FactSheet
    fired: tuple[RuleMatch, ...]
    undecided: tuple[RuleMatch, ...]

    @property
    def needs(self) -> tuple[Need, ...]:
        """What should be measured, once each: what decides about the most seconds first, about few not at all.

        Seconds that a gap is known to hold come before those that it can hold at most.
        """
        stakes: dict[Need, tuple[float, float]] = {}
        for match in self.undecided:
            low, high = match.known_s, match.stake_s
            for need in match.outcome.needs:
                known, most = stakes.get(need, (0.0, 0.0))
                stakes[need] = max(known, low), max(most, high)
        run_s = self.sheet.run.run_s
        worth = [need for need, (_, most) in stakes.items() if need.command and is_significant(most, run_s)]
        return tuple(sorted(worth, key=lambda need: (*(-seconds for seconds in stakes[need]), need.fact)))

    @property
    def has_undecided_gap(self) -> bool:
        """Whether a gap is known to be significant where something unknown keeps an action for it undecided."""
        return any(is_significant(match.known_s, self.sheet.run.run_s) for match in self.undecided)


def match_rules(book: RuleBook, sheet: FactSheet) -> RuleMatches:
    """Return what fires and what stays undecided, in the order of the book and of the sites."""
    found = [
        RuleMatch(action, site, _doubt_outcome(evaluate_condition(action.when, site), action, site), _io_s(site, sheet))
        for action in book.actions
        for site in _sites_of_action(action, sheet)
        if compute_truth(action.when, site) is not False
    ]
    fired = tuple(one for one in found if one.outcome.truth)
    undecided = tuple(one for one in found if one.outcome.truth is None)
    return RuleMatches(book, sheet, fired, undecided)


def find_possible(matches: RuleMatches) -> tuple[RuleMatch, ...]:
    """Return what fires, and what does not though its action ``requires`` no more than there is.

    The evidence of the latter are those comparisons of ``when`` that hold.
    """
    book, sheet = matches.book, matches.sheet
    fired = {(one.action.id, id(one.site)): one for one in matches.fired}
    found = []
    for action in book.actions:
        for site in _sites_of_action(action, sheet):
            known = fired.get((action.id, id(site)))
            if _may_be_noise(action, site):
                known = None
            elif known is None and action.requires is not None and compute_truth(action.requires, site):
                known = RuleMatch(action, site, Outcome(True, tuple(_holding(action, site))))
            if known is not None:
                found.append(known)
    return tuple(found)


def _doubt_outcome(outcome: Outcome, action: Action, site: Site) -> Outcome:
    """Return the outcome, unknown where all that the action could win may be the doing of other programs."""
    if outcome.truth and _may_be_noise(action, site):
        return replace(outcome, truth=None, needs=tuple(need for _, need in _disturbed_spans(action, site)))
    return outcome


def _may_be_noise(action: Action, site: Site) -> bool:
    """Return whether every gap of an action was disturbed, and none is known to be significant all the same."""
    spans = _disturbed_spans(action, site)
    return 0 < len(spans) == len(action.targets) and not any(is_significant(span.low, site.run_s) for span, _ in spans)


def _disturbed_spans(action: Action, site: Site) -> list[tuple[GapSpan, Need]]:
    spans = [site.gap_span(gap) for gap in action.targets]
    runs = (SECOND_RUN, UNDISTURBED_RUN)
    return [(span, span.need) for span in spans if span.need is not None and span.need.fact in runs]


def _holding(action: Action, site: Site) -> Iterator[Evidence]:
    """Yield the comparisons of an action that hold at a site."""
    for leaf in action.comparisons:
        outcome = evaluate_condition(leaf, site)
        if outcome.truth:
            yield from outcome.evidence


def match_action(action: Action, sheet: FactSheet) -> Iterator[RuleMatch]:
    """Yield what the conditions of an action say at each site; nothing if it does not fit the program's model."""
    for site in _sites_of_action(action, sheet):
        yield RuleMatch(action, site, evaluate_condition(action.when, site))


def _io_s(site: Site, sheet: FactSheet) -> float | None:
    """Return the seconds of input and output at a site, a mean over the processors; of the run those of all sites.

    None where they were not told apart from what else the operating system does.
    """
    if site.place is None:
        found = [_io_s(one, sheet) for one in sheet.sites]
        return None if None in found else sum(seconds for seconds in found if seconds is not None)
    share = site.values.get("io.share")
    return float(share) * site.place.seconds if isinstance(share, int | float) else None


def _sites_of_action(action: Action, sheet: FactSheet) -> Sequence[Site]:
    """Return where the conditions of an action are asked."""
    if sheet.model is not None and sheet.model not in action.applies_to:
        return ()
    if sheet.model == "device":
        return (sheet.run,)
    return (sheet.run,) if is_run_wide(action, sheet.run.vocabulary) else sheet.sites


def is_run_wide(action: Action, vocabulary: Mapping[str, Fact]) -> bool:
    """Return whether an action is asked once, of the run: it names only facts of the run, or targets X alone."""
    scopes = {vocabulary[leaf.fact].scope for leaf in action.comparisons if isinstance(leaf, FactIs)}
    return scopes == {"run"} or tuple(action.targets) == ("X",)
