"""What ``gapwatch whatif`` shows for a recorded run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.advice import rules
from advisor.model import units
from advisor.model.errors import InputError, UsageError
from advisor.model.reports import Bar, Bars, Column, Part, Report, Table, Text
from advisor.support.documents import suggest_word
from advisor_simulation.whatif.gains import ENOUGH, ChangeGain, compare_trials, try_change, try_jointly
from advisor_simulation.whatif.measured_run import build_run
from advisor_simulation.whatif.plan import Candidate, PlanStep, State, search_plan
from advisor_simulation.whatif.reasons import OF_RUNS
from advisor_simulation.whatif.trial import Trial, apply_change, build_trial, scale_speed

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.advice.rules import RuleBook
    from advisor.advice.rules.records import Action
    from advisor.extension.commands import CommandServices
    from advisor.model.records import Advice, Profile
    from advisor.trace.events import Trace

    TriedAction = tuple[Action, ChangeGain | None]

#: A gap that moves by less than this share of the run is not shown.
SHOWN_SHARE: Final = 0.001
#: Less than this comes from rounding, seconds.
_NOTHING_S: Final = 1e-12
_NOTHING_PROPOSED: Final = (
    "The rules propose no action for this run, so there is nothing to try and nothing to plan; --action names one all"
    " the same (gapwatch rules list)."
)


def build_report(args: Namespace, services: CommandServices) -> Report:
    """Return the gains of the requested actions, or of all that the rules propose."""
    profile = services.read(args.path)
    run = build_run(profile)
    if run is None:
        raise InputError(args.path, "the work of its processors is not known, so no change can be simulated")
    with services.show_progress("reading the run"):
        trial = build_trial(run, _read_events(args.path, services))
    title = f"What if: {profile.program}, {units.format_seconds(profile.actual_s)}"
    if args.network is not None or args.processor is not None:
        return Report(title, _faster_parts(trial, args))
    book = rules.load_default((), examples=False)
    known = {action.id: action for action in book.actions}
    asked = require_actions(known, args.action) if args.action else select_proposed(known, services.advise(args.path))
    phases = find_working_phases(profile, args.region) if args.region else set()
    found = _try_all(trial, asked, phases, services)
    if not asked:
        return Report(title, (_describe_trial(trial), Text(_NOTHING_PROPOSED)))
    parts: list[Part] = [_describe_trial(trial), build_gain_table(found), *_explain_missing(found)]
    parts += [build_side_effects(found[0], profile.actual_s)] if len(asked) == 1 else []
    parts += [*_joint_parts(trial, found, phases), *describe_conflicts(asked)]
    if args.plan:
        with services.show_progress("searching a plan") as progress:
            parts.append(plan_actions(trial, asked, book, progress))
    return Report(title, tuple(parts))


def _read_events(path: Path, services: CommandServices) -> Trace | None:
    """Return the events of a run, None where it is no trace."""
    try:
        return services.read_trace(path)
    except InputError:
        return None


def _try_all(trial: Trial, asked: Sequence[Action], phases: set[int], services: CommandServices) -> list[TriedAction]:
    found = []
    with services.show_progress("simulating changes", len(asked)) as progress:
        for number, action in enumerate(asked, 1):
            found.append((action, try_change(trial, action.change, phases)))
            progress(number)
    return found


def _faster_parts(trial: Trial, args: Namespace) -> tuple[Part, ...]:
    """Return what another machine wins: all computation and all communication take that much less."""
    network, processor = (1.0 if each is None else each for each in (args.network, args.processor))
    if not (0 < network < math.inf and 0 < processor < math.inf):
        raise UsageError("--network and --processor take a number above zero, such as 2")
    found = compare_trials(trial, scale_speed(trial, processor, network), {})
    row = (found.changed.total_seconds(), found.expected_s, found.low_s, found.high_s, _method_name(found))
    columns = (*(Column(name, "s") for name in ("then", "wins", "from", "to")), Column("by"))
    name = f"processors {processor:g} times, network {network:g} times as fast"
    moved = tuple(Bar(gap, seconds) for gap, seconds in found.gap_changes().items() if abs(seconds) > _NOTHING_S)
    return (
        _describe_trial(trial),
        Table(f"Gains of {name}", columns, (row,)),
        Bars("What that does to the gaps", "s", moved),
    )


def require_actions(known: Mapping[str, Action], names: Sequence[str]) -> list[Action]:
    """Return the actions of these names; UsageError where one is not known."""
    for name in names:
        if name not in known:
            raise UsageError(f"there is no action {name!r}{suggest_word(name, known)}; see gapwatch rules list")
    return [known[name] for name in names]


def select_proposed(known: Mapping[str, Action], advice: Advice) -> list[Action]:
    """Return the actions that advice recommends, and their alternatives."""
    names = [name for one in advice.recommendations for name in (one.action, *one.alternatives)]
    return [known[name] for name in dict.fromkeys(names) if name in known]


def find_working_phases(profile: Profile, region: str) -> set[int]:
    """Return the phases in which a region has any time; UsageError where it has none."""
    found = {
        number
        for number, phase in enumerate(profile.phases)
        for row, index in enumerate(phase.regions)
        if profile.regions[index].name == region and any(array[row].any() for array in phase.arrays.values())
    }
    if not found:
        raise UsageError(
            f"no phase holds the region {region!r}{suggest_word(region, [r.name for r in profile.regions])}"
        )
    return found


def _describe_trial(trial: Trial) -> Text:
    run = trial.run
    share = run.error_s / run.profile.actual_s
    said = f"The unchanged run is simulated as {units.format_seconds(trial.total_seconds())}. Of that"
    if run.error_s > _NOTHING_S:
        said += f" {units.format_seconds(run.error_s)} ({units.format_share(share)}) are not explained by what was"
        said += " recorded, which widens every interval (80 % probability)."
    else:
        said += " nothing is left unexplained by what was recorded. Intervals hold with 80 % probability."
    if all(len(phase.start) < ENOUGH for phase in run.phases):
        said += f" No phase of it has {ENOUGH} instances, so how much two such runs differ is not known: it is missing"
        said += " in the intervals, which are too narrow."
    if trial.traced is not None:
        said += f" Changes of messages and meetings are made on its {len(trial.traced.rows):,} operations and replayed."
    return Text(said)


def _method_name(found: ChangeGain) -> str:
    return "replay" if found.changed.is_replayed else "phases"


def build_gain_table(found: Sequence[TriedAction]) -> Table:
    """Return expected gain and interval of each action, the best first, and what they come from."""
    seconds = (Column(name, "s") for name in ("expected", "from", "to"))
    columns = (Column("action"), Column("change"), *seconds, Column("by"))
    ordered = sorted(found, key=lambda one: -one[1].expected_s if one[1] else float("inf"))
    rows = tuple(
        (action.id, action.title, *((one.expected_s, one.low_s, one.high_s, _method_name(one)) if one else [None] * 4))
        for action, one in ordered
    )
    return Table("Gains", columns, rows)


def _explain_missing(found: Sequence[TriedAction]) -> list[Part]:
    """Return why some changes have no gain."""
    said = []
    lacking = []
    for action, one in found:
        reasons = [OF_RUNS[word] for word in action.change.items() if word in OF_RUNS]
        if reasons:
            verb = "is not simulated" if one is None else "is simulated in part"
            said.append(Text(f"{action.id} {verb}: {'; '.join(reasons)}."))
        elif one is None:
            lacking.append(action.id)
    if lacking:
        said.append(Text(f"{', '.join(lacking)}: the run holds nothing that this would change."))
    return list(said)


def build_side_effects(one: TriedAction, actual_s: float) -> Bars:
    """Return by how much each gap grows or shrinks."""
    action, found = one
    moved = found.gap_changes() if found else {}
    bars = tuple(Bar(name, seconds) for name, seconds in moved.items() if abs(seconds) > SHOWN_SHARE * actual_s)
    return Bars(f"What {action.id} does to the gaps", "s", bars)


def _joint_parts(trial: Trial, found: Sequence[TriedAction], phases: set[int]) -> list[Part]:
    useful = [(action, one) for action, one in found if one is not None and one.expected_s > 0]
    kept = select_compatible([action for action, _ in sorted(useful, key=lambda pair: -pair[1].expected_s)])
    useful = sorted((pair for pair in useful if pair[0] in kept), key=lambda pair: pair[0].step)
    if len(useful) < 2:
        return []
    both = try_jointly(trial, [(action.change, phases) for action, _ in useful])
    made = [one for place, one in enumerate(useful) if place not in both.left_out]
    apart = sum(one.expected_s for _, one in made)
    names = ", ".join(action.id for action, _ in made)
    won = both.gain
    expected, low, high, alone = map(units.format_seconds, (won.expected_s, won.low_s, won.high_s, apart))
    said = f"{names} together, in the order of their steps: {expected} (from {low} to {high}); one by one they add up"
    parts: list[Part] = []
    if len(made) > 1:
        parts.append(Text(f"{said} to {alone}."))
    if both.left_out:
        others = ", ".join(useful[place][0].id for place in both.left_out)
        parts.append(
            Text(f"Not tried together: {others}, known by phases only, which know nothing of changed messages.")
        )
    return parts


def select_compatible(actions: Sequence[Action]) -> list[Action]:
    """Return the actions, in their order, without those that are in conflict with an earlier one."""
    kept: list[Action] = []
    for action in actions:
        if not any(action.id in one.conflicts or one.id in action.conflicts for one in kept):
            kept.append(action)
    return kept


def describe_conflicts(actions: Sequence[Action]) -> list[Part]:
    """Return which of the actions exclude each other, one line for each pair."""
    asked = {action.id for action in actions}
    pairs = sorted({tuple(sorted((one.id, other))) for one in actions for other in one.conflicts if other in asked})
    said = "only one of them can be carried out, and joint gains hold the better one"
    return [Text(f"{one} and {other} are in conflict: {said}.") for one, other in pairs]


def plan_actions(trial: Trial, actions: Sequence[Action], book: RuleBook, progress: Callable[[int], None]) -> Table:
    """Return the best sequence of actions over the steps of figure 6, none of them in conflict with an earlier one."""
    candidates = [
        Candidate(action.id, action.title, action.step, _make_change(action), action.conflicts) for action in actions
    ]
    back = [(arrow.from_, arrow.to) for arrow in book.arrows if arrow.to < arrow.from_]
    return build_plan_table(search_plan(trial, lambda one: one.total_seconds(), candidates, back, progress=progress))


def build_plan_table(taken: Sequence[PlanStep[State]]) -> Table:
    """Return a plan as a table."""
    columns = (Column("step"), Column("action"), Column("change"), Column("wins", "s"), Column("then", "s"))
    rows = tuple(
        (one.candidate.step, one.candidate.action, one.candidate.title, one.before_s - one.after_s, one.after_s)
        for one in taken
    )
    return Table("Plan", columns, rows)


def _make_change(action: Action) -> Callable[[Trial], Trial | None]:
    return lambda trial: apply_change(trial, action.change, set())
