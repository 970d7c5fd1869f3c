"""The command ``gapwatch parallelism``."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.errors import UsageError
from advisor.model.reports import Text
from advisor_similarity.compiling import compiler
from advisor_similarity.histogram import ROWS, frequent_cells
from advisor_similarity.library import entry_of, keep, kept_as
from advisor_similarity.parallelism import observe, temporary_folder
from advisor_similarity.report import report
from advisor_similarity.tracing import Plan

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import Services
    from advisor.model.reports import Report


def run(args: Namespace, services: Services) -> Report:
    """Observe the program of the command line and return what was found; raises ``UsageError``."""
    plan = _plan(args)
    words = f"{Path(plan.command[0]).name} on the oracle machine" if plan.command else ""
    with temporary_folder() as folder, services.working(words):
        observed = observe(plan, services.folder("cache"), Path(folder), smoothability=not (args.once or plan.period))
        if args.save:
            about = " ".join(plan.command)
            entry = entry_of(observed.workload, args.save, about, frequent_cells(observed))
            keep(services.folder("data"), entry)
        found = report(observed, functions=args.functions)
        return replace(found, parts=(*found.parts, Text(kept_as(args.save)))) if args.save else found


def _plan(args: Namespace) -> Plan:
    if args.sample is not None and not 0 < args.sample <= 1:
        raise UsageError(f"--sample {args.sample}: a share of the run lies above 0 and is at most 1")
    if args.tracer == "valgrind" and (args.sample or args.histogram or args.rank is not None):
        raise UsageError("--sample, --histogram and --rank need --tracer qemu")
    if args.functions < 1:
        raise UsageError(f"--functions {args.functions}: list at least 1")
    if args.input and not args.input.is_file():
        raise UsageError(f"--input {args.input}: there is no such file")
    if args.window < 1000:
        raise UsageError(f"--window {args.window}: at least 1000 instructions")
    sampled = args.sample is not None and args.sample < 1
    return Plan(
        command=tuple(args.command),
        rows=ROWS if args.histogram else 0,
        window=args.window if sampled else 0,
        period=round(args.window / args.sample) if sampled else 0,
        rank=args.rank,
        follow_stack=not args.no_stack,
        stdin=args.input or _own_input(),
        sysroot=args.sysroot,
        tracer=args.tracer or _tracer(),
    )


def _tracer() -> str:
    """Return ``qemu``, or ``valgrind`` where there is no compiler to build the tracer with but valgrind and numba."""
    at_hand = shutil.which("valgrind") is not None and find_spec("numba") is not None
    return "valgrind" if compiler() is None and at_hand else "qemu"


def _own_input() -> Path | None:
    """Return the file that standard input was redirected from, so that both runs can read it from its beginning."""
    try:
        path = Path(f"/proc/self/fd/{sys.stdin.fileno()}").resolve()
    except (OSError, ValueError):
        return None
    return path if path.is_file() else None
