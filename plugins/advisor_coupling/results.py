"""The file of an experiment: everything that was run, complete after every run, whenever it is interrupted."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from advisor.model.errors import InputError
from advisor.support.atomic_write import atomic_write
from advisor.support.limited_files import read_limited
from advisor_coupling.algebra import Combination
from advisor_coupling.cases import SECONDS, Chain, CouplingCase, Metric, canonical_chain

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

SCHEMA: Final = "gapwatch/coupling/1"
#: Why a metric can tell that a chain loses time.
Reason = Literal["cache", "messages", "imbalance"]
Kind = Literal["chain", "application", "baseline", "calibration"]
_LARGEST: Final = 64 << 20
_MOST_ROUNDS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of the program: ``values`` hold its metrics, as the program or the clock gave them."""

    case: int
    kind: Kind
    chain: str
    round: int
    passes: int
    values: dict[str, float]
    started: str = ""
    took_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One problem size and number of processors; ``arrays`` are bytes on one processor."""

    parameters: dict[str, float]
    processors: int
    loop_count: int
    passes: int
    arrays: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CacheRecord:
    """A cache of the machine that was measured on: bytes of one, and how many cores share it."""

    bytes: float
    shared_by: int = 1


@dataclass(frozen=True, slots=True)
class ExperimentDocument:
    """An experiment and its runs; ``fingerprint`` identifies it.

    ``arrays`` and ``loop_count`` are the expressions behind the numbers of the cases, needed to predict other cases;
    ``communicating`` names the kernels that talk to other processes, ``reasons`` the metrics that tell why chains lose.
    ``formulas`` are the user's own models of kernels, seconds of one pass. Where the order of the loop is free,
    ``after`` says which kernels have to run before another one.
    """

    schema: Literal["gapwatch/coupling/1"]
    program: str
    kernels: tuple[str, ...]
    cases: tuple[CaseRecord, ...]
    runs: tuple[RunRecord, ...]
    metrics: dict[str, Combination] = field(default_factory=lambda: dict[str, Combination]({SECONDS: "sum"}))
    uses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    caches: dict[str, CacheRecord] = field(default_factory=dict)
    machine: str = ""
    fingerprint: str = ""
    arrays: dict[str, str] = field(default_factory=dict)
    loop_count: str = ""
    communicating: tuple[str, ...] = ()
    reasons: dict[str, Reason] = field(default_factory=dict)
    formulas: dict[str, str] = field(default_factory=dict)
    free_order: bool = False
    after: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_results(path: Path) -> ExperimentDocument:
    """Return the experiment in the file; raises ``InputError`` where it is none, or contradicts itself."""
    import msgspec

    try:
        document = msgspec.json.decode(read_limited(path, _LARGEST), type=ExperimentDocument)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(path, f"no results of a coupling experiment: {error}") from error
    for reason in _find_contradictions(document):
        raise InputError(path, reason)
    return document


def _find_contradictions(document: ExperimentDocument) -> list[str]:
    """Return what is wrong with a document whose types are right."""
    known = set(document.kernels)
    problems = []
    if len(known) < 2 or len(known) < len(document.kernels):
        problems.append("expected two kernels or more, each by its own name")
    if any(case.loop_count < 1 or case.processors < 1 or case.passes < 1 for case in document.cases):
        problems.append("loop counts, passes and processors are 1 or more")
    if SECONDS not in document.metrics:
        problems.append(f"no metric '{SECONDS}'")
    for number, run in enumerate(document.runs):
        if not 0 <= run.case < len(document.cases):
            problems.append(f"run {number} is of no case")
        if not 0 <= run.round < _MOST_ROUNDS:
            problems.append(f"run {number}: a round is from 0 to {_MOST_ROUNDS - 1}")
        if run.kind == "chain" and (run.passes < 1 or _chain_indices(document.kernels, run.chain) is None):
            problems.append(f"run {number}: '{run.chain}' is not a chain of neighbouring kernels")
        if not all(np.isfinite(value) for value in run.values.values()):
            problems.append(f"run {number}: a value is not finite")
    return problems


def write_results(document: ExperimentDocument, path: Path) -> None:
    """Write the document; the file is either the old one or the new one, whatever happens meanwhile."""
    import msgspec

    with atomic_write(path) as partial, partial.open("wb") as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(document), indent=1))
        stream.flush()
        os.fsync(stream.fileno())


def _chain_indices(kernels: tuple[str, ...], chain: str) -> Chain | None:
    """Return the chain's indices; None where its kernels are not neighbours in the loop, nor any two in its order."""
    names = chain.split(",")
    if names[0] not in kernels or len(names) > len(kernels):
        return None
    if len(names) == 2 and names[1] in kernels[kernels.index(names[0]) + 1 :]:
        return kernels.index(names[0]), kernels.index(names[1])
    start = kernels.index(names[0])
    found = tuple((start + step) % len(kernels) for step in range(len(names)))
    if [kernels[index] for index in found] != names:
        return None
    return canonical_chain(found, len(kernels))


def list_metrics(document: ExperimentDocument) -> tuple[Metric, ...]:
    """Return what was measured, seconds first."""
    others = [Metric(name, combine) for name, combine in document.metrics.items() if name != SECONDS]
    return (Metric(SECONDS), *others)


def build_cases(document: ExperimentDocument) -> tuple[CouplingCase, ...]:
    """Return the measurements of each case in which every kernel was measured in isolation."""
    found = [_build_case(document, number) for number in range(len(document.cases))]
    return tuple(
        case for case in found if all(case.chain_samples(SECONDS, (index,)) is not None for index in range(case.size))
    )


def _build_case(document: ExperimentDocument, number: int) -> CouplingCase:
    record = document.cases[number]
    runs = [run for run in document.runs if run.case == number and run.kind != "calibration"]
    rounds = max((run.round for run in runs), default=0) + 1
    names = list(document.metrics)
    once = {name: _collect_series([run for run in runs if run.kind == "baseline"], name, rounds) for name in names}
    rest = {name: float(np.nanmedian(once[name])) if np.isfinite(once[name]).any() else 0.0 for name in names}
    samples = {
        name: _collect_chains(document, [run for run in runs if run.kind == "chain"], name, rounds, rest[name])
        for name in names
    }
    return CouplingCase(
        document.kernels,
        dict(record.parameters),
        record.loop_count,
        samples,
        {name: _collect_series([run for run in runs if run.kind == "application"], name, rounds) for name in names},
        {name: series for name, series in once.items() if np.isfinite(series).any()},
        record.processors,
        dict(record.arrays),
        document.uses,
    )


def _collect_chains(
    document: ExperimentDocument, runs: list[RunRecord], metric: str, rounds: int, rest: float
) -> dict[Chain, FloatArray]:
    """Return the value of one pass by chain: the program's beyond its rest, over the passes; rates as they are."""
    found: dict[Chain, FloatArray] = {}
    rate = document.metrics[metric] == "rate"
    for run in runs:
        chain = _chain_indices(document.kernels, run.chain)
        if chain is not None and metric in run.values:
            value = run.values[metric] if rate else (run.values[metric] - rest) / run.passes
            found.setdefault(chain, np.full(rounds, np.nan))[run.round] = value
    return found


def _collect_series(runs: list[RunRecord], metric: str, rounds: int) -> FloatArray:
    series = np.full(rounds, np.nan)
    for run in runs:
        if metric in run.values:
            series[run.round] = run.values[metric]
    return series
