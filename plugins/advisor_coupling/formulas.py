"""Formula 3 of the source with the user's own models of kernels: T = sum of a_k E_k, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.expressions import Expression
from advisor_coupling import algebra, planning, transitions
from advisor_coupling.cases import SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.model.records import FloatArray
    from advisor_coupling.cases import CouplingCase
    from advisor_coupling.model import CaseModel
    from advisor_coupling.results import ExperimentDocument


@dataclass(frozen=True, slots=True)
class FormulaPrediction:
    """What own formulas say of the application at one case, seconds: added up, and composed by couplings."""

    case: CouplingCase
    summation: float
    composed: float
    length: int
    measured: float | None


def evaluate_formulas(
    document: ExperimentDocument, values: Mapping[str, float], kernels: Sequence[str]
) -> FloatArray | None:
    """Return E_k (kernels,) at these parameters and ``P``, seconds of one pass; None where a kernel has no formula."""
    if not set(kernels) <= document.formulas.keys():
        return None
    return np.array([Expression.parse(document.formulas[name]).evaluate_number(values) for name in kernels])


def predict_by_formulas(
    models: Sequence[CaseModel], document: ExperimentDocument, length: int
) -> tuple[FormulaPrediction, ...]:
    """Return what the formulas predict at the cases that were measured with all chains of that length."""
    found = []
    for model in models:
        case = model.case
        values = {**case.parameters, transitions.PROCESSORS: float(case.processors)}
        alone = evaluate_formulas(document, values, case.kernels)
        if alone is None or (length > 1 and not case.has_all_chains(SECONDS, length)):
            continue
        rest = planning.once_s(case)
        composed = float(compute_coefficients(case, length) @ alone)
        measured = model.application.value if model.application else None
        found.append(
            FormulaPrediction(
                case, rest + case.loop_count * float(alone.sum()), rest + case.loop_count * composed, length, measured
            )
        )
    return tuple(found)


def compute_coefficients(case: CouplingCase, length: int) -> FloatArray:
    """Return a_j (kernels,) of a case that was measured with all chains of that length (formula 3)."""
    if length == 1:
        return np.ones(case.size)
    known = planning.compute_medians(case)
    member = algebra.build_membership(case.size, length)
    alone = np.array([known[(index,)] for index in range(case.size)])
    together = np.array([known[chain] for chain in algebra.chain_windows(case.size, length)])
    return algebra.compute_coefficients(algebra.compute_couplings(alone, together, member), together, member)
