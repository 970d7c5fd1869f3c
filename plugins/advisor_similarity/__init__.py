"""What a program behaves like: parallel instructions on an oracle machine, and what is known of similar workloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.commands import Argument
from advisor.hookspecs import hookimpl

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.commands import Registry, Services
    from advisor.reports import Report

advisor_api = 1

_PARALLELISM = (
    Argument("command", "the program and its arguments, behind --", remainder=True),
    Argument("--once", "run it once only: no smoothability", bool),
    Argument("--rank", "observe this rank of a program that an MPI launcher starts", int),
    Argument("--histogram", "how many operations the cycles hold", bool),
    Argument("--sample", "schedule only this share of a long run, 0 to 1", float),
    Argument(
        "--window", "instructions scheduled without a break when sampling (default: 1000000)", int, default=1_000_000
    ),
    Argument("--functions", "how many functions to list (default: 10)", int, default=10),
    Argument("--no-stack", "let no instruction wait for the stack pointer", bool),
    Argument("--input", "a file for the program's standard input (default: nothing)", Path),
    Argument("--sysroot", "where the shared libraries of a program for another processor lie", Path),
    Argument("--tracer", "what runs the program (default: qemu)", choices=("qemu", "valgrind")),
    Argument("--save", "keep the workload in your library under this name"),
)


@hookimpl
def advisor_commands(register: Registry) -> None:
    """Register ``gapwatch parallelism``."""
    register(
        "parallelism",
        "Run a program on an oracle machine: how parallel its instructions are.",
        _PARALLELISM,
        _parallelism,
    )


def _parallelism(args: Namespace, services: Services) -> Report:
    from advisor_similarity.command import run

    return run(args, services)
