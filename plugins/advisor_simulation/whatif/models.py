"""What ``gapwatch whatif`` shows for an application model: each change simulated, its side effects, and a plan."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice import rules
from advisor.analysis import bounds, gaps
from advisor.model import units
from advisor.model.reports import Column, Report, Table, Text
from advisor_simulation.mds.costs import costs_of
from advisor_simulation.mds.report import by_kind, profiles, told_holes
from advisor_simulation.mds.run import simulate
from advisor_simulation.model.checks import processors_of, read
from advisor_simulation.whatif.modelled.setting import Setting
from advisor_simulation.whatif.modelled.table import CHANGES, OF_MODELS
from advisor_simulation.whatif.plan import Candidate, Taken, plan
from advisor_simulation.whatif.report import chosen_actions, clashes, compatible, plan_table

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from advisor.advice.rules.records import Action
    from advisor.analysis.machines import Machine
    from advisor.extension.commands import Services
    from advisor.model.records import IntArray, Profile
    from advisor.model.reports import Cell, Part
    from advisor_simulation.mds.run import Simulated
    from advisor_simulation.model.records import Model
    from advisor_simulation.model.world import Profiles
    from advisor_simulation.whatif.modelled.table import Change

#: What is shown of a run: computation and gaps, with those parts of C' that the source counts as unmodelled.
SHOWN: Final = ("computation", "C'", "false sharing", "migration", "O", "P", "L", "M'", "D", "S'", "W")
#: Less than this share of the run is no change of a gap.
LITTLE: Final = 1e-6
_WINS: Final = (Column("action"), Column("change"), Column("wins", "s"))


class Bench:
    """Simulates models, each of them once."""

    def __init__(
        self,
        folder: Path,
        machine: Machine | None,
        processors: int,
        finite: bool = False,
        profiles: Profiles | None = None,
    ) -> None:
        self.folder, self.machine, self.processors = folder, machine, processors
        self.finite, self.profiles = finite, profiles
        self._known: dict[int, tuple[Model, Simulated]] = {}

    def simulated(self, model: Model) -> Simulated:
        """Return the simulated run of a model, with its log."""
        if id(model) not in self._known:
            found = simulate(model, self.folder, self.machine, self.processors, self.finite, profiles=self.profiles)
            self._known[id(model)] = (model, found)
        return self._known[id(model)][1]

    def profile(self, model: Model) -> Profile:
        """Return the simulated run of a model."""
        return self.simulated(model).profile

    def total(self, model: Model) -> float:
        """Return the simulated time of a model, seconds."""
        return self.profile(model).actual_s

    def flow(self, model: Model) -> IntArray:
        """Return the words that each processor reads after each other one wrote them (P, P)."""
        flows = self.simulated(model).log.flows.values()
        nothing = np.zeros((self.processors, self.processors), dtype=np.int64)
        return sum((flow.words for flow in flows), start=nothing)

    def setting(self, model: Model) -> Setting:
        """Return what changes of a model have to know of where it runs."""
        costs = costs_of(model, self.machine, self.processors)
        return Setting(self.folder, self.processors, costs.line, costs.node, self.flow, self.profiles)

    def gaps(self, model: Model) -> dict[str, float]:
        """Return the computation and the gaps of a model, seconds.

        Computation is the I bound, with what comes from memory. C' is without false sharing and migration, which
        stand beside it.
        """
        profile = self.profile(model)
        levels = bounds.compute(profile)
        found = {gap.name: gap.seconds for gap in gaps.attribute(profile, levels)}
        found["computation"] = next((one.seconds for one in levels if one.name == "I" and one.seconds), 0.0)
        kinds = by_kind(profile)
        parts = {kind: kinds.get(kind, 0.0) for kind in ("false sharing", "migration")}
        found["C'"] = found.get("C'", 0.0) - sum(parts.values())
        return found | parts


def candidates(setting: Setting) -> list[Candidate[Model]]:
    """Return everything that can be done to a model, by the first action that says so."""
    return [_candidate(change, change.actions[0], setting) for change in CHANGES]


def _candidate(change: Change, action: str, setting: Setting) -> Candidate[Model]:
    make = partial(_made, change.make, setting)
    return Candidate(action, change.title, change.step, make, book_of_rules()[0][action].conflicts)


def _made(change: Callable[[Model, Setting], Model | None], setting: Setting, model: Model) -> Model | None:
    return change(model, setting)


@lru_cache(maxsize=1)
def book_of_rules() -> tuple[Mapping[str, Action], tuple[tuple[int, int], ...]]:
    """Return the actions of the rules, and the arrows of figure 6 that lead to earlier steps."""
    book = rules.load_default((), examples=False)
    arrows = tuple((arrow.from_, arrow.to) for arrow in book.arrows if arrow.to < arrow.from_)
    return {action.id: action for action in book.actions}, arrows


def best_plan(
    model: Model, bench: Bench, setting: Setting, progress: Callable[[int], None] = lambda done: None
) -> tuple[Taken[Model], ...]:
    """Return the changes that win most, step by step."""
    return plan(model, bench.total, candidates(setting), book_of_rules()[1], progress=progress)


def report(args: Namespace, services: Services) -> Report:
    """Return the changes of a model, what each wins, and the plan that was asked for."""
    model = read(args.path)
    count = processors_of(model, args.processors)
    bench = Bench(args.path.parent, services.machine(args.machine), count, args.finite, profiles(services))
    setting = bench.setting(model)
    asked, impossible = _asked(setting, args.action)
    total, processors = units.format_seconds(bench.total(model)), units.format_count(count, "processor")
    parts: list[Part] = [Text(f"The model takes {total} on {processors}."), *told_holes(model)]
    made = []
    with services.working("simulating changes", len(asked)) as progress:
        for number, candidate in enumerate(asked, 1):
            made.append((candidate, candidate.make(model)))
            bench.total(made[-1][1] or model)
            progress(number)
    parts += _effects(model, bench, made)
    parts += [Text(f"{name} can't be tried on a model: {reason}.") for name, reason in impossible.items()]
    if len(asked) > 1 and args.action:
        parts += _joint(model, bench, made)
        parts += clashes([book_of_rules()[0][candidate.action] for candidate in asked])
    if args.plan:
        with services.working("searching a plan") as progress:
            parts.append(plan_table(best_plan(model, bench, setting, progress)))
    return Report(f"What if: {model.name}", tuple(parts))


def _asked(setting: Setting, names: Sequence[str] | None) -> tuple[list[Candidate[Model]], dict[str, str]]:
    """Return what is asked to be done to a model, and why some of it can't be; UsageError for unknown actions."""
    if not names:
        return candidates(setting), {}
    by_name = {name: change for change in CHANGES for name in change.actions}
    found, impossible = [], {}
    for action in chosen_actions(book_of_rules()[0], names):
        if action.id in by_name:
            found.append(_candidate(by_name[action.id], action.id, setting))
        else:
            impossible[action.id] = "; ".join(dict.fromkeys(OF_MODELS[word] for word in action.change.items()))
    return found, impossible


