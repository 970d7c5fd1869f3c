"""The experiment: every chain at every case, in interleaved rounds, going on where it was interrupted."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import random
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from advisor.model.errors import InputError, UsageError
from advisor_coupling import program_launch, results
from advisor_coupling.algebra import Combination, chain_windows
from advisor_coupling.cases import SECONDS
from advisor_coupling.results import CacheRecord, CaseRecord, ExperimentDocument, Kind, RunRecord

if TYPE_CHECKING:
    from advisor_coupling.manifest import Manifest

#: A loop of which less than this share of the wanted time was seen is measured once more before it is believed.
_TRUSTED: Final = 0.1
_MOST_CALIBRATIONS: Final = 4
_MOST_PASSES: Final = 10**9


class _Order(TypedDict):
    free_order: bool
    after: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ExperimentStep:
    """One run that the experiment consists of."""

    case: int
    kind: Kind
    chain: str
    round: int

    @property
    def key(self) -> tuple[int, str, str, int]:
        """The identity of a step."""
        return self.case, self.kind, self.chain, self.round


def open_experiment(
    manifest: Manifest, source: Path, path: Path, machine: str, caches: Mapping[str, CacheRecord]
) -> ExperimentDocument:
    """Return the experiment in the file ``path``, or a new one; ``UsageError`` if the file is of another experiment.

    ``source`` is the manifest's file; ``machine`` and ``caches`` are those of this host.
    """
    mark = compute_fingerprint(manifest, source)
    if path.exists():
        found = results.read_results(path)
        if found.fingerprint != mark:
            reason = "belongs to another experiment (program, build, kernels, commands or sizes differ)"
            raise UsageError(f"{path} {reason}; move it away, or name another file by --results")
        return replace(found, formulas=_list_formulas(manifest), **_describe_order(manifest))
    printed: dict[str, Combination] = {str(metric.name): metric.combine for metric in manifest.metrics}
    known: dict[str, Combination] = {SECONDS: "sum"}
    uses = {str(one.name): tuple(str(array.value) for array in one.uses) for one in manifest.kernels if one.uses}
    return ExperimentDocument(
        results.SCHEMA, manifest.program, manifest.names, tuple(_iterate_cases(manifest)), (), known | printed, uses,
        dict(caches), machine, mark, {str(name): str(array.value) for name, array in manifest.arrays.items()},
        str(manifest.loop_count),
        tuple(str(one.name) for one in manifest.kernels if one.communicates),
        {str(metric.name): metric.reason for metric in manifest.metrics if metric.reason is not None},
        _list_formulas(manifest),
        **_describe_order(manifest),
    )  # fmt: skip


def _list_formulas(manifest: Manifest) -> dict[str, str]:
    """Return the formulas of kernels that have one; they may change during an experiment."""
    return {str(one.name): str(one.formula) for one in manifest.kernels if one.formula is not None}


def _describe_order(manifest: Manifest) -> _Order:
    """Return what the manifest says about the order of the loop; it may be freed during an experiment."""
    after = {str(one.name): tuple(str(other.value) for other in one.after) for one in manifest.kernels if one.after}
    return {"free_order": manifest.order == "free", "after": after}


def compute_fingerprint(manifest: Manifest, source: Path) -> str:
    """Return the identity of this experiment; repetitions and lengths may grow without changing it.

    Programs that the commands name by a path are part of it: after a new build the old runs say nothing.
    """
    parts = [
        manifest.program,
        manifest.names,
        [word.value for word in (*manifest.command, *manifest.application)],
        {str(name): word.value for name, word in manifest.environment.items()},
        manifest.directory,
        manifest.points,
        manifest.processors,
        str(manifest.loop_count),
        str(manifest.passes) if manifest.passes else None,
        manifest.shortest_loop,
        manifest.baseline,
        [(metric.name, metric.prints, metric.combine, metric.take) for metric in manifest.metrics],
    ]
    digest = hashlib.sha256(json.dumps(parts).encode())
    for program in _iterate_programs(manifest, source):
        digest.update(program.read_bytes())
    return digest.hexdigest()[:16]


def _iterate_programs(manifest: Manifest, source: Path) -> Iterator[Path]:
    """Yield the executable files that the commands name by a path."""
    for word in (*manifest.command, *manifest.application):
        path = source.parent / manifest.directory / str(word.value)
        if "/" in word.value and not word.value.names and path.is_file() and os.access(path, os.X_OK):
            yield path


def _iterate_cases(manifest: Manifest) -> Iterator[CaseRecord]:
    for processors, point in product(manifest.processors, manifest.points):
        values = {**point, "P": float(processors)}
        count = int(manifest.loop_count.evaluate_number(values))
        passes = int(manifest.passes.evaluate_number(values)) if manifest.passes else count
        arrays = {str(name): array.value.evaluate_number(values) for name, array in manifest.arrays.items()}
        yield CaseRecord(point, processors, count, passes, arrays)


def list_steps(manifest: Manifest, cases: int) -> tuple[ExperimentStep, ...]:
    """Return all runs but calibrations in their order: round by round, in each every case, its runs shuffled.

    So what changes on the machine while the experiment runs touches all chains alike. The order of a round is always
    the same, that of another round is another.
    """
    names = manifest.names
    lengths = (1, *manifest.chain_lengths)
    chains = [",".join(names[i] for i in chain) for length in lengths for chain in chain_windows(len(names), length)]
    if manifest.order == "free":
        chains += [chain for chain in map(",".join, combinations(names, 2)) if not _is_window(chain, chains)]
    found = []
    for turn in range(manifest.repetitions):
        for case in range(cases):
            some = [ExperimentStep(case, "chain", chain, turn) for chain in chains]
            some.append(ExperimentStep(case, "application", ",".join(names), turn))
            if manifest.baseline == "subtract":
                some.append(ExperimentStep(case, "baseline", ",".join(names), turn))
            random.Random(turn * cases + case).shuffle(some)
            found += some
    return tuple(found)


def _is_window(pair: str, chains: Sequence[str]) -> bool:
    """Return whether a pair is measured already, as neighbours in the loop (the last is followed by the first)."""
    return pair in chains or ",".join(reversed(pair.split(","))) in chains


@contextmanager
def lock_experiment(source: Path) -> Iterator[None]:
    """Hold the manifest's lock; ``UsageError`` where the experiment is running already."""
    with source.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"the experiment of {source} is running already") from None
        yield


