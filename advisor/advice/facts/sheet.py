"""All facts and gaps at every site of a run: the input of the rules' conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.event_rows import find_call_traits, select_events
from advisor.advice.facts.load_facts import NOTICEABLE
from advisor.advice.facts.places import Place, compute_durations, find_places
from advisor.advice.facts.source import FactSource, GapSpan, MeasureTotals
from advisor.advice.facts.values import compute_fact_value
from advisor.advice.facts.vocabulary import command_for, facts_by_name
from advisor.analysis import gaps as gaps_of
from advisor.analysis.disturbance import REPEATED, disturbance_seconds, doubtful_seconds, undisturbed_seconds
from advisor.analysis.loads import ProfileLoads, summarize_loads
from advisor.analysis.measures import recording_command
from advisor.model.errors import PluginError
from advisor.model.recommendations import Need
from advisor.model.records import GAP_NAMES, Bound, Finding, FloatArray, Gap, Profile, find_adjacent_bounds

if TYPE_CHECKING:
    from advisor.advice.facts.event_rows import CallTraits
    from advisor.advice.facts.fact_records import Compute, Fact, Value
    from advisor.analysis.machines import Machine


#: What would tell gaps from the doings of other programs, and from cores of different speed.
SECOND_RUN: Final = "a second run"
#: The same where a second run was compared already, and other programs held the cores.
UNDISTURBED_RUN: Final = "a run without other programs"
#: Of the processors that work longest so many are named, and only those whose excess over the mean is at least this
#: share of the largest excess: the others are not what the site waits for.
_NAMED_PROCESSORS: Final = 3
_NEAR_WORST: Final = 0.5


@dataclass(frozen=True, slots=True)
class Site:
    """The facts and gaps in some phases, or (``place`` None) in the whole run.

    ``values`` holds the facts that are known, ``spans`` the seconds of every gap by its letter. Shares of gaps are
    shares of ``run_s`` (``undisturbed_seconds``).
    """

    place: Place | None
    run_s: float
    values: Mapping[str, Value]
    spans: Mapping[str, GapSpan]
    vocabulary: Mapping[str, Fact]
    needs: Mapping[str, Need]

    def find_fact(self, name: str) -> tuple[Fact, Value | None, Need]:
        """The fact of that name, its value here if known, and what would provide it."""
        return self.vocabulary[name], self.values.get(name), self.needs[name]

    def gap_span(self, name: str) -> GapSpan:
        """The seconds of a gap here."""
        return self.spans[name]

    def with_values(self, values: Mapping[str, Value | None], shares: Mapping[str, float]) -> Site:
        """Return the site with other values (None: unknown) and with gaps of these shares of the run time."""
        known = {name: value for name, value in {**self.values, **values}.items() if value is not None}
        seconds = {name: share * self.run_s for name, share in shares.items()}
        spans = {name: GapSpan(s, s, self.spans[name].formula) for name, s in seconds.items()}
        return replace(self, values=known, spans={**self.spans, **spans})

    def with_vocabulary(self, vocabulary: Mapping[str, Fact]) -> Site:
        """Return the site with a larger vocabulary, whose new words are unknown here."""
        needs = {name: Need(name, fact.command) for name, fact in vocabulary.items()}
        return replace(self, vocabulary=vocabulary, needs={**needs, **self.needs})


@dataclass(frozen=True, slots=True)
class FactSheet:
    """The run and its sites; ``model`` is its programming model, None if unknown.

    ``problems`` says which facts of plugins failed; they are unknown.
    """

    run: Site
    sites: tuple[Site, ...]
    model: str | None
    loads: ProfileLoads
    problems: tuple[str, ...] = ()


def collect_facts(
    profile: Profile,
    bounds: Sequence[Bound],
    gaps: Sequence[Gap],
    machine: Machine | None = None,
    loads: ProfileLoads | None = None,
    extra: Iterable[Fact] = (),
) -> FactSheet:
    """Return the facts of a run; ``extra`` are facts of plugins, ``loads`` spares the pass over the arrays."""
    loads = loads or summarize_loads(profile)
    seconds = compute_durations(profile, loads)
    collector = _Collector(profile, bounds, gaps, machine, loads, seconds, facts_by_name(extra))
    run = collector.collect_run()
    sites = tuple(collector.collect_site(place, run) for place in find_places(profile, seconds))
    return FactSheet(run, sites, find_programming_model(profile), loads, tuple(collector.problems))


def find_programming_model(profile: Profile) -> str | None:
    """Return the programming model as rules name it; None where neither paradigms nor processors tell it."""
    if profile.devices is not None:
        return "device"
    used: set[str] = {"mpi", "openmp"} & {paradigm.lower() for paradigm in profile.paradigms}
    if not used:
        ranks = {processor.rank for processor in profile.processors}
        used = ({"mpi"} if len(ranks) > 1 else set()) | ({"openmp"} if len(ranks) < len(profile.processors) else set())
    if len(used) == 2:
        return "hybrid"
    return next(iter(used), None if profile.paradigms or len(profile.processors) > 1 else "serial")


class _Collector:
    """Computes sites one after the other, from what all of them share."""

    def __init__(
        self,
        profile: Profile,
        bounds: Sequence[Bound],
        gaps: Sequence[Gap],
        machine: Machine | None,
        loads: ProfileLoads,
        seconds: FloatArray,
        vocabulary: Mapping[str, Fact],
    ) -> None:
        self.profile, self.gaps, self.machine, self.loads = profile, gaps, machine, loads
        self.bounds = {bound.name: bound for bound in bounds}
        repeated = any(note.name == REPEATED for note in profile.notes)
        lacking, record = (UNDISTURBED_RUN, "cpu_s") if repeated else (SECOND_RUN, "compiled_ops")
        self.second_run = Need(lacking, recording_command(profile, record))
        self.seconds, self.vocabulary = seconds, vocabulary
        self.calls: CallTraits = find_call_traits(profile)
        self.totals = MeasureTotals(profile)
        self.problems: dict[str, None] = {}
        self.needs = {name: Need(name, command_for(profile, fact)) for name, fact in vocabulary.items()}
        self.shares = [gaps_of.compute_phase_shares(profile, gap, loads, machine) for gap in gaps]

    def collect_run(self) -> Site:
        """Return the facts of the run and the whole gaps."""
        everything = tuple(range(len(self.profile.phases)))
        values = self._compute_values("run", self._make_source(everything, everything))
        seconds = [gap.seconds for gap in self.gaps]
        return self._make_site(None, values, seconds, [bound.seconds for bound in self.bounds.values()], 1.0)

    def collect_site(self, place: Place, run: Site) -> Site:
        """Return the facts and the parts of the gaps at a site."""
        values = {**run.values, **self._compute_values("phase", self._make_source(place.phases, place.family))}
        phases = list(place.phases)
        seconds = [
            gap.seconds if self._holds_whole(gap) else float(share[phases].sum())
            for gap, share in zip(self.gaps, self.shares, strict=True)
        ]
        computed = float(self.seconds.sum())
        share = float(self.seconds[phases].sum()) / computed if computed > 0 else 1.0
        bounds = [self._bound_seconds(name, phases) for name in self.bounds]
        return self._make_site(place, values, seconds, bounds, share)

    def _holds_whole(self, gap: Gap) -> bool:
        """Return whether all of a gap is at the only site: of a run without phases nobody knows what lies outside."""
        return len(gap.members) > 1 and not self.profile.has_phases

    def _make_source(self, phases: tuple[int, ...], family: tuple[int, ...]) -> FactSource:
        causes = self.profile.causes
        here, around = (
            (None, None)
            if causes is None
            else (select_events(causes, self.calls, phases), select_events(causes, self.calls, family))
        )
        return FactSource(
            self.profile, self.loads, self.totals, self.machine, self.seconds, phases, family, here, around
        )

    def _compute_values(self, scope: str, source: FactSource) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for fact in self.vocabulary.values():
            known = self._compute_value(fact, source) if fact.scope == scope else None
            if known is not None:
                found[fact.name] = known
        return found

    def _compute_value(self, fact: Fact, source: FactSource) -> Value | None:
        try:
            return compute_fact_value(fact, source)
        except PluginError as error:
            self.problems[str(error)] = None
            return None

    def _bound_seconds(self, name: str, phases: list[int]) -> float | None:
        """Return the seconds of a bound in some phases; of the measured bounds only, which are laid out."""
        spread = self.loads.spreads.get(name)
        return None if spread is None else float(self.loads.sum_by_phase(spread)[phases].sum())

    def _make_site(
        self,
        place: Place | None,
        values: dict[str, Value],
        seconds: list[float],
        bounds: list[float | None],
        share: float,
    ) -> Site:
        spans = {letter: self._make_span(letter, seconds, bounds, share) for letter in GAP_NAMES}
        return Site(place, undisturbed_seconds(self.profile), values, spans, self.vocabulary, self.needs)

    def _make_span(self, letter: str, seconds: list[float], bounds: list[float | None], share: float) -> GapSpan:
        """Return what is known of a gap: all of it, at most a merged gap, or at most the lowest bound known.

        Start-up and shutdown are part of X, however much else a merged gap holds.
        """
        found = next((n for n, gap in enumerate(self.gaps) if letter in gap.members), None)
        if found is None:
            below = next((s for s in bounds if s is not None), None)
            limit = max(below, 0.0) if below is not None else self.profile.actual_s
            return GapSpan(0.0, limit, _gap_formula(letter), self._find_need(letter))
        gap, part = self.gaps[found], seconds[found]
        formula = f"{gap.upper} - {gap.lower}"
        if len(gap.members) == 1:
            proven = min(self._proven.get(letter, 0.0) / gap.seconds, 1.0) if gap.seconds > 0 else 0.0
            doubtful_s = doubtful_seconds(self.profile, letter, share, proven_s=proven * part, seconds=part)
            if not doubtful_s:
                return GapSpan(part, part, formula)
            return GapSpan(max(part - doubtful_s, min(part, 0.0)), part, formula, self.second_run)
        edges_s = self.profile.start_and_shutdown_s if letter == "X" and share >= 1.0 else 0.0
        return GapSpan(min(part, edges_s), max(part, 0.0), f"{formula}, which holds it", self._find_need(letter))

    @cached_property
    def _proven(self) -> dict[str, float]:
        """Imbalance and transfer that are there however busy the machine was; looked for only where it was."""
        if not disturbance_seconds(self.profile):
            return {}
        from advisor.analysis.proven_imbalance import prove_imbalance, prove_transfer  # few runs need it

        return {**prove_imbalance(self.profile), "C'": prove_transfer(self.profile)}

    def _find_need(self, letter: str) -> Need:
        """Return the command that would provide the first missing bound beside a gap."""
        beside = [self.bounds.get(name) for name in find_adjacent_bounds(letter)]
        commands = [bound.collect for bound in beside if bound and bound.seconds is None and bound.collect]
        return Need(f"gap {letter}", commands[0] if commands else "")


def _gap_formula(letter: str) -> str:
    lower, upper = find_adjacent_bounds(letter)
    return f"{upper} - {lower}"


def find_slowest_processors(sheet: FactSheet, site: Site) -> tuple[int, ...]:
    """Return the processors with the most work above the mean at a site, the worst first; a few at most."""
    phases = site.place.phases if site.place else range(len(sheet.loads.phases))
    known = [sheet.loads.phases[p].work for p in phases if sheet.loads.phases[p].has_work]
    if not known:
        return ()
    work: FloatArray = np.sum(known, axis=0)
    excess = work - work.mean()
    order = np.argsort(-excess, kind="stable")[:_NAMED_PROCESSORS]
    least = max(_NEAR_WORST * float(excess[order[0]]), NOTICEABLE * float(work.mean()))
    return tuple(int(q) for q in order if excess[q] > 0 and excess[q] >= least)


def add_finding_values(facts: Iterable[Fact], findings: Iterable[Finding]) -> tuple[Fact, ...]:
    """Return the facts, each with the number of its finding as its value where that was made; the first one counts."""
    known: dict[tuple[str, str, str], float] = {}
    for finding in findings:
        for measure, value in finding.measures.items():
            known.setdefault((finding.kind, finding.subject, measure), value)
    return tuple(
        replace(fact, compute=_constant_fact(known[fact.finding])) if fact.finding and fact.finding in known else fact
        for fact in facts
    )


def _constant_fact(number: float) -> Compute:
    def compute_constant(profile: Profile, phase: int | None) -> Value | None:
        return number

    return compute_constant