def _effects(model: Model, bench: Bench, made: Sequence[tuple[Candidate[Model], Model | None]]) -> list[Part]:
    """Return what each change wins, and by how much each gap grows or shrinks; gaps that none changes are left out."""
    before, total = bench.gaps(model), bench.total(model)
    wins: list[tuple[Cell, ...]] = []
    moved: dict[str, dict[str, float]] = {}
    for candidate, changed in made:
        won = total - bench.total(changed) if changed is not None else None
        wins.append((candidate.action, candidate.title, won))
        if changed is not None:
            after = bench.gaps(changed)
            moved[candidate.action] = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in SHOWN}
    names = [name for name in SHOWN if any(abs(one[name]) > LITTLE * total for one in moved.values())]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (action, *(one[name] for name in names)) for action, one in moved.items()
    )
    columns = (Column("action"), *(Column(name, "s") for name in names))
    what = Table("What changes win; - where there is nothing to change", _WINS, tuple(wins))
    return [what, Table("What becomes of computation and gaps", columns, rows)] if rows else [what]


def _joint(model: Model, bench: Bench, made: Sequence[tuple[Candidate[Model], Model | None]]) -> list[Part]:
    """Return what the changes win together, in the order of their steps, and only the better one of a conflict."""
    before, now, known = bench.total(model), model, book_of_rules()[0]
    wins = {one.action: (one, before - bench.total(changed)) for one, changed in made if changed is not None}
    better = sorted(wins, key=lambda name: -wins[name][1])
    kept = sorted(compatible([known[name] for name in better]), key=lambda action: wins[action.id][0].step)
    if len(kept) < 2:
        return []
    for action in kept:
        now = wins[action.id][0].make(now) or now
    apart = sum(wins[action.id][1] for action in kept)
    names = ", ".join(action.id for action in kept)
    won = units.format_seconds(before - bench.total(now))
    return [Text(f"{names} together win {won}; one by one they add up to {units.format_seconds(apart)}.")]