def remaining_steps(manifest: Manifest, document: ExperimentDocument) -> tuple[ExperimentStep, ...]:
    """Return the steps that were not run yet."""
    finished = {(run.case, run.kind, run.chain, run.round) for run in document.runs}
    return tuple(step for step in list_steps(manifest, len(document.cases)) if step.key not in finished)


def format_step(manifest: Manifest, source: Path, document: ExperimentDocument, step: ExperimentStep) -> str:
    """Return the command of a step as one would type it; its passes before they are calibrated."""
    case = document.cases[step.case]
    passes = {"baseline": 0, "chain": case.passes}.get(step.kind, case.loop_count)
    launch = _build_launch(manifest, source, document, step, passes)
    setting = [f"{name}={shlex.quote(value)}" for name, value in launch.environment.items()]
    return " ".join([*setting, shlex.join(launch.words)])


def run_steps(
    manifest: Manifest, source: Path, document: ExperimentDocument, path: Path, done: Callable[[int], None]
) -> ExperimentDocument:
    """Run what the experiment lacks, and return it whole; ``path`` holds it after every run.

    ``source`` is the manifest's file, ``done`` is told how many runs are finished. ``InputError`` where a run fails
    twice in succession; what was finished by then is kept.
    """
    missing = remaining_steps(manifest, document)
    before = len(list_steps(manifest, len(document.cases))) - len(missing)
    done(before)
    for number, step in enumerate(missing, start=before + 1):
        for run in _iterate_runs(manifest, source, document, step):
            document = replace(document, runs=(*document.runs, run))
            results.write_results(document, path)
        done(number)
    return document


