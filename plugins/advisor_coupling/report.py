"""The report on an experiment: what it predicts, who hurts whom, what to believe, and what to measure next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from advisor.model.reports import Cell, Column, HeatMap, Part, Report, Table, Text, Unit
from advisor_coupling import noise, planning, sentences
from advisor_coupling.arrangements import find_best_order
from advisor_coupling.cases import SECONDS, Metric
from advisor_coupling.forecasts import Forecast, FormulaPrediction, predict_by_formulas
from advisor_coupling.length_selection import LengthChoice, errors_where_summation_fails, select_best_length
from advisor_coupling.transitions import CacheLevel, Transition, find_transitions

if TYPE_CHECKING:
    from advisor_coupling.model import CaseModel, Coupling
    from advisor_coupling.results import ExperimentDocument

#: So many rows of a table and heat maps of cases are shown.
_ROWS: Final = 25
_MAPS: Final = 6

Models = list["CaseModel"]


def build_report(
    document: ExperimentDocument,
    models: Mapping[Metric, Models],
    caches: Mapping[int, Sequence[CacheLevel]],
    ahead: Sequence[Forecast] = (),
) -> Report:
    """Return the report; ``models`` by metric, seconds first."""
    seconds = next(ones for metric, ones in models.items() if metric.name == SECONDS)
    choice = select_best_length(seconds)
    moves = find_transitions(seconds, caches)
    parts: list[Part] = [Text("\n".join(sentences.describe_experiment(document, seconds, choice, moves)))]
    parts += [build_prediction_table(seconds), *build_coupling_maps(seconds), build_coupling_table(seconds)]
    parts += [build_length_table(choice, errors_where_summation_fails(seconds))] if choice else []
    parts += [build_transition_table(moves, seconds[0])] if moves else []
    parts += [build_order_table(document, seconds)] if document.free_order else []
    parts += [build_forecast_table(ahead)] if ahead else []
    own = predict_by_formulas(seconds, document, choice.length if choice else 1)
    parts += [build_formula_table(own)] if own else []
    parts += [build_next_runs_table(seconds, choice), *_build_disturbances(seconds)]
    for metric, ones in models.items():
        if metric.name != SECONDS:
            parts += [build_prediction_table(ones), build_coupling_table(ones)]
    return Report(f"Kernel coupling of {document.program}", tuple(parts))


def build_prediction_table(models: Sequence[CaseModel]) -> Table:
    """Return the tables 2b to 8c of the source for these cases: measured and predicted, with intervals and errors."""
    metric = models[0].metric
    unit = _metric_unit(metric)
    columns = (
        Column("case"), Column("method"), Column(metric.name, unit), Column("from", unit), Column("to", unit),
        Column("error", "share"), Column("error from", "share"), Column("error to", "share"),
    )  # fmt: skip
    rows = tuple(row for model in models for row in _iterate_prediction_rows(model))
    return Table(f"Measured and predicted {metric.name}", columns, rows)


def _iterate_prediction_rows(model: CaseModel) -> Iterator[tuple[Cell, ...]]:
    measured = model.application
    if measured:
        yield (
            model.case.name,
            "measured",
            measured.value,
            _none_if_nan(measured.low),
            _none_if_nan(measured.high),
            None,
            None,
            None,
        )
    for one in model.predictions:
        error = one.error
        shown = (error.value, _none_if_nan(error.low), _none_if_nan(error.high)) if error else (None, None, None)
        yield (
            model.case.name,
            one.method,
            one.value.value,
            _none_if_nan(one.value.low),
            _none_if_nan(one.value.high),
            *shown,
        )


def _metric_unit(metric: Metric) -> Unit:
    return "s" if metric.name == SECONDS else ""


def _none_if_nan(value: float) -> float | None:
    return None if value != value else value


def build_coupling_maps(models: Sequence[CaseModel]) -> Iterator[HeatMap]:
    """Yield the matrix of each case: the coupling of the kernel of a row with the one after it, of a column."""
    shown = [model for model in models if model.couplings_of_length(2)]
    for one in shown[:_MAPS]:
        size = range(one.case.size)
        pairs = {coupling.chain: _map_cell(coupling) for coupling in one.couplings_of_length(2)}
        if one.case.size == 2:
            pairs |= {chain[::-1]: value for chain, value in pairs.items()}
        cells = tuple(tuple(pairs.get((row, column)) for column in size) for row in size)
        title = f"Couplings of a kernel (row) with the next (column), 1 if within the noise, {one.case.name}"
        yield HeatMap(title, "", one.case.kernels, one.case.kernels, cells, 1.0)


def _map_cell(coupling: Coupling) -> float | None:
    """Return a coupling that is claimed, 1 where there is none beyond noise, nothing where noise hides it."""
    if coupling.verdict == "too noisy to tell":
        return None
    return coupling.value.value if sentences.is_claimed(coupling) else 1.0


def build_coupling_table(models: Sequence[CaseModel]) -> Table:
    """Return the couplings beyond noise, the costliest first; others are counted by ``sentences``."""
    metric = models[0].metric
    unit = _metric_unit(metric)
    columns = (
        Column("case"), Column("chain"), Column("coupling"), Column("from"), Column("to"), Column("what it is"),
        Column(f"{metric.name} a run", unit), Column("from", unit), Column("to", unit),
    )  # fmt: skip
    beyond = [(model, coupling) for model in models for coupling in model.couplings if sentences.is_claimed(coupling)]
    beyond.sort(key=lambda pair: -abs(pair[1].excess.value))
    title = f"Couplings beyond noise ({metric.name})"
    more = f", the {_ROWS} largest of {len(beyond)}" if len(beyond) > _ROWS else ""
    return Table(title + more, columns, tuple(_build_coupling_row(*pair) for pair in beyond[:_ROWS]))


def _build_coupling_row(model: CaseModel, one: Coupling) -> tuple[Cell, ...]:
    value, lost = one.value, one.excess
    return (
        model.case.name, model.case.chain_label(one.chain), value.value, _none_if_nan(value.low),
        _none_if_nan(value.high), one.verdict,
        lost.value, _none_if_nan(lost.low), _none_if_nan(lost.high),
    )  # fmt: skip


def build_length_table(choice: LengthChoice, failing: Mapping[int, float]) -> Table:
    """Return how each chain length does: over all cases, and where summation is wrong beyond noise (``failing``)."""
    columns = (
        Column("chains of"), Column("mean error", "share"), Column("give or take", "share"),
        Column("where summation fails", "share"), Column(""),
    )  # fmt: skip
    rows = tuple(
        ("single kernels (summation)" if length == 1 else f"{length} kernels", error, choice.standard_errors[length],
         failing.get(length), "chosen" if length == choice.length else "")
        for length, error in choice.errors.items()
    )  # fmt: skip
    return Table(f"Best length of chains, other {choice.left_out} left out in turn", columns, rows)


def build_transition_table(moves: Sequence[Transition], model: CaseModel) -> Table:
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
        (model.case.chain_label(one.chain), f"{one.axis}={one.start:.12g} and {one.end:.12g}", one.before, one.after,
         "; ".join(one.crossed) or "none known")
        for one in ordered[:_ROWS]
    )  # fmt: skip
    more = f", {_ROWS} of {len(moves)}" if len(moves) > _ROWS else ""
    return Table(f"Where couplings change beyond noise{more}", columns, rows)


def build_order_table(document: ExperimentDocument, models: Sequence[CaseModel]) -> Table:
    """Return the order of the kernels that wins most in each case, by the couplings of neighbours in it."""
    columns = (
        Column("case"), Column("order"), Column("wins", "s"), Column("from", "s"), Column("to", "s"),
        Column("estimated pairs"),
    )  # fmt: skip
    found = [(model.case, find_best_order(model.case, document.after)) for model in models]
    rows = tuple(
        (case.name, case.chain_label(best.order), best.saved.value, best.saved.low, best.saved.high,
         "; ".join(map(case.chain_label, best.estimated)) or "none")
        for case, best in found if best is not None
    )  # fmt: skip
    return Table("Kernel orders that are faster beyond noise", columns, rows)


def build_forecast_table(ahead: Sequence[Forecast]) -> Table:
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


def build_formula_table(found: Sequence[FormulaPrediction]) -> Table:
    """Return what the user's own formulas predict, added up and composed by couplings, beside what was measured."""
    columns = (
        Column("case"), Column("measured", "s"), Column("sum of formulas", "s"), Column("error", "share"),
        Column("with couplings", "s"), Column("error", "share"), Column("chains of", ""),
    )  # fmt: skip
    rows = tuple(
        (one.case.name, one.measured, one.summation, _relative_error(one.summation, one.measured), one.composed,
         _relative_error(one.composed, one.measured), one.length)
        for one in found
    )  # fmt: skip
    return Table("Predicted from own formulas of the kernels", columns, rows)


