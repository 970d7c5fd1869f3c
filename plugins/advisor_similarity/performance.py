"""What a program will take on a machine that it never ran on, from programs like it that did.

The source's last claim (section 5.4, Tables 13 to 16): as far as workloads are similar, so is how they perform. Its
performance similarity is taken as expression (9) of one component, the rate in operations a second, since the text
does not define it. The prediction and its interval are own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_similarity.neighbours import compute_distances

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_similarity.library import LibraryEntry

#: Neighbours that a prediction rests on, and what is added to their distances before these are made weights.
NEIGHBOURS: Final = 5
_SOFTENING: Final = 0.02
#: Programs that an interval needs to be told from, and the share of them that it holds.
_LEAST_PROGRAMS: Final = 4
COVERED: Final = 0.8
#: The reference where no machine is shared: operations of the oracle machine.
OPERATIONS: Final = "operations"


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds on a machine, from those on ``reference`` or from the number of operations.

    ``low_s`` to ``high_s`` holds 80 % of the known programs, each predicted from the others; None where too few are
    known. ``neighbours`` are the names and distances of what it rests on.
    """

    seconds: float
    low_s: float | None
    high_s: float | None
    reference: str
    neighbours: tuple[tuple[str, float], ...]


def compare_performance(first: LibraryEntry, second: LibraryEntry) -> dict[str, float]:
    """Return the performance similarity of two workloads on every machine that both ran on: 0 alike, towards 1 not."""
    found = {}
    for machine in first.seconds.keys() & second.seconds.keys():
        rates = [one.operations / one.seconds[machine] for one in (first, second)]
        found[machine] = abs(rates[0] - rates[1]) / max(rates)
    return dict(sorted(found.items()))


def predict_seconds(this: LibraryEntry, known: Sequence[LibraryEntry], machine: str, by: str) -> Prediction | None:
    """Return what a workload would take on a machine; None where nothing comparable ran there.

    The ratio of the seconds there to those on a reference is taken over from the nearest workloads of other programs,
    as a mean of logarithms that weighs near ones more. Of the references that ``this`` has, the one is taken by which
    the known programs predict each other best.
    """
    found = [
        (error, prediction)
        for reference in (*this.seconds, OPERATIONS)
        if reference != machine and (answer := _predict_from(this, known, machine, reference, by)) is not None
        for error, prediction in [answer]
    ]
    return min(found, key=lambda pair: pair[0], default=(0.0, None))[1]


def predict_known(known: Sequence[LibraryEntry], machine: str, reference: str, by: str) -> FloatArray:
    """Return ln(predicted / measured) (n,) of every workload that ran on both, each from those of other programs."""
    ratios = [(entry, ratio) for entry in known if (ratio := _find_ratio(entry, machine, reference)) is not None]
    errors = []
    for entry, ratio in ratios:
        others = [one for one, _ in ratios if one.program != entry.program]
        if others:
            errors.append(_mean_log_ratio(entry, others, machine, reference, by)[0] - math.log(ratio))
    return np.array(errors)


def _predict_from(
    this: LibraryEntry, known: Sequence[LibraryEntry], machine: str, reference: str, by: str
) -> tuple[float, Prediction] | None:
    """Return the spread of errors by this reference, and the prediction."""
    others = [one for one in known if one.program != this.program and _find_ratio(one, machine, reference) is not None]
    base = _reference_amount(this, reference)
    if not others or base is None:
        return None
    log_ratio, near = _mean_log_ratio(this, others, machine, reference, by)
    seconds = base * math.exp(log_ratio)
    if len({other.program for other in others}) < _LEAST_PROGRAMS:
        return math.inf, Prediction(seconds, None, None, reference, near)
    errors = predict_known(others, machine, reference, by)
    low, high = np.quantile(-errors, [(1 - COVERED) / 2, (1 + COVERED) / 2])
    interval = seconds * math.exp(min(float(low), 0.0)), seconds * math.exp(max(float(high), 0.0))
    return float(np.abs(errors).mean()), Prediction(seconds, *interval, reference, near)


def _mean_log_ratio(
    this: LibraryEntry, others: Sequence[LibraryEntry], machine: str, reference: str, by: str
) -> tuple[float, tuple[tuple[str, float], ...]]:
    """Return the mean of ln(seconds / reference) over the nearest workloads, one of each program, and who they are."""
    distances = compute_distances(this, others, by)
    chosen: dict[str, int] = {}
    for at in np.argsort(distances, kind="stable").tolist():
        chosen.setdefault(others[at].program, at)
    near = list(chosen.values())[:NEIGHBOURS]
    weights = 1.0 / (distances[near] + _SOFTENING) ** 2
    logs = np.log([_find_ratio(others[at], machine, reference) or np.nan for at in near])
    names = tuple((others[at].name, float(distances[at])) for at in near)
    return float(np.average(logs, weights=weights)), names


def _find_ratio(entry: LibraryEntry, machine: str, reference: str) -> float | None:
    amount = _reference_amount(entry, reference)
    return entry.seconds[machine] / amount if amount and machine in entry.seconds and entry.centroid else None


def _reference_amount(entry: LibraryEntry, reference: str) -> float | None:
    return float(entry.operations) or None if reference == OPERATIONS else entry.seconds.get(reference)