def _iterate_runs(
    manifest: Manifest, source: Path, document: ExperimentDocument, step: ExperimentStep
) -> Iterator[RunRecord]:
    """Yield the run of a step, with the calibrations of its chain before where they are missing."""
    if step.kind != "chain":
        passes = 0 if step.kind == "baseline" else document.cases[step.case].loop_count
        yield _run_once(manifest, source, document, step, passes)
        return
    while (known := _find_known_passes(manifest, document, step)) is None:
        run = _run_calibration(manifest, source, document, step)
        yield run
        document = replace(document, runs=(*document.runs, run))
    yield _run_once(manifest, source, document, step, known)


def _find_known_passes(manifest: Manifest, document: ExperimentDocument, step: ExperimentStep) -> int | None:
    """Return how many passes make the chain's loop last long enough; None while that has to be tried."""
    first = document.cases[step.case].passes
    if manifest.shortest_loop <= 0:
        return first
    tried = _find_calibrations(document, step)
    if not tried:
        return None
    last = tried[-1]
    believed = last.values[SECONDS] >= _TRUSTED * manifest.shortest_loop or len(tried) >= _MOST_CALIBRATIONS
    return _extend_passes(manifest, last) if believed else None


def _find_calibrations(document: ExperimentDocument, step: ExperimentStep) -> list[RunRecord]:
    here = [run for run in document.runs if run.case == step.case and run.kind == "calibration"]
    return [run for run in here if run.chain == step.chain]


def _extend_passes(manifest: Manifest, run: RunRecord) -> int:
    """Return the passes that make the loop of a calibration last ``shortest_loop``, never fewer than it had."""
    seconds = max(run.values[SECONDS], 1e-3 * manifest.shortest_loop)
    return min(max(run.passes, math.ceil(run.passes * manifest.shortest_loop / seconds)), _MOST_PASSES)


def _run_calibration(manifest: Manifest, source: Path, document: ExperimentDocument, step: ExperimentStep) -> RunRecord:
    tried = _find_calibrations(document, step)
    passes = _extend_passes(manifest, tried[-1]) if tried else document.cases[step.case].passes
    with_loop = _run_once(manifest, source, document, replace(step, kind="calibration", round=len(tried)), passes)
    if manifest.baseline == "none":
        return with_loop
    empty = _run_once(manifest, source, document, replace(step, kind="baseline"), 0)
    loop = max(with_loop.values[SECONDS] - empty.values[SECONDS], 0.0)
    return replace(with_loop, values={SECONDS: loop})


def _run_once(
    manifest: Manifest, source: Path, document: ExperimentDocument, step: ExperimentStep, passes: int
) -> RunRecord:
    """Run a step; once more where it fails, since a machine that others use is short of something now and then."""
    launch = _build_launch(manifest, source, document, step, passes)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        outcome = program_launch.run_program(launch, source)
    except InputError:
        outcome = program_launch.run_program(launch, source)
    values = program_launch.extract_metrics(outcome, manifest.metrics, launch, source)
    return RunRecord(step.case, step.kind, step.chain, step.round, passes, values, started, outcome.seconds)


def _build_launch(
    manifest: Manifest, source: Path, document: ExperimentDocument, step: ExperimentStep, passes: int
) -> program_launch.ProgramLaunch:
    """Return the command of a step with its places filled."""
    case = document.cases[step.case]
    inside = step.chain.split(",")
    places = {name: f"{value:.12g}" for name, value in case.parameters.items()} | {
        "chain": step.chain,
        "mask": "".join("1" if name in inside else "0" for name in document.kernels),
        "passes": str(passes),
        "processors": str(case.processors),
    }
    own = manifest.application if step.kind == "application" and manifest.application else manifest.command
    words = tuple(word.value.fill_places(places) for word in own)
    environment = {str(name): word.value.fill_places(places) for name, word in manifest.environment.items()}
    directory = (source.parent / manifest.directory).resolve()
    return program_launch.ProgramLaunch(words, environment, directory, manifest.time_limit)