def _relative_error(value: float, measured: float | None) -> float | None:
    return (value - measured) / measured if measured else None


def build_next_runs_table(models: Sequence[CaseModel], choice: LengthChoice | None) -> Table:
    """Return what to measure next: the chains whose doubt moves the predicted time most."""
    most = max(2, choice.length if choice else 2)
    found = [chain for model in models for chain in planning.select_next_chains(model, min(most, model.case.size))]
    found.sort(key=lambda one: -one.seconds / max(planning.loop_s(one.case), 1e-300))
    columns = (Column("case"), Column("chain"), Column("doubt in the prediction", "s"), Column("what to do"))
    rows = tuple(
        (one.case.name, one.case.chain_label(one.chain), one.seconds, "repeat" if one.again else "measure")
        for one in found[:8]
    )
    return Table("What to measure next", columns, rows)


def _build_disturbances(models: Sequence[CaseModel]) -> Iterator[Part]:
    """Yield what disturbed the experiment."""
    off = [outlier for model in models for outlier in noise.find_outliers(model.case)]
    drifts = [one for model in models if (one := noise.find_drift(model.case))]
    words = sentences.describe_disturbances(off, drifts, sum(len(model.case.samples[SECONDS]) for model in models))
    if words:
        yield Text("\n".join(words))
