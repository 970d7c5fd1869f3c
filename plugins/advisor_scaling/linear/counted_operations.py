"""Operation counts of a program that was run with counters at a few sizes, as expressions of its parameters.

The instrumentation runs of the source (section 2.1): another plugin's service ``operation_formulas`` inserts the
counters, builds and runs, and composes the formulas of loops, branches and calls, which the runs bear out. Only where
they do not, or where nobody but ``operation_counts`` serves, the counts of the runs are fitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.model.errors import PluginError, UsageError
from advisor.model.lists import join_names
from advisor_scaling import collect, equations, study, targets
from advisor_scaling.linear import derived_counts, expressions, polynomials
from advisor_scaling.study import MeasuredSeries, ScalingStudy

if TYPE_CHECKING:
    import sympy

    from advisor.extension.commands import CommandServices
    from advisor_scaling.linear.application import Column

_COUNTED: Final[dict[str, Column]] = {"operations": "operations", "messages": "messages", "bytes": "bytes"}

#: Calls in which a process sends one message to another, by where the number of values stands in them.
_TO_ONE: Final = {
    **dict.fromkeys(("MPI_Send", "MPI_Isend", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend", "MPI_Issend", "MPI_Ibsend"), 1),
    "MPI_Sendrecv": 1,
    "MPI_Sendrecv_replace": 1,
}
#: Operations of all processes that go as a tree: so many rounds as doubling takes from one process to all.
_TREES: Final = {"MPI_Bcast": 1, "MPI_Reduce": 2, "MPI_Allreduce": 2, "MPI_Barrier": None}
#: Operations in which each process sends to each other one.
_TO_ALL: Final = {"MPI_Alltoall": 1, "MPI_Allgather": 1}
_SIZES: Final = {
    **dict.fromkeys(("MPI_CHAR", "MPI_BYTE", "MPI_SIGNED_CHAR", "MPI_UNSIGNED_CHAR", "MPI_INT8_T", "MPI_UINT8_T"), 1),
    **dict.fromkeys(("MPI_SHORT", "MPI_UNSIGNED_SHORT", "MPI_INT16_T", "MPI_UINT16_T"), 2),
    **dict.fromkeys(("MPI_INT", "MPI_UNSIGNED", "MPI_FLOAT", "MPI_INT32_T", "MPI_UINT32_T"), 4),
    **dict.fromkeys(("MPI_DOUBLE", "MPI_LONG", "MPI_UNSIGNED_LONG", "MPI_LONG_LONG", "MPI_INT64_T", "MPI_UINT64_T"), 8),
    **dict.fromkeys(("MPI_C_DOUBLE_COMPLEX", "MPI_DOUBLE_COMPLEX"), 16),
}
_KINDS: Final[tuple[tuple[dict[str, Any], Callable[[int], int]], ...]] = (
    (_TO_ONE, lambda ranks: 1 if ranks > 1 else 0),
    (_TREES, lambda ranks: (ranks - 1).bit_length()),
    (_TO_ALL, lambda ranks: ranks - 1),
)
#: Operations of the source and how many of arithmetic each is.
_ARITHMETIC: Final = {"fp_add": 1, "fp_mul": 1, "fp_fma": 2, "fp_div": 1}
#: What is named of several, at most.
_SHOWN: Final = 3
#: A place for a value in the command.
_PLACE: Final = re.compile(r"\{(\w+)\}")
#: What becomes a column of X; the loops are only shown.
_COLUMNS: Final = tuple(
    MeasuredSeries(name, "count", "")
    for name in ("operations per processor", "messages per processor", "bytes per processor")
)


@dataclass(frozen=True, slots=True)
class CountedProgram:
    """The parameters of a program, the columns of X, iterations of each loop as equations in words, and what to know.

    ``data`` are the bytes of all data on a processor, None where they are not known.
    """

    parameters: tuple[str, ...]
    columns: dict[Column, sympy.Expr]
    loops: dict[str, str]
    notes: tuple[str, ...]
    data: sympy.Expr | None = None


def count_operations(
    sources: Sequence[Path], command: Sequence[str], at: str, services: CommandServices
) -> CountedProgram:  # fmt: skip
    """Return the counts of a program.

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
) -> CountedProgram | None:
    """Return the formulas derived from the sources, checked at the points; None if they can't be derived.

    Blocks whose formulas the runs do not bear out are symbols in them, like what data decide.
    """
    try:
        service = services.find_service("operation_formulas")
    except PluginError:
        return None
    with services.show_progress("counting operations", len(points)) as done:
        found: Any = service(list(sources), list(command), points, show=done)
    formulas = found["formulas"]
    if formulas is None:
        observed, unknown = [], dict[str, None]()
        for values, counted in zip(points, found["runs"], strict=True):
            series, missing = _build_series(counted)
            observed.append((values, series))
            unknown |= dict.fromkeys(missing)
        note = "fitted, since there are too many contexts of calls to tell all counts from the source"
        fitted = _fit_counts(observed, unknown)
        return replace(fitted, notes=(note, *fitted.notes))
    return convert_formulas(formulas, points)


