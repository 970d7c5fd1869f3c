"""What ``gapwatch whatif`` shows for a recorded run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor import rules
from advisor.documents import suggestion
from advisor.errors import InputError, UsageError
from advisor.reports import Bar, Bars, Column, Report, Table, Text
from advisor_simulation.whatif.changes import change_of
from advisor_simulation.whatif.gains import compared, joint, tried
from advisor_simulation.whatif.plan import Candidate, plan
from advisor_simulation.whatif.runs import faster, of_profile

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from advisor.commands import Services
    from advisor.model import Advice, Profile
    from advisor.reports import Part
    from advisor.rules import RuleBook
    from advisor.rules.records import Action
    from advisor_simulation.whatif.gains import Tried
    from advisor_simulation.whatif.runs import Run

#: A gap that moves by less than this share of the run is not shown.
SHOWN: Final = 0.001


def report(args: Namespace, services: Services) -> Report:
    """Return the gains of the actions asked for, or of all that the rules propose."""
    profile = services.read(args.path)
    run = of_profile(profile)
    if run is None:
        raise InputError(args.path, "the work of its processors is not known, so no change can be simulated")
    book = rules.load_default((), examples=False)
    asked = chosen_actions(book, args.action) if args.action else proposed(book, services.advise(args.path))
    phases = working_in(profile, args.region) if args.region else set()
    if args.network != 1.0 or args.processor != 1.0:
        return Report(f"What if: {profile.program}, {profile.actual_s:.6g} s", _faster(run, args))
    found = [(action, tried(run, action.change, phases)) for action in asked]
    parts: list[Part] = [_head(run), gains(found), *_told_why(found)]
    parts += [side_effects(one, profile.actual_s) for one in found[:1] if len(args.action or ()) == 1]
    parts += _together(run, found, phases, book)
    if args.plan:
        with services.working("searching a plan") as progress:
            parts.append(planned(run, asked, book, progress))
    return Report(f"What if: {profile.program}, {profile.actual_s:.6g} s", tuple(parts))


def _faster(run: Run, args: Namespace) -> tuple[Part, ...]:
    """Return what another machine wins: all computation and all communication take that much less."""
    if args.network <= 0 or args.processor <= 0:
        raise UsageError("--network and --processor take a number above zero, such as 2")
    found = compared(run, faster(run, args.processor, args.network))
    row = (found.changed.total(), found.expected_s, found.low_s, found.high_s)
    columns = (Column("then", "s"), Column("wins", "s"), Column("from", "s"), Column("to", "s"))
    name = f"processors {args.processor:g} times, network {args.network:g} times as fast"
    moved = tuple(Bar(gap, seconds) for gap, seconds in found.moved.items() if seconds)
    return (_head(run), Table(f"Gains of {name}", columns, (row,)), Bars("What that does to the gaps", "s", moved))


def chosen_actions(book: RuleBook, names: Sequence[str]) -> list[Action]:
    """Return the actions of these names; UsageError where one is not known."""
    known = {action.id: action for action in book.actions}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no action {name!r}{suggestion(name, known)}; see gapwatch rules list")
    return [known[name] for name in names]


def proposed(book: RuleBook, advice: Advice) -> list[Action]:
    """Return the actions that advice recommends, and their alternatives."""
    names = [name for one in advice.recommendations for name in (one.action, *one.alternatives)]
    known = {action.id: action for action in book.actions}
    return [known[name] for name in dict.fromkeys(names) if name in known]


def working_in(profile: Profile, region: str) -> set[int]:
    """Return the phases in which a region has any time; UsageError where it has none."""
    found = {
        number
        for number, phase in enumerate(profile.phases)
        for row, index in enumerate(phase.regions)
        if profile.regions[index].name == region and any(array[row].any() for array in phase.arrays.values())
    }
    if not found:
        raise UsageError(f"no phase holds the region {region!r}{suggestion(region, [r.name for r in profile.regions])}")
    return found


def _head(run: Run) -> Text:
    share = run.error_s / run.profile.actual_s
    said = f"The unchanged run is simulated as {run.total():.6g} s. Of that {run.error_s:.3g} s ({share:.1%}) are not"
    return Text(f"{said} explained by what was recorded, which widens every interval (80 % probability).")


def gains(found: Sequence[tuple[Action, Tried | None]]) -> Table:
    """Return expected gain and interval of each action, the best first."""
    columns = (Column("action"), Column("change"), Column("expected", "s"), Column("from", "s"), Column("to", "s"))
    ordered = sorted(found, key=lambda one: -one[1].expected_s if one[1] else 1.0)
    rows = tuple(
        (action.id, action.title, *((one.expected_s, one.low_s, one.high_s) if one else (None, None, None)))
        for action, one in ordered
    )
    return Table("Gains", columns, rows)


def _told_why(found: Sequence[tuple[Action, Tried | None]]) -> list[Part]:
    unknown = [action.id for action, _ in found if change_of(action.change) is None]
    lacking = [action.id for action, one in found if one is None and change_of(action.change) is not None]
    said = []
    if unknown:
        where = "a profile does not tell; write a model (gapwatch model) and try it there"
        said.append(Text(f"{', '.join(unknown)}: {where}."))
    if lacking:
        said.append(Text(f"{', '.join(lacking)}: the profile holds nothing that this would change."))
    return list(said)


def side_effects(one: tuple[Action, Tried | None], actual_s: float) -> Bars:
    """Return by how much each gap grows or shrinks."""
    action, found = one
    moved = found.moved if found else {}
    bars = tuple(Bar(name, seconds) for name, seconds in moved.items() if abs(seconds) > SHOWN * actual_s)
    return Bars(f"What {action.id} does to the gaps", "s", bars)


def _together(run: Run, found: Sequence[tuple[Action, Tried | None]], phases: set[int], book: RuleBook) -> list[Part]:
    useful = [(action, one) for action, one in found if one is not None and one.expected_s > 0]
    if len(useful) < 2:
        return []
    clashes = [f"{a.id} and {b}" for a, _ in useful for b in a.conflicts if b in {other.id for other, _ in useful}]
    useful.sort(key=lambda pair: pair[0].step)
    both = joint(run, [(action.change, phases) for action, _ in useful])
    apart = sum(one.expected_s for _, one in useful)
    said = []
    if both is not None:
        said.append(f"All of them, in the order of their steps: {both.expected_s:.4g} s")
        said.append(f"(from {both.low_s:.4g} to {both.high_s:.4g} s); one by one they add up to {apart:.4g} s.")
    if clashes:
        said.append(f"In conflict: {', '.join(sorted(set(clashes)))}.")
    return [Text(" ".join(said))]


def planned(run: Run, actions: Sequence[Action], book: RuleBook, progress: Callable[[int], None]) -> Table:
    """Return the best sequence of actions over the steps of figure 6."""
    candidates = [
        Candidate(action.id, action.title, action.step, _maker(action))
        for action in actions
        if change_of(action.change)
    ]
    back = [(arrow.from_, arrow.to) for arrow in book.arrows if arrow.to < arrow.from_]
    taken = plan(run, lambda one: one.total(), candidates, back, progress=progress)
    columns = (Column("step"), Column("action"), Column("change"), Column("wins", "s"), Column("then", "s"))
    rows = tuple(
        (one.candidate.step, one.candidate.action, one.candidate.title, one.before_s - one.after_s, one.after_s)
        for one in taken
    )
    return Table("Plan", columns, rows)


def _maker(action: Action) -> Callable[[Run], Run | None]:
    change = change_of(action.change)
    return lambda run: change(run, set()) if change else None
