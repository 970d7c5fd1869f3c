"""The report on an experiment: what it predicts, who hurts whom, what to believe, and what to measure next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.model.reports import Column, HeatMap, Report, Table, Text
from advisor_coupling import noise, planning, sentences
from advisor_coupling.cases import SECONDS
from advisor_coupling.selection import best_length, where_summation_fails
from advisor_coupling.transitions import transitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from advisor.model.reports import Cell, Part, Unit
    from advisor_coupling.cases import Metric
    from advisor_coupling.forecasts import Forecast
    from advisor_coupling.model import CaseModel, Coupling
    from advisor_coupling.results import Document
    from advisor_coupling.selection import Choice
    from advisor_coupling.transitions import Level, Transition

#: So many rows of a table and heat maps of cases are shown.
_ROWS: Final = 25
_MAPS: Final = 6

Models = list["CaseModel"]


def made(
    document: Document,
    models: Mapping[Metric, Models],
    caches: Mapping[int, Sequence[Level]],
    ahead: Sequence[Forecast] = (),
) -> Report:
    """Return the report; ``models`` by metric, seconds first."""
    seconds = next(ones for metric, ones in models.items() if metric.name == SECONDS)
    choice = best_length(seconds)
    moves = transitions(seconds, caches)
    parts: list[Part] = [Text("\n".join(sentences.overview(document, seconds, choice, moves)))]
    parts += [predictions(seconds), *maps(seconds), found(seconds)]
    parts += [lengths(choice, where_summation_fails(seconds))] if choice else []
    parts += [moved(moves, seconds[0])] if moves else []
    parts += [forecast_table(ahead)] if ahead else []
    parts += [next_runs(seconds, choice), *_disturbances(seconds)]
    for metric, ones in models.items():
        if metric.name != SECONDS:
            parts += [predictions(ones), found(ones)]
    return Report(f"Kernel coupling of {document.program}", tuple(parts))


def predictions(models: Sequence[CaseModel]) -> Table:
    """Return the tables 2b to 8c of the source for these cases: measured and predicted, with intervals and errors."""
    metric = models[0].metric
    unit = _unit(metric)
    columns = (
        Column("case"), Column("method"), Column(metric.name, unit), Column("from", unit), Column("to", unit),
        Column("error", "share"), Column("error from", "share"), Column("error to", "share"),
    )  # fmt: skip
    rows = tuple(row for one in models for row in _predicted(one))
    return Table(f"Measured and predicted {metric.name}", columns, rows)


def _predicted(model: CaseModel) -> Iterator[tuple[Cell, ...]]:
    measured = model.application
    if measured:
        yield (model.case.name, "measured", measured.value, _end(measured.low), _end(measured.high), None, None, None)
    for one in model.predictions:
        error = one.error
        shown = (error.value, _end(error.low), _end(error.high)) if error else (None, None, None)
        yield (model.case.name, one.method, one.value.value, _end(one.value.low), _end(one.value.high), *shown)


def _unit(metric: Metric) -> Unit:
    return "s" if metric.name == SECONDS else ""


def _end(value: float) -> float | None:
    return None if value != value else value


def maps(models: Sequence[CaseModel]) -> Iterator[HeatMap]:
    """Yield the matrix of each case: the coupling of the kernel of a row with the one after it, of a column."""
    shown = [one for one in models if one.of_length(2)]
    for one in shown[:_MAPS]:
        size = range(one.case.size)
        pairs = {coupling.chain: _cell(coupling) for coupling in one.of_length(2)}
        if one.case.size == 2:
            pairs |= {chain[::-1]: value for chain, value in pairs.items()}
        cells = tuple(tuple(pairs.get((row, column)) for column in size) for row in size)
        title = f"Couplings of a kernel (row) with the next (column), 1 if within the noise, {one.case.name}"
        yield HeatMap(title, "", one.case.kernels, one.case.kernels, cells, 1.0)


def _cell(coupling: Coupling) -> float | None:
    """Return a coupling that is claimed, 1 where there is none beyond noise, nothing where noise hides it."""
    if coupling.verdict == "too noisy to tell":
        return None
    return coupling.value.value if sentences.claimed(coupling) else 1.0


def found(models: Sequence[CaseModel]) -> Table:
    """Return the couplings beyond noise, the costliest first; others are counted by ``sentences``."""
    metric = models[0].metric
    unit = _unit(metric)
    columns = (
        Column("case"), Column("chain"), Column("coupling"), Column("from"), Column("to"), Column("what it is"),
        Column(f"{metric.name} a run", unit), Column("from", unit), Column("to", unit),
    )  # fmt: skip
    beyond = [(one, coupling) for one in models for coupling in one.couplings if sentences.claimed(coupling)]
    beyond.sort(key=lambda pair: -abs(pair[1].excess.value))
    title = f"Couplings beyond noise ({metric.name})"
    more = f", the {_ROWS} largest of {len(beyond)}" if len(beyond) > _ROWS else ""
    return Table(title + more, columns, tuple(_found(*pair) for pair in beyond[:_ROWS]))


def _found(model: CaseModel, one: Coupling) -> tuple[Cell, ...]:
    value, lost = one.value, one.excess
    return (
        model.case.name, model.case.label(one.chain), value.value, _end(value.low), _end(value.high), one.verdict,
        lost.value, _end(lost.low), _end(lost.high),
    )  # fmt: skip


def lengths(choice: Choice, failing: Mapping[int, float]) -> Table:
    """Return how each chain length does: over all cases, and where summation is wrong beyond noise (``failing``)."""
    columns = (
        Column("chains of"), Column("mean error", "share"), Column("give or take", "share"),
        Column("where summation fails", "share"), Column(""),
    )  # fmt: skip
    rows = tuple(
        ("single kernels (summation)" if length == 1 else f"{length} kernels", error, choice.doubts[length],
         failing.get(length), "chosen" if length == choice.length else "")
        for length, error in choice.errors.items()
    )  # fmt: skip
    return Table(f"Best length of chains, other {choice.left_out} left out in turn", columns, rows)


def moved(moves: Sequence[Transition], model: CaseModel) -> Table:
    """Return the transitions, those of short chains first."""
    columns = (
        Column("chain"),
        Column("between"),
        Column("before"),
        Column("after"),
        Column("data that change their place"),
    )
    ordered = sorted(moves, key=lambda one: (len(one.chain), -abs(one.after - one.before)))
    rows = tuple(
        (model.case.label(one.chain), f"{one.axis}={one.start:.12g} and {one.end:.12g}", one.before, one.after,
         "; ".join(one.crossed) or "none known")
        for one in ordered[:_ROWS]
    )  # fmt: skip
    more = f", {_ROWS} of {len(moves)}" if len(moves) > _ROWS else ""
    return Table(f"Where couplings change beyond noise{more}", columns, rows)


def forecast_table(ahead: Sequence[Forecast]) -> Table:
    """Return the predictions where nothing was measured."""
    columns = (
        Column("case"), Column("summation", "s"), Column("coupling", "s"), Column("from", "s"), Column("to", "s"),
        Column("couplings from"), Column("why"),
    )  # fmt: skip
    rows = tuple(
        (
            one.case.name,
            one.summation,
            one.value,
            one.low,
            one.high,
            one.source.name if one.source else "none",
            one.reason,
        )
        for one in ahead
    )
    return Table("Predicted where nothing was measured (models of the kernels)", columns, rows)


def next_runs(models: Sequence[CaseModel], choice: Choice | None) -> Table:
    """Return what to measure next: the chains whose doubt moves the predicted time most."""
    most = max(2, choice.length if choice else 2)
    found = [one for model in models for one in planning.next_chains(model, min(most, model.case.size))]
    found.sort(key=lambda one: -one.seconds / max(planning.loop_s(one.case), 1e-300))
    columns = (Column("case"), Column("chain"), Column("doubt in the prediction", "s"), Column("what to do"))
    rows = tuple(
        (one.case.name, one.case.label(one.chain), one.seconds, "repeat" if one.again else "measure")
        for one in found[:8]
    )
    return Table("What to measure next", columns, rows)


def _disturbances(models: Sequence[CaseModel]) -> Iterator[Part]:
    """Yield what disturbed the experiment."""
    off = [one for model in models for one in noise.outliers(model.case)]
    drifts = [one for model in models if (one := noise.drift(model.case))]
    words = sentences.disturbances(off, drifts, sum(len(model.case.samples[SECONDS]) for model in models))
    if words:
        yield Text("\n".join(words))
