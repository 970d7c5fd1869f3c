"""The command ``gapwatch parallelism``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import UsageError
from advisor.model.reports import Report, Text
from advisor.support.native_tools import find_compiler
from advisor_similarity.histogram import ROWS, frequent_cells
from advisor_similarity.library import build_entry, describe_storage, store_entry
from advisor_similarity.parallelism import observe_program, temporary_folder
from advisor_similarity.qemu_tracing import TracePlan
from advisor_similarity.regions import Region
from advisor_similarity.report import build_report

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandServices

#: Runs of which the quickest counts.
_TIMED_RUNS: Final = 3


def run_parallelism(args: Namespace, services: CommandServices) -> Report:
    """Observe the program of the command line and return what was found; raises ``UsageError``."""
    plan = _build_plan(args)
    words = f"{Path(plan.command[0]).name} on the oracle machine" if plan.command else ""
    with temporary_folder() as folder, services.show_progress(words):
        observed = observe_program(
            plan, services.user_folder("cache"), Path(folder), smoothability=not (args.once or plan.period)
        )
        if args.save:
            about = " ".join(plan.command)
            cells = frequent_cells(observed)
            entry = build_entry(observed.workload, args.save, about, cells, sampled=bool(plan.period))
            fails = observed.traced.exit_code != 0
            seconds = {args.timed: measure_cpu_seconds(plan.command, plan.stdin, fails=fails)} if args.timed else {}
            store_entry(services.user_folder("data"), replace(entry, seconds=seconds))
        machine = services.load_machine(args.machine) if args.machine else None
        found = build_report(observed, args.functions, machine)
        return replace(found, parts=(*found.parts, Text(describe_storage(args.save)))) if args.save else found


def _build_plan(args: Namespace) -> TracePlan:
    if args.sample is not None and not 0 < args.sample <= 1:
        raise UsageError(f"--sample {args.sample}: the share must be above 0 and at most 1")
    if args.tracer == "valgrind" and (args.sample or args.histogram or args.rank is not None):
        raise UsageError("--sample, --histogram and --rank need --tracer qemu")
    part = args.rank is not None or args.function or args.after or args.object
    if args.timed and (not args.save or part):
        raise UsageError(
            "--timed is kept with the workload: --save NAME; of one rank or region alone it can't be measured"
        )
    if args.function and args.after:
        raise UsageError("--function and --after name two different regions of a run: give one of them")
    region = Region(args.function or "", args.after or "", tuple(args.object or ()), _keep_communication(args))
    if args.tracer == "valgrind" and not region.is_whole:
        raise UsageError("--function, --after and --object need --tracer qemu")
    if args.functions < 1:
        raise UsageError(f"--functions {args.functions}: list at least 1")
    if args.input and not args.input.is_file():
        raise UsageError(f"--input {args.input}: there is no such file")
    if args.window < 1000:
        raise UsageError(f"--window {args.window}: at least 1000 instructions")
    sampled = args.sample is not None and args.sample < 1
    return TracePlan(
        command=tuple(args.command),
        rows=ROWS if args.histogram else 0,
        window=args.window if sampled else 0,
        period=round(args.window / args.sample) if sampled else 0,
        rank=args.rank,
        follow_stack=not args.no_stack,
        stdin=args.input or _own_input(),
        sysroot=args.sysroot,
        tracer="qemu" if not region.is_whole else args.tracer or _default_tracer(),
        region=region,
    )


def _keep_communication(args: Namespace) -> bool:
    """Return whether MPI's own instructions count: those of a rank that waits are mostly polling."""
    return args.rank is None or bool(args.with_mpi)


def _default_tracer() -> str:
    """Return ``qemu``, or ``valgrind`` where there is no compiler to build the tracer with but valgrind and numba."""
    at_hand = shutil.which("valgrind") is not None and find_spec("numba") is not None
    return "valgrind" if find_compiler() is None and at_hand else "qemu"


def _own_input() -> Path | None:
    """Return the file that standard input was redirected from, so that both runs can read it from its beginning."""
    try:
        path = Path(f"/proc/self/fd/{sys.stdin.fileno()}").resolve()
    except (OSError, ValueError):
        return None
    return path if path.is_file() else None


def measure_cpu_seconds(command: Sequence[str], stdin: Path | None = None, fails: bool = False) -> float:
    """Return the least CPU time of some runs of a command, in seconds, with that of all its children.

    Raises ``UsageError`` where a run fails; of a program that ``fails`` anyway, as old ones do whose ``main`` returns
    nothing in particular, where a signal ends it.
    """
    times = []
    for _ in range(_TIMED_RUNS):
        with (
            (stdin or Path(os.devnull)).open("rb") as file,
            subprocess.Popen(command, stdin=file, stdout=subprocess.DEVNULL) as process,
        ):
            _, status, used = os.wait4(process.pid, 0)  # to the microsecond; os.times counts ticks of 10 ms
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode < 0 or (process.returncode and not fails):
            raise UsageError(f"{command[0]} ended with exit code {process.returncode} when it was timed")
        times.append(used.ru_utime + used.ru_stime)
    return min(times)
