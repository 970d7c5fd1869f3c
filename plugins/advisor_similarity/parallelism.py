"""``gapwatch parallelism``: runs a program on the oracle machine, a second time with as many units as it can use."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.demangling import demangle
from advisor.model.errors import UsageError
from advisor.support.documents import suggest_word
from advisor_similarity.elf import read_functions
from advisor_similarity.qemu_tracing import TracedRun, TracePlan, find_architecture, trace_program
from advisor_similarity.workload import SamplingError, Workload, estimate_sampling_error, main_image, summarize_workload

if TYPE_CHECKING:
    from advisor_similarity.images import Image

_SIGNAL: Final = 128
_ILLEGAL: Final = _SIGNAL + 4
_LAST_SIGNAL: Final = 64
#: Two runs of one program differ by a few instructions; by more than this share they were not the same work.
_SAME_WORK: Final = 0.01


@dataclass(frozen=True, slots=True)
class Observation:
    """A run on the oracle machine; ``limited_cycles`` are those of the machine with ``slots`` operations a cycle.

    ``sampling`` says that a part of the run was scheduled; ``sampled`` is None where that was less than two windows.
    ``region`` says in words what was of interest, where that was not all.
    """

    workload: Workload
    image: Image
    traced: TracedRun
    slots: int | None = None
    limited_cycles: int | None = None
    differs: float = 0.0
    sampled: SamplingError | None = None
    sampling: bool = False
    region: str = ""


def observe_program(plan: TracePlan, cache: Path, folder: Path, smoothability: bool) -> Observation:
    """Run and schedule the command of ``plan``; raises ``UsageError`` where it could not be observed.

    Smoothability is T(unlimited) / T(as many operations a cycle as the average parallelism), Theobald, Gao and
    Hendren as the paper takes it (section 5.3); the program runs a second time for it.
    """
    traced = _trace_program(plan, cache, _make_folder(folder, "first"))
    image = _require_image(plan, traced)
    program = Path(traced.program)
    workload = summarize_workload(image, traced.templates, program.name, find_architecture(program) or "x86_64")
    sampled = estimate_sampling_error(max(image.streams, key=lambda stream: stream.cycles)) if plan.period else None
    observed = Observation(
        workload, image, traced, sampled=sampled, sampling=bool(plan.period), region=plan.region.description
    )
    return _run_limited(observed, plan, cache, folder) if smoothability and plan.tracer == "qemu" else observed


def _trace_program(plan: TracePlan, cache: Path, folder: Path) -> TracedRun:
    if plan.tracer == "qemu":
        return trace_program(plan, cache, folder)
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache / "numba"))  # read when numba is imported
    from advisor_similarity.valgrind_tracing import trace_piped

    return trace_piped(plan, cache, folder)


def _run_limited(observed: Observation, plan: TracePlan, cache: Path, folder: Path) -> Observation:
    """Run again on a machine with the average number of units."""
    slots = max(1, round(observed.workload.parallelism))
    second = trace_program(replace(plan, limit=slots, rows=0, quiet=True), cache, _make_folder(folder, "second"))
    image = _require_image(plan, second)
    cycles = max(stream.cycles for stream in image.streams)
    operations = sum(int(stream.operations.sum()) for stream in image.streams)
    differs = abs(operations - observed.workload.operations) / max(1, observed.workload.operations)
    smoothability = min(1.0, observed.workload.cycles / cycles) if differs <= _SAME_WORK else None
    workload = replace(observed.workload, smoothability=smoothability)
    return replace(observed, workload=workload, slots=slots, limited_cycles=cycles, differs=differs)


def _make_folder(folder: Path, name: str) -> Path:
    sub = folder / name
    sub.mkdir()
    return sub


def _require_image(plan: TracePlan, traced: TracedRun) -> Image:
    image = main_image(traced.images)
    if traced.exit_code == _ILLEGAL or (image is None and _is_avx512(traced)):
        raise UsageError(_explain_illegal(plan, traced))
    if plan.rank is not None and traced.exit_code == 0 and (image is None or not image.instructions):
        raise UsageError(f"{plan.command[0]} started no rank {plan.rank}; the first one is rank 0")
    if image is not None and not image.instructions and not plan.region.is_whole:
        raise UsageError(_explain_empty_region(plan, traced))
    if image is None or not image.instructions:
        raise UsageError(f"{plan.command[0]} {_describe_exit(traced.exit_code)}, nothing was recorded of it")
    return image


def _explain_empty_region(plan: TracePlan, traced: TracedRun) -> str:
    region, program = plan.region, Path(traced.program)
    wanted = region.function or region.after
    if wanted and not region.defined_in:
        known = [demangle(name).split("(")[0] for name in read_functions(program).names]
        return f"no file of {program.name} has a function {wanted}{suggest_word(wanted, known)}"
    where = f"{wanted} was never called" if region.function else f"nothing ran after {wanted}" if wanted else ""
    return f"{program.name}: {where or 'no code ran in ' + ', '.join(region.objects)}"


def _describe_exit(code: int) -> str:
    if _SIGNAL < code <= _SIGNAL + _LAST_SIGNAL:
        return f"was killed by signal {code - _SIGNAL} before it ended"
    return f"ended with exit code {code} before its first instruction" if code else "was gone before it ended"


def _is_avx512(traced: TracedRun) -> bool:
    return any(code[:1] == b"\x62" for code in traced.codes)


def _explain_illegal(plan: TracePlan, traced: TracedRun) -> str:
    if _is_avx512(traced):
        reason = "it uses AVX-512, which qemu does not carry out: build it with -march=x86-64-v3 or -mno-avx512f"
    else:
        reason = "it executed an instruction that qemu does not know: build it for an older processor"
    return f"{plan.command[0]} was stopped by SIGILL: {reason}"


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return the directory that takes the files of a run, for a ``with`` statement."""
    return tempfile.TemporaryDirectory(prefix="gapwatch-run-")
