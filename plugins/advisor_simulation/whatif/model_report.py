"""What ``gapwatch whatif`` shows for an application model: each change simulated, its side effects, and a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice import rules
from advisor.analysis import bounds, gaps
from advisor.model import units
from advisor.model.reports import Cell, Column, Part, Report, Table, Text
from advisor_simulation.mds.costs import resolve_costs
from advisor_simulation.mds.report import coherence_seconds, describe_missing_inputs, make_profile_reader
from advisor_simulation.mds.run import SimulatedRun, simulate_model
from advisor_simulation.model.checks import read_model, resolve_processors
from advisor_simulation.whatif.modelled.change_table import CHANGES, OF_MODELS, ModelChange
from advisor_simulation.whatif.modelled.setting import ModelSetting
from advisor_simulation.whatif.plan import Candidate, PlanStep, search_plan
from advisor_simulation.whatif.run_report import (
    build_plan_table,
    describe_conflicts,
    require_actions,
    select_compatible,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.advice.rules.records import Action
    from advisor.analysis.machines import Machine
    from advisor.extension.commands import CommandServices
    from advisor.model.records import IntArray, Profile
    from advisor_simulation.model.records import Model
    from advisor_simulation.model.world import Profiles

#: What is shown of a run: computation and gaps, with those parts of C' that the source counts as unmodelled.
SHOWN_PARTS: Final = ("computation", "C'", "false sharing", "migration", "O", "P", "L", "M'", "D", "S'", "W")
#: Less than this share of the run is no change of a gap.
LITTLE: Final = 1e-6
_WINS: Final = (Column("action"), Column("change"), Column("wins", "s"))


class ModelBench:
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
        self._known: dict[int, tuple[Model, SimulatedRun]] = {}

    def simulated_run(self, model: Model) -> SimulatedRun:
        """Return the simulated run of a model, with its log."""
        if id(model) not in self._known:
            found = simulate_model(
                model, self.folder, self.machine, self.processors, self.finite, profiles=self.profiles
            )
            self._known[id(model)] = (model, found)
        return self._known[id(model)][1]

    def simulated_profile(self, model: Model) -> Profile:
        """Return the simulated run of a model."""
        return self.simulated_run(model).profile

    def total_seconds(self, model: Model) -> float:
        """Return the simulated time of a model, seconds."""
        return self.simulated_profile(model).actual_s

    def word_flow(self, model: Model) -> IntArray:
        """Return the words that each processor reads after each other one wrote them (P, P)."""
        flows = self.simulated_run(model).log.flows.values()
        nothing = np.zeros((self.processors, self.processors), dtype=np.int64)
        return sum((flow.words for flow in flows), start=nothing)

    def build_setting(self, model: Model) -> ModelSetting:
        """Return what changes of a model have to know of where it runs."""
        costs = resolve_costs(model, self.machine, self.processors)
        return ModelSetting(self.folder, self.processors, costs.line, costs.node, self.word_flow, self.profiles)

    def compute_gaps(self, model: Model) -> dict[str, float]:
        """Return the computation and the gaps of a model, seconds.

        Computation is the I bound, with what comes from memory. C' is without false sharing and migration, which
        stand beside it.
        """
        profile = self.simulated_profile(model)
        levels = bounds.compute_bounds(profile)
        found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(profile, levels)}
        found["computation"] = next((level.seconds for level in levels if level.name == "I" and level.seconds), 0.0)
        kinds = coherence_seconds(profile)
        parts = {kind: kinds.get(kind, 0.0) for kind in ("false sharing", "migration")}
        found["C'"] = found.get("C'", 0.0) - sum(parts.values())
        return found | parts


def build_candidates(setting: ModelSetting) -> list[Candidate[Model]]:
    """Return everything that can be done to a model, by the first action that says so."""
    return [_build_candidate(change, change.actions[0], setting) for change in CHANGES]


def _build_candidate(change: ModelChange, action: str, setting: ModelSetting) -> Candidate[Model]:
    make = partial(_make_change, change.make, setting)
    return Candidate(action, change.title, change.step, make, load_rules()[0][action].conflicts)


def _make_change(
    change: Callable[[Model, ModelSetting], Model | None], setting: ModelSetting, model: Model
) -> Model | None:
    return change(model, setting)


@lru_cache(maxsize=1)
def load_rules() -> tuple[Mapping[str, Action], tuple[tuple[int, int], ...]]:
    """Return the actions of the rules, and the arrows of figure 6 that lead to earlier steps."""
    book = rules.load_default((), examples=False)
    arrows = tuple((arrow.from_, arrow.to) for arrow in book.arrows if arrow.to < arrow.from_)
    return {action.id: action for action in book.actions}, arrows


def search_model_plan(
    model: Model, bench: ModelBench, setting: ModelSetting, progress: Callable[[int], None] = lambda done: None
) -> tuple[PlanStep[Model], ...]:
    """Return the changes that win most, step by step."""
    return search_plan(model, bench.total_seconds, build_candidates(setting), load_rules()[1], progress=progress)


def build_report(args: Namespace, services: CommandServices) -> Report:
    """Return the changes of a model, the gain of each, and the requested plan."""
    model = read_model(args.path)
    count = resolve_processors(model, args.processors)
    bench = ModelBench(
        args.path.parent, services.load_machine(args.machine), count, args.finite, make_profile_reader(services)
    )
    setting = bench.build_setting(model)
    asked, impossible = _select_candidates(setting, args.action)
    total, processors = units.format_seconds(bench.total_seconds(model)), units.format_count(count, "processor")
    parts: list[Part] = [Text(f"The model takes {total} on {processors}."), *describe_missing_inputs(model)]
    parts += [Text(f"{note.text[:1].upper()}{note.text[1:]}.") for note in bench.simulated_profile(model).notes]
    made = []
    with services.show_progress("simulating changes", len(asked)) as progress:
        for number, candidate in enumerate(asked, 1):
            made.append((candidate, candidate.make(model)))
            bench.total_seconds(made[-1][1] or model)
            progress(number)
    parts += _effect_parts(model, bench, made)
    parts += [Text(f"{name} can't be tried on a model: {reason}.") for name, reason in impossible.items()]
    if len(asked) > 1 and args.action:
        parts += _joint_parts(model, bench, made)
        parts += describe_conflicts([load_rules()[0][candidate.action] for candidate in asked])
    if args.plan:
        with services.show_progress("searching a plan") as progress:
            parts.append(build_plan_table(search_model_plan(model, bench, setting, progress)))
    return Report(f"What if: {model.name}", tuple(parts))


def _select_candidates(
    setting: ModelSetting, names: Sequence[str] | None
) -> tuple[list[Candidate[Model]], dict[str, str]]:
    """Return the requested changes of a model, and why some are impossible; UsageError for unknown actions."""
    if not names:
        return build_candidates(setting), {}
    by_name = {name: change for change in CHANGES for name in change.actions}
    found, impossible = [], {}
    for action in require_actions(load_rules()[0], names):
        if action.id in by_name:
            found.append(_build_candidate(by_name[action.id], action.id, setting))
        else:
            impossible[action.id] = "; ".join(dict.fromkeys(OF_MODELS[word] for word in action.change.items()))
    return found, impossible


def _effect_parts(model: Model, bench: ModelBench, made: Sequence[tuple[Candidate[Model], Model | None]]) -> list[Part]:
    """Return what each change wins, and by how much each gap grows or shrinks; gaps that none changes are left out."""
    before, total = bench.compute_gaps(model), bench.total_seconds(model)
    wins: list[tuple[Cell, ...]] = []
    moved: dict[str, dict[str, float]] = {}
    for candidate, changed in made:
        won = total - bench.total_seconds(changed) if changed is not None else None
        margin = model.error * total
        interval = (None, None) if won is None else (won - margin, won + margin)
        wins.append((candidate.action, candidate.title, won, *(interval if model.error else ())))
        if changed is not None:
            after = bench.compute_gaps(changed)
            moved[candidate.action] = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in SHOWN_PARTS}
    names = [name for name in SHOWN_PARTS if any(abs(one[name]) > LITTLE * total for one in moved.values())]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (action, *(one[name] for name in names)) for action, one in moved.items()
    )
    columns = (Column("action"), *(Column(name, "s") for name in names))
    heads = (*_WINS, *((Column("from", "s"), Column("to", "s")) if model.error else ()))
    what = Table("What changes win; - where there is nothing to change", heads, tuple(wins))
    return [what, Table("Computation and gaps after the change", columns, rows)] if rows else [what]


def _joint_parts(model: Model, bench: ModelBench, made: Sequence[tuple[Candidate[Model], Model | None]]) -> list[Part]:
    """Return what the changes win together, in the order of their steps, and only the better one of a conflict."""
    before, now, known = bench.total_seconds(model), model, load_rules()[0]
    wins = {one.action: (one, before - bench.total_seconds(changed)) for one, changed in made if changed is not None}
    better = sorted(wins, key=lambda name: -wins[name][1])
    kept = sorted(select_compatible([known[name] for name in better]), key=lambda action: wins[action.id][0].step)
    if len(kept) < 2:
        return []
    for action in kept:
        now = wins[action.id][0].make(now) or now
    apart = sum(wins[action.id][1] for action in kept)
    names = ", ".join(action.id for action in kept)
    won = units.format_seconds(before - bench.total_seconds(now))
    return [Text(f"{names} together win {won}; one by one they add up to {units.format_seconds(apart)}.")]