def _fit_counts(
    observed: Sequence[tuple[dict[str, float], dict[MeasuredSeries, float]]], unknown: Mapping[str, None]
) -> CountedProgram:
    each = collect.build_study("counted", list(observed), (), 0.0)
    found = _build_expressions(each)
    columns = {series.name for series in _COLUMNS}
    return CountedProgram(
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


def sum_messages(document: Any) -> tuple[float, float, tuple[str, ...]]:  # noqa: ANN401 (JSON)
    """Return messages and bytes that a process sends on average, and calls whose bytes the source does not determine.

    ``document`` is what the service ``operation_counts`` gives. A tree of P processes counts as log2(P) messages,
    rounded up (M. Clement, M. Quinn 1995).
    """
    ranks = max(int(document["ranks"]), 1)
    total = moved = 0.0
    unknown: list[str] = []
    for block in document["blocks"]:
        for call in block["calls"]:
            places, rounds = next(((places, of) for places, of in _KINDS if call["name"] in places), ({}, None))
            if rounds is None:
                continue
            sent = rounds(ranks) * sum(block["executions"]) / ranks
            size = _call_bytes(call, places[call["name"]])
            total += sent
            if size is not None:
                moved += sent * size
            elif sent:
                unknown.append(f"{call['name']} at {block['file']}:{block['line']}")
    return total, moved, tuple(dict.fromkeys(unknown))


def _call_bytes(call: Any, place: int | None) -> float | None:  # noqa: ANN401 (JSON)
    """Return the mean bytes of a call whose number of values stands at a place, None where it is not known."""
    if place is None:
        return 0.0
    if len(call["arguments"]) < place + 2:
        return None
    size, count = _SIZES.get(call["arguments"][place + 1]), call["means"][place]
    return None if size is None or count is None else max(size * count, 0.0)


def convert_formulas(formulas: Mapping[str, Any], points: Sequence[Mapping[str, float]]) -> CountedProgram:
    """Return the counts that formulas of a program are.

    A symbol that stands for what data decide is replaced in the columns by what fits its values in the runs, and named.
    """
    parameters = tuple(points[0])
    table, notes = fit_opaque(formulas["opaque"], points)
    columns = {
        _COUNTED[name]: each.subs(table)
        for name, each in formulas["columns"].items()
        if name in _COUNTED and each != 0 and not (name == "bytes" and formulas["unknown"])
    }
    loops = {name: polynomials.format_polynomial(each) for name, each in formulas["loops"].items()}
    missing = tuple(f"the bytes of {call} are not known; state them in --model" for call in formulas["unknown"])
    data = formulas["data"]
    unsized = (
        (f"how much data there are is not known: {join_names(formulas['unsized'], _SHOWN)}",) if data is None else ()
    )
    notes = (*notes, *missing, *formulas["uncertain"], *unsized)
    return CountedProgram(parameters, columns, loops, notes, None if data is None else data.subs(table))


def fit_opaque(
    opaque: Mapping[str, Sequence[float]], points: Sequence[Mapping[str, float]]
) -> tuple[dict[sympy.Symbol, sympy.Expr], tuple[str, ...]]:
    """Return what symbols are replaced by, fits of their values in the runs, and how that is known."""
    if not opaque:
        return {}, ()
    observed = [
        (dict(values), {MeasuredSeries(name, "count", ""): each[at] for name, each in opaque.items()})
        for at, values in enumerate(points)
    ]
    found = collect.build_study("measured", observed, (), 0.0)
    fits = study.fit_study(found)
    table, notes = {}, []
    for k, series in enumerate(found.series):
        exact = polynomials.find_exact_polynomial(found.parameters, found.points, np.nanmean(found.values[k], axis=1))
        fitted = exact if exact is not None else derived_counts.to_expression(equations.build_equation(fits, k, ""))
        table[expressions.make_symbol(series.name)] = fitted
        how = "meets all runs" if exact is not None else "was fitted to the runs"
        notes.append(
            f"{series.name}, which data decide, is {min(opaque[series.name]):.4g} to {max(opaque[series.name]):.4g}; "
            f"{polynomials.format_polynomial(fitted)} {how}"
        )
    return table, tuple(notes)
