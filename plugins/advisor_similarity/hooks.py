"""What a program behaves like: parallel instructions on an oracle machine, and what is known of similar workloads."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.commands import Argument
from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from advisor.advice.earlier_runs import AppliedAction
    from advisor.extension.commands import CommandRegistry, CommandServices
    from advisor.model.records import Finding, Gap, KnownDocument, Profile
    from advisor.model.reports import Report

advisor_api = 1

#: What a library of workloads has near its beginning: a centroid, or features of a profile.
_WORKLOAD = rb'"centroid"|"profile":\s*\{\s*"(gap|time|region|cause) '
_MEASURES = ("mix", "centroid", "tanimoto", "matrix", "profile")
_PARALLELISM = (
    Argument("command", "the program and its arguments, behind --", remainder=True),
    Argument("--once", "run it once only: no smoothability", bool),
    Argument("--rank", "observe this rank of a program that an MPI launcher starts", int),
    Argument("--function", "schedule only what this function does and calls"),
    Argument("--after", "schedule only what follows the first return of this function, such as MPI_Init"),
    Argument("--object", "schedule only code of files named so, such as 'libsolver*'", several=True),
    Argument("--with-mpi", "with --rank: keep the MPI library's own instructions, such as its polling", bool),
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
    Argument("--machine", "hold it against the functional units of this machine model"),
    Argument("--save", "keep the workload in your library under this name"),
    Argument("--timed", "with --save: run it as it is, three times, and keep its CPU time as that on this machine"),
)
_SIMILAR = (
    Argument(
        "paths", "a program, a profile or the name of a known workload; a second one to compare with", several=True
    ),
    Argument("--by", "what to compare (default: mix, for profiles profile)", choices=_MEASURES),
    Argument("--count", "how many of the nearest to show (default: 5)", int, default=5),
    Argument("--keep", "keep the first in your library under this name, with what its history teaches"),
    Argument("--timed", "what the first took on machines, MACHINE=SECONDS; kept in your library", several=True),
    Argument("--predict", "what the first would take on this machine, from similar programs that were timed there"),
)
_SUITE = (
    Argument(
        "names", "workloads or programs that make up the suite (default: all that are known)", default="", several=True
    ),
    Argument("--by", "what to compare (default: mix)", choices=_MEASURES, default="mix"),
    Argument("--near", "members nearer to each other than this repeat each other (default: 0.1)", float, default=0.1),
    Argument("--mix", "how much of the site's time each takes, NAME=WEIGHT (default: all alike)", several=True),
    Argument("--representatives", "choose this many workloads that stand for all", int),
)


@hookimpl
def advisor_commands(register: CommandRegistry) -> None:
    """Register ``gapwatch parallelism``, ``gapwatch similar`` and ``gapwatch suite``."""
    for name, words, arguments, run in (
        (
            "parallelism",
            "run a program on an oracle machine: how parallel its instructions are",
            _PARALLELISM,
            _run_parallelism,
        ),
        ("similar", "find the known workloads that a program or profile resembles", _SIMILAR, _run_similar),
        (
            "suite",
            "say what a suite of workloads covers, what it repeats and which few stand for all",
            _SUITE,
            _run_suite,
        ),
    ):
        register(name, words, arguments, run)


def _run_parallelism(args: Namespace, services: CommandServices) -> Report:
    from advisor_similarity.parallelism_command import run_parallelism

    return run_parallelism(args, services)


def _run_similar(args: Namespace, services: CommandServices) -> Report:
    from advisor_similarity.similar_command import run_similar

    return run_similar(args, services)


def _run_suite(args: Namespace, services: CommandServices) -> Report:
    from advisor_similarity.suite_command import run_suite

    return run_suite(args, services)


@hookimpl
def advisor_document(path: Path) -> KnownDocument | None:
    """Return that a file holds workloads, by operations or profiles, which are kept in the user's library."""
    with path.open("rb") as stream:
        head = stream.read(4096)
    if not head.lstrip().startswith(b"[") or not re.search(_WORKLOAD, head):
        return None
    from advisor.support.disk_cache import system_folder
    from advisor_similarity import library

    return library.keep_workloads(path, system_folder("data"))


@hookimpl
def advisor_findings(profile: Profile, gaps: Sequence[Gap], applied: Sequence[AppliedAction]) -> Sequence[Finding]:
    """Return which known workloads the run resembles, and what actions won there."""
    from advisor.support.disk_cache import system_folder

    folder = system_folder("data")
    if not applied and not (folder / "workloads.json").exists() and "GAPWATCH_WORKLOADS" not in os.environ:
        return []
    from advisor_similarity import findings, library

    known = (*library.load_shared(library.find_shared_folders()), *library.load_own(folder))
    return findings.build_findings(profile, gaps, (*known, *library.build_experienced(applied)))
