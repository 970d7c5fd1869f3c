"""From options to linear models: which counts, which costs, at which points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import UsageError
from advisor_scaling import targets
from advisor_scaling.linear import application, derived_counts, expressions, model
from advisor_scaling.linear.application import ApplicationModel, Column, MemorySizes, machine_sizes
from advisor_scaling.linear.linear_sections import MeasuredTimes

if TYPE_CHECKING:
    import sympy

    from advisor.analysis.machines import Machine
    from advisor.model.records import FloatArray
    from advisor_scaling.linear.counted_operations import CountedProgram
    from advisor_scaling.linear.model import LinearModel
    from advisor_scaling.study import ScalingStudy


def replace_counts(stated: ApplicationModel | None, counted: CountedProgram, name: str) -> ApplicationModel:
    """Return the application model with counted columns in place of its own; one of them alone where there is none."""
    texts = {column: expressions.format_expression(formula) for column, formula in counted.columns.items()}
    data = "" if counted.data is None else expressions.format_expression(counted.data)
    if stated is None:
        return application.ApplicationModel(name, counted.parameters, dict(texts), data=data)
    if set(stated.parameters) != set(counted.parameters):
        asked = ", ".join(counted.parameters)
        raise UsageError(f"the model has the parameters {', '.join(stated.parameters)}, --at {asked}")
    return replace(stated, counts={**stated.counts, **texts}, data=stated.data or data)


def select_measured_times(each: ScalingStudy) -> MeasuredTimes:
    """Return the times of the study's first series, the mean of the repeats."""
    return MeasuredTimes(each.points, np.nanmedian(each.values[0], axis=1))


def build_models(
    stated: ApplicationModel | None, each: ScalingStudy | None, runs: MeasuredTimes | None, machines: Sequence[Machine]
) -> tuple[LinearModel, ...]:
    """Return a model for each machine, or the one whose costs fit the runs."""
    if stated is None and each is not None:
        return (_build_from_counts(each, runs, machines),)
    if stated is None:
        raise UsageError("nothing to make a model of: name runs or an application model")
    if machines:
        return tuple(
            model.LinearModel(
                stated.parameters, application.build_counts(stated, machine_sizes(machine)),
                model.machine_costs(machine, stated),
                machine.name,
            )
            for machine in machines
        )  # fmt: skip
    if runs is None or each is None:
        raise UsageError("costs come from runs or from --machine; there is neither")
    return (_fit_stated_model(stated, each, runs),)


def describe_memory(stated: ApplicationModel | None, machine: Machine) -> list[str]:
    """Return what is assumed or not known about paging on a machine, for an application with arrays."""
    if stated is None or not stated.arrays:
        return []
    if machine_sizes(machine).memory is None:
        return [f"The machine model {machine.name} does not say how much memory there is: paging is left out."]
    stated_cost = "page_faults" in stated.costs or (machine.memory is not None and machine.memory.page_fault)
    if stated_cost:
        return []
    return [f"A page fault is taken for {model.PAGE_FAULT_S * 1e6:g} us, which {machine.name} does not state."]


def enlarge_sizes(
    stated: ApplicationModel | None, each: LinearModel, machine: Machine | None
) -> dict[str, LinearModel]:
    """Return the model with twice the cache, and with twice the memory, of the machine (None: this host).

    Only of what is known: a size, and what a miss or a page fault costs. Arrays of the application decide what fits.
    """
    if stated is None or not stated.arrays:
        return {}
    sizes = machine_sizes(machine) if machine is not None else _host_sizes()
    wider: dict[str, MemorySizes] = {}
    if sizes.cache and "misses" in each.columns:
        wider["cache"] = replace(sizes, cache=2 * sizes.cache)
    if sizes.memory and "page_faults" in each.columns:
        wider["memory"] = replace(sizes, memory=2 * sizes.memory)
    return {name: replace(each, x=application.build_counts(stated, size)) for name, size in wider.items()}


def _fit_stated_model(stated: ApplicationModel, each: ScalingStudy, runs: MeasuredTimes) -> LinearModel:
    """Return the application model with costs fitted to the runs; caches are those of the machine they ran on."""
    if set(stated.parameters) != set(each.parameters):
        raise UsageError(
            f"the model has the parameters {', '.join(stated.parameters)}, the runs {', '.join(each.parameters)}; they "
            "must be the same"
        )
    order = [each.parameters.index(name) for name in stated.parameters]
    counts = application.build_counts(stated, _host_sizes())
    known = {column: cost for column, cost in stated.costs.items() if column in counts}
    found = model.fit_costs(counts, stated.parameters, runs.points[:, order], runs.seconds, known)
    return replace(found, name=stated.name)


def _host_sizes() -> MemorySizes:
    from advisor.analysis import machines

    return machine_sizes(machines.load_host_machine())


def _build_from_counts(each: ScalingStudy, runs: MeasuredTimes | None, machines: Sequence[Machine]) -> LinearModel:
    counts = derived_counts.derive_counts(each)
    if not counts:
        raise UsageError(
            "the runs hold no counts of operations or messages; count them (gapwatch count), record a trace, or state "
            "them by --model"
        )
    plain = application.ApplicationModel(each.program, each.parameters, dict.fromkeys(counts, "1"))
    if machines:
        return model.LinearModel(each.parameters, counts, model.machine_costs(machines[0], plain), machines[0].name)
    if runs is None:
        raise UsageError("costs come from runs or from --machine; there is neither")
    return replace(
        model.fit_costs(_add_constant(counts), each.parameters, runs.points, runs.seconds), name=each.program
    )


def _add_constant(counts: dict[Column, sympy.Expr]) -> dict[Column, sympy.Expr]:
    """Return the counts with one loop that is always started, so that what never changes has a place."""
    return counts if "loops" in counts else {**counts, "loops": expressions.require_sympy().Integer(1)}


def prediction_points(each: LinearModel, runs: ScalingStudy | None, texts: Sequence[str]) -> FloatArray:
    """Return the points to predict (t, m): those requested, else the largest one measured."""
    found: list[FloatArray] = []
    for text in texts:
        asked = targets.parse_target(text)
        if missing := [name for name in each.parameters if name not in asked and runs is None]:
            raise UsageError(f"--predict must also say {', '.join(missing)}")
        largest = _largest_point(each, runs)
        axes = [asked.get(name, (largest.get(name, 1.0),)) for name in each.parameters]
        found.append(np.array(list(product(*axes)), dtype=float))
    if found:
        return np.concatenate(found)
    if runs is None:
        raise UsageError("say where to predict: --predict 'P=64 N=4096'")
    return np.array([[_largest_point(each, runs).get(name, 1.0) for name in each.parameters]])


def _largest_point(each: LinearModel, runs: ScalingStudy | None) -> dict[str, float]:
    if runs is None:
        return {}
    return {name: float(runs.points[:, at].max()) for at, name in enumerate(runs.parameters)}
