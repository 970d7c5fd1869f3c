"""``gapwatch machines probe``: measure, write the model, say what was found and how sure it is."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.analysis.machines import Machine, local_machine
from advisor.model.errors import UsageError
from advisor.model.reports import Column, Report, Table, Text
from advisor.support.child_process import run_child
from advisor.support.native_tools import require_compiler
from advisor_processor.probe import measure, model_document, tools
from advisor_processor.probe.machine_model import SamplesByKernel, build_machine
from advisor_processor.probe.samples import NOISY, describe_noise

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    Working = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]

#: Options from the best to what every compiler knows.
_OPTIONS: Final = (
    ("-O2", "-march=native", "-ffp-contract=fast", "-fopenmp"),
    ("-O2", "-march=native", "-ffp-contract=fast"),
    ("-O2",),
)
_BUILD_S: Final = 60.0

#: Everything is measured so often, so that what else runs disturbs not all samples of one number.
ROUNDS: Final = 5
_NEEDED: Final = ("clock", "issue")


def run_probe(name: str, folder: Path, working: Working) -> Report:
    """Measure this machine, write ``folder/NAME.yaml``, and return what was found.

    Raises ``UsageError`` for a name that can't be a file's, and where there is no compiler to build the kernels.
    """
    model_document.check_model_name(name)
    host = tools.add_caches(local_machine.detect_machine())
    with tempfile.TemporaryDirectory(prefix="gapwatch-probe-") as place:
        found, width, lacking = _measure_kernels(host, Path(place), working)
    machine = build_machine(name, host, found, measure.choose_working_sets(host), width)
    target = model_document.write_machine(machine, folder)
    return _build_report(machine, found, target, lacking)


def _measure_kernels(host: Machine, place: Path, working: Working) -> tuple[SamplesByKernel, int, list[str]]:
    program, options = build_kernels(place)
    kernels = measure.list_kernels(host, _count_threads())
    found: SamplesByKernel = {}
    lacking = [] if "-fopenmp" in options else ["no OpenMP: barriers and all cores' bandwidth were not measured"]
    rounds = [kernel for _ in range(ROUNDS) for kernel in kernels]
    steps = len(rounds) + 1 + len(tools.BANDWIDTHS)
    with working("measuring this machine", steps) as done:
        for number, kernel in enumerate(rounds):
            samples = measure.measure_kernel(program, kernel)
            if samples:
                found[kernel.name] = samples.merge_samples(found.get(kernel.name))
            done(number + 1)
        found |= _measure_messages(place, lacking)
        done(len(rounds) + 1)
        found |= _measure_bandwidths(measure.choose_working_sets(host)["memory"], measure.vector_width_bits(program))
        done(steps)
    if missing := [name for name in _NEEDED if name not in found]:
        raise UsageError(f"the kernels do not run on this machine: nothing measured of {', '.join(missing)}")
    return found, measure.vector_width_bits(program), lacking


def _measure_messages(place: Path, lacking: list[str]) -> SamplesByKernel:
    program = build_messages(place)
    times = measure.measure_messages(program) if program else {}
    if not times:
        why = "mpirun could not start two processes" if program else "no MPI was found (mpicc, mpirun)"
        lacking.append(f"{why}: messages were not measured; on Debian: apt install openmpi-bin libopenmpi-dev")
        return {}
    return {"message": times["latency"], "transfer": times["transfer"], "rendezvous": times["barrier"]}


def _measure_bandwidths(size: int, width: int) -> SamplesByKernel:
    """Return what likwid-bench finds of the memory, where it is installed."""
    tried = {
        name: tools.measure_bandwidth(kernel, size, _count_threads() if together else 1, width)
        for name, kernel, together in tools.BANDWIDTHS
    }
    return {name: samples for name, samples in tried.items() if samples}


def _count_threads() -> int:
    return len(os.sched_getaffinity(0))


def _build_report(machine: Machine, found: SamplesByKernel, target: Path, lacking: list[str]) -> Report:
    rows = tuple((name, one.best_s, round(one.cycles, 2), one.spread, len(one.seconds)) for name, one in found.items())
    columns = (
        Column("kernel"),
        Column("best", "s"),
        Column("cycles"),
        Column("middle half", "share"),
        Column("samples"),
    )
    parts = [Text(f"Written to {target}; use it with --machine {machine.name}")]
    if noise := describe_noise(list(found.items())):
        text = (
            f"The machine was not quiet: {len(noise)} of {len(found)} measurements have a middle half wider than "
            f"{NOISY:.0%}. The best sample counts; run the probe again when nothing else runs."
        )
        parts.append(Text("\n".join([text, *noise])))
    parts += [Text(line) for line in lacking]
    return Report(f"{machine.name}: {machine.title}", (*parts, Table("Measured, per operation", columns, rows)))


def build_kernels(folder: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the program of all kernels, built in ``folder``, and the options; raises ``UsageError``."""
    source = folder / "kernels.c"
    source.write_text(_load_source("kernels.c"), encoding="utf-8")
    target, cc = folder / "kernels", require_compiler()
    for options in _OPTIONS:
        done = run_child([cc, *options, str(source), "-o", str(target)], _BUILD_S)
        if done.status == 0:
            return target, options
    raise UsageError(f"{cc} can't build the kernels: {(done.failure or done.error_text).strip()[-300:]}")


def build_messages(folder: Path) -> Path | None:
    """Return the program that sends messages, None where there is no MPI to build it with."""
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        return None
    source, target = folder / "messages.c", folder / "messages"
    source.write_text(_load_source("messages.c"), encoding="utf-8")
    return target if run_child(["mpicc", "-O2", str(source), "-o", str(target)], _BUILD_S).status == 0 else None


def _load_source(name: str) -> str:
    return (files("advisor_processor.probe") / name).read_text(encoding="utf-8")
