"""What ``gapwatch whatif`` shows for an application model: each change simulated, its side effects, and a plan."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from advisor import bounds, gaps, rules
from advisor.documents import suggestion
from advisor.errors import UsageError
from advisor.reports import Column, Report, Table, Text
from advisor_simulation.mds.costs import costs_of
from advisor_simulation.mds.report import by_kind
from advisor_simulation.mds.run import simulate
from advisor_simulation.model.checks import read
from advisor_simulation.whatif.model_changes import CHANGES, Setting
from advisor_simulation.whatif.plan import Candidate, Taken, plan

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from advisor.commands import Services
    from advisor.machines import Machine
    from advisor.model import Profile
    from advisor.reports import Cell, Part
    from advisor_simulation.model.records import Model

#: The gaps that are shown, with those parts of C' that the source counts as unmodelled.
SHOWN = ("C'", "false sharing", "migration", "O", "P", "L", "M'", "D", "S'", "W")


class Bench:
    """Simulates models, each of them once."""

    def __init__(self, folder: Path, machine: Machine | None, processors: int) -> None:
        self.folder, self.machine, self.processors = folder, machine, processors
        self._known: dict[int, tuple[Model, Profile]] = {}

    def profile(self, model: Model) -> Profile:
        """Return the simulated run of a model."""
        if id(model) not in self._known:
            found = simulate(model, self.folder, self.machine, self.processors).profile
            self._known[id(model)] = (model, found)
        return self._known[id(model)][1]

    def total(self, model: Model) -> float:
        """Return the simulated time of a model, seconds."""
        return self.profile(model).actual_s

    def gaps(self, model: Model) -> dict[str, float]:
        """Return the gaps of a model, seconds; C' without false sharing and migration, which stand beside it."""
        profile = self.profile(model)
        found = {gap.name: gap.seconds for gap in gaps.attribute(profile, bounds.compute(profile))}
        kinds = by_kind(profile)
        parts = {kind: kinds.get(kind, 0.0) for kind in ("false sharing", "migration")}
        found["C'"] = found.get("C'", 0.0) - sum(parts.values())
        return found | parts


def candidates(setting: Setting) -> list[Candidate[Model]]:
    """Return everything that can be done to a model."""
    return [Candidate(name, title, step, partial(_made, change, setting)) for name, title, step, change in CHANGES]


def _made(change: Callable[[Model, Setting], Model | None], setting: Setting, model: Model) -> Model | None:
    return change(model, setting)


@lru_cache(maxsize=1)
def back_arrows() -> tuple[tuple[int, int], ...]:
    """Return the arrows of figure 6 that lead to earlier steps."""
    book = rules.load_default((), examples=False)
    return tuple((arrow.from_, arrow.to) for arrow in book.arrows if arrow.to < arrow.from_)


def best_plan(
    model: Model, bench: Bench, setting: Setting, progress: Callable[[int], None] = lambda done: None
) -> tuple[Taken[Model], ...]:
    """Return the changes that win most, step by step."""
    return plan(model, bench.total, candidates(setting), back_arrows(), progress=progress)


def report(args: Namespace, services: Services) -> Report:
    """Return the changes of a model, what each wins, and the plan that was asked for."""
    model = read(args.path)
    machine = services.machine(args.machine)
    bench = Bench(args.path.parent, machine, args.processors)
    setting = Setting(args.path.parent, args.processors, costs_of(model, machine, args.processors).line)
    asked = _asked(candidates(setting), args.action)
    parts: list[Part] = [Text(f"The model takes {bench.total(model):.6g} s on {args.processors} processors.")]
    with services.working("simulating changes", len(asked)) as progress:
        made = []
        for number, candidate in enumerate(asked):
            made.append((candidate, candidate.make(model)))
            progress(number)
        parts.append(_effects(model, bench, made))
    if len(args.action or ()) > 1:
        parts.append(_joint(model, bench, made))
    if args.plan:
        with services.working("searching a plan") as progress:
            parts.append(_planned(best_plan(model, bench, setting, progress)))
    return Report(f"What if: {model.name}", tuple(parts))


def _asked(known: Sequence[Candidate[Model]], names: Sequence[str] | None) -> list[Candidate[Model]]:
    by_name = {one.action: one for one in known}
    for name in names or ():
        if name not in by_name:
            raise UsageError(
                f"models can't be changed by {name!r}{suggestion(name, by_name)}; known: {', '.join(by_name)}"
            )
    return [by_name[name] for name in names] if names else list(known)


def _effects(model: Model, bench: Bench, made: Sequence[tuple[Candidate[Model], Model | None]]) -> Table:
    """Return what each change wins, and by how much each gap grows or shrinks."""
    before = bench.gaps(model)
    columns = (Column("action"), Column("change"), Column("wins", "s"), *(Column(name, "s") for name in SHOWN))
    rows: list[tuple[Cell, ...]] = []
    for candidate, changed in made:
        if changed is None:
            rows.append((candidate.action, f"{candidate.title}: nothing to change", None, *(None for _ in SHOWN)))
            continue
        after = bench.gaps(changed)
        moved = tuple(after.get(name, 0.0) - before.get(name, 0.0) for name in SHOWN)
        rows.append((candidate.action, candidate.title, bench.total(model) - bench.total(changed), *moved))
    return Table("Changes, and what becomes of the gaps", columns, tuple(rows))


def _joint(model: Model, bench: Bench, made: Sequence[tuple[Candidate[Model], Model | None]]) -> Text:
    """Return what the changes win together, made one after the other in the order of their steps."""
    before, now = bench.total(model), model
    apart = sum(before - bench.total(changed) for _, changed in made if changed is not None)
    for candidate, _ in sorted(made, key=lambda pair: pair[0].step):
        now = candidate.make(now) or now
    return Text(f"Together they win {before - bench.total(now):.4g} s; one by one they add up to {apart:.4g} s.")


def _planned(taken: Sequence[Taken[Model]]) -> Table:
    columns = (Column("step"), Column("action"), Column("change"), Column("wins", "s"), Column("then", "s"))
    rows = tuple(
        (one.candidate.step, one.candidate.action, one.candidate.title, one.before_s - one.after_s, one.after_s)
        for one in taken
    )
    return Table("Plan", columns, rows)
