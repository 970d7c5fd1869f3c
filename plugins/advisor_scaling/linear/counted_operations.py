"""Operation counts of a program that was run with counters at a few sizes, as expressions of its parameters.

The instrumentation runs of the source (section 2.1): another plugin's service ``operation_formulas`` inserts the
counters, builds and runs, and composes the formulas of loops, branches and calls, which the runs bear out. Only where
they do not, or where nobody but ``operation_counts`` serves, the counts of the runs are fitted.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.model.errors import PluginError, UsageError
from advisor_scaling import collect, equations, study, targets
from advisor_scaling.linear import derived_counts, exact_counts, polynomials
from advisor_scaling.linear.mpi_messages import sum_messages
from advisor_scaling.study import MeasuredSeries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import sympy

    from advisor.extension.commands import CommandServices
    from advisor_scaling.linear.application import Column
    from advisor_scaling.study import ScalingStudy

#: Operations of the source and how many of arithmetic each is.
_ARITHMETIC: Final = {"fp_add": 1, "fp_mul": 1, "fp_fma": 2, "fp_div": 1}
#: A place for a value in the command.
_PLACE: Final = re.compile(r"\{(\w+)\}")
#: What becomes a column of X; the loops are only shown.
_COLUMNS: Final = tuple(
    MeasuredSeries(name, "count", "")
    for name in ("operations per processor", "messages per processor", "bytes per processor")
)


def count_operations(
    sources: Sequence[Path], command: Sequence[str], at: str, services: CommandServices
) -> tuple[tuple[str, ...], dict[Column, sympy.Expr], dict[str, str], tuple[str, ...]]:
    """Return the parameters, the columns of X, the iterations of each loop as equations in words, and what is missing.

    ``command`` is run at each combination of the values in ``at`` ("N=32,64,96 P=1,2"), with ``{N}`` and ``{P}`` in it
    replaced. ``UsageError`` where there is too little to go by; what the service raises goes through.
    """
    asked = targets.parse_target(at)
    if not command or not any("{" in word for word in command):
        raise UsageError("say what to run after --, with places for the values: -- mpirun -n {P} ./solver {N}")
    for name in asked:
        if not any("{" + name + "}" in word for word in command):
            raise UsageError(f"--at gives values of {name}, but {{{name}}} stands nowhere in the command")
    left = [name for word in command for name in _PLACE.findall(word) if name not in asked]
    if left:
        raise UsageError(f"{{{left[0]}}} stands in the command, but --at gives no values of {left[0]}")
    places = list(product(*asked.values()))
    points = [dict(zip(asked, place, strict=True)) for place in places]
    exact = _find_formulas(services, sources, command, points)
    if exact is not None:
        return exact
    service = services.find_service("operation_counts")
    observed, unknown = [], dict[str, None]()
    with services.show_progress("counting operations", len(places)) as done:
        for number, values in enumerate(points, start=1):
            counted = service(list(sources), [_fill_places(word, values) for word in command])
            series, missing = _build_series(counted)
            observed.append((values, series))
            unknown |= dict.fromkeys(missing)
            done(number)
    return _fit_counts(observed, unknown)


def _find_formulas(
    services: CommandServices, sources: Sequence[Path], command: Sequence[str], points: Sequence[dict[str, float]]
) -> tuple[tuple[str, ...], dict[Column, sympy.Expr], dict[str, str], tuple[str, ...]] | None:
    """Return what the sources say by themselves, checked at the points; None where nobody derives it.

    Where a formula was not borne out by a run, all are given up for fits; it is said which.
    """
    try:
        service = services.find_service("operation_formulas")
    except PluginError:
        return None
    with services.show_progress("counting operations", len(points)) as done:
        found: Any = service(list(sources), list(command), points, show=done)
    formulas = found["formulas"]
    if formulas is None or not formulas["exact"]:
        observed, unknown = [], dict[str, None]()
        for values, counted in zip(points, found["runs"], strict=True):
            series, missing = _build_series(counted)
            observed.append((values, series))
            unknown |= dict.fromkeys(missing)
        which = ", ".join(formulas["inexact"]) if formulas is not None else "too many calls"
        note = f"fitted, since the source does not tell all counts exactly ({which or 'blocks outside of loops'})"
        names, columns, loops, missing = _fit_counts(observed, unknown)
        return names, columns, loops, (note, *missing)
    return exact_counts.convert_formulas(formulas, points)


def _fit_counts(
    observed: Sequence[tuple[dict[str, float], dict[MeasuredSeries, float]]], unknown: Mapping[str, None]
) -> tuple[tuple[str, ...], dict[Column, sympy.Expr], dict[str, str], tuple[str, ...]]:
    each = collect.build_study("counted", list(observed), (), 0.0)
    found = _build_expressions(each)
    columns = {series.name for series in _COLUMNS}
    return (
        each.parameters,
        {derived_counts.SERIES[name]: found[name][0] for name in found if name in columns},
        {name: words for name, (_, words) in found.items() if name not in columns},
        tuple(f"the bytes of {call} are not known; state them in --model" for call in unknown),
    )


def _build_expressions(each: ScalingStudy) -> dict[str, tuple[sympy.Expr, str]]:
    """Return the expression of each series, and its words: the exact one, where there is one, else what fits best."""
    fits = study.fit_study(each)
    found = {}
    for k, series in enumerate(each.series):
        exact = polynomials.find_exact_polynomial(each.parameters, each.points, np.nanmean(each.values[k], axis=1))
        if exact is not None:
            found[series.name] = exact, polynomials.format_polynomial(exact)
        else:
            equation = equations.build_equation(fits, k, series.name)
            words = equations.export_equation(equation, "text").partition(" = ")[2]
            found[series.name] = derived_counts.to_expression(equation), words
    return found


def _fill_places(word: str, values: Mapping[str, float]) -> str:
    for name, value in values.items():
        word = word.replace("{" + name + "}", f"{value:g}")
    return word


def _build_series(counted: object) -> tuple[dict[MeasuredSeries, float], tuple[str, ...]]:
    """Return operations, messages and bytes of one processor, and the iterations of each loop on it: means of ranks.

    Beside them stand the calls whose bytes are not known; then there are no bytes.
    """
    document: Any = counted
    ranks = max(int(document["ranks"]), 1)
    sent, moved, unknown = sum_messages(document)
    operations = sum(
        times * loop["totals"].get(unit, 0) for loop in document["loops"] for unit, times in _ARITHMETIC.items()
    )
    found = dict(zip(_COLUMNS, (operations / ranks, sent, 0.0 if unknown else moved), strict=True))
    for loop in document["loops"]:
        name = f"{loop['function']}: {loop['name']}"
        found[MeasuredSeries(name, "count", "")] = float(np.sum(loop["iterations"])) / ranks
    return found, unknown
