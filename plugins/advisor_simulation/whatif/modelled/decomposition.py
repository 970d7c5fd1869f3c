"""Other decompositions of the domains of a model, and other processors for its sub-domains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.documents import Mark, Marked
from advisor.support.expressions import Expression
from advisor_simulation.model import records
from advisor_simulation.whatif.modelled.setting import ModelSetting, change_each_step, find_parallel_loops, list_reads
from advisor_simulation.whatif.placing import place_by_exchange

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.model.records import Decomposition, Domain, Model, Parallel, Step
    from advisor_simulation.model.world import World

#: Turns of a loop at which weights that change are looked at.
SAMPLES: Final = 5
#: Largest over mean work of the processors, from which on a decomposition is uneven.
UNEVEN: Final = 1.02


def decompose_by_weight(model: Model, setting: ModelSetting) -> Model | None:
    """Cut domains anew by the mean weight of an index: along the lists of neighbours that loops follow, if they do."""
    world = setting.build_world(model)
    cut = {}
    for name in model.domains:
        weight = compute_mean_weight(world, name)
        if _find_graph(model, world, name) is not None or _is_uneven(world, name, weight):
            cut[name] = weight
    return _apply_weights(model, world, cut)


def decompose_equally(model: Model, setting: ModelSetting) -> Model | None:
    """Cut domains along the lists of neighbours that loops follow into equal parts, across few edges."""
    world = setting.build_world(model)
    named = [name for name in model.domains if _find_graph(model, world, name) is not None]
    return _apply_weights(model, world, {name: np.ones(world.sizes[name]) for name in named})


def decompose_critical_loop(model: Model, setting: ModelSetting) -> Model | None:
    """Cut the domain of the loop that loses most for that loop alone."""
    world = setting.build_world(model)
    lost = {}
    for step in find_parallel_loops(model):
        weight = compute_mean_weight(world, step.over.value, step)
        work = np.bincount(world.owner[step.over.value], weight, minlength=world.processors)
        lost[step.parallel] = (float(work.max() - work.mean()), step.over.value, weight)
    if not lost:
        return None
    _, domain, weight = max(lost.values(), key=lambda one: one[0])
    return _apply_weights(model, world, {domain: weight} if _is_uneven(world, domain, weight) else {})


def decompose_each_loop(model: Model, setting: ModelSetting) -> Model | None:
    """Decompose each uneven loop separately, by its own weights."""
    world, made, number = setting.build_world(model), model, 0
    for step in find_parallel_loops(model):
        name = step.over.value
        weight = compute_mean_weight(world, name, step)
        if step.schedule != "static" or not _is_uneven(world, name, weight):
            continue
        number += 1
        other = f"{name}_for_{number}"
        made = replace(made, domains={**made.domains, other: made.domains[name]})
        made = _replace_step(made, step, replace(step, over=Marked(other, step.over.mark)))
        made = _apply_weights(made, setting.build_world(made), {other: weight}) or made
    return made if number else None


def _replace_step(model: Model, old: Step, new: Step) -> Model:
    return change_each_step(model, lambda step: new if step is old else step) or model


def _apply_weights(model: Model, world: World, weights: Mapping[str, FloatArray]) -> Model | None:
    """Return the model with domains cut by these weights of their indices; None where that changes nothing."""
    domains, tables = dict(model.domains), dict(model.tables)
    for name, weight in weights.items():
        domain, table = model.domains[name], f"{name}_weight_{len(tables)}"
        graph = _find_graph(model, world, name)
        kind = domain.decomposition.kind if domain.decomposition else "block"
        if kind == "metis" or (kind == "graph" and not _is_uneven(world, name, weight)):
            continue
        tables[table] = records.Values(tuple(map(float, weight)), model.mark)
        domains[name] = replace(domain, decomposition=_weighted_decomposition(graph, table, domain.mark))
    return replace(model, domains=domains, tables=tables) if len(tables) > len(model.tables) else None


def _weighted_decomposition(graph: str | None, table: str, mark: Mark) -> Decomposition:
    weight = Marked(Expression.parse(f"{table}[i]"), mark)
    if graph is None:
        return records.Decomposition("block", mark, weight=weight)
    return records.Decomposition("graph", mark, graph=Marked(graph, mark), weight=weight)


def _is_uneven(world: World, domain: str, weight: FloatArray) -> bool:
    work = np.bincount(world.owner[domain], weight, minlength=world.processors)
    return float(work.max()) > UNEVEN * float(work.mean())


def _find_graph(model: Model, world: World, domain: str) -> str | None:
    """Return the list of neighbours that loops over a domain follow."""
    for step in find_parallel_loops(model):
        for access in list_reads(step) if step.over.value == domain else ():
            for name in sorted(access.value.names & world.ragged.keys()):
                if world.ragged[name].rows == world.sizes[domain]:
                    return name
    return None


def map_to_nodes(model: Model, setting: ModelSetting) -> Model | None:
    """Give sub-domains to processors so that those that exchange most share a node."""
    if setting.node >= setting.processors:
        return None
    place = place_by_exchange(setting.flow(model), setting.node)
    if (place == np.arange(setting.processors)).all():
        return None
    world = setting.build_world(model)
    domains, tables = dict(model.domains), dict(model.tables)
    for name, domain in model.domains.items():
        table = f"{name}_owner_{len(tables)}"
        tables[table] = records.Values(tuple(map(float, place[world.owner[name]])), domain.mark)
        domains[name] = _explicit_owner(domain, table)
    return replace(model, domains=domains, tables=tables)


def _explicit_owner(domain: Domain, table: str) -> Domain:
    parts = records.Decomposition("explicit", domain.mark, owner=Marked(table, domain.mark))
    return replace(domain, decomposition=parts)


def compute_mean_weight(world: World, domain: str, only: Parallel | None = None) -> FloatArray:
    """Return the weight of each index of a domain over one pass of its loops (or one of them), mean over some turns."""
    index = np.arange(world.sizes[domain], dtype=np.float64)
    total: FloatArray = np.zeros(len(index))
    for step, scope, share in _iterate_executed(world, world.model.control, world.names, 1.0):
        if step.over.value == domain and step.weight is not None and only in (None, step):
            total += share * world.evaluate_values(step.weight, {**scope, step.index: index}, len(index))
    return total if total.any() else np.ones(len(index))


def _iterate_executed(
    world: World, steps: tuple[Step, ...], scope: Mapping[str, object], share: float
) -> Iterator[tuple[Parallel, Mapping[str, object], float]]:
    for step in steps:
        if isinstance(step, records.Parallel):
            yield step, scope, share
        elif isinstance(step, records.Loop):
            times = max(world.evaluate_whole(step.times, scope), 0)
            for turn in np.unique(np.linspace(0, times - 1, min(SAMPLES, times)).astype(int)):
                inner = {**scope, step.index: np.float64(turn)}
                yield from _iterate_executed(world, step.do, inner, share / min(SAMPLES, times))
        elif isinstance(step, records.When):
            yield from _iterate_executed(world, step.do, scope, share)
        elif isinstance(step, records.Call):
            yield from _iterate_executed(world, world.model.procedures[step.call.value], scope, share)
