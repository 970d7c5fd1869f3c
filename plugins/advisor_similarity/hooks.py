"""What a program behaves like: parallel instructions on an oracle machine, and what is known of similar workloads."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.commands import Argument, CommandRegistry, DeferredFunction
from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.advice.earlier_runs import AppliedAction
    from advisor.model.records import Finding, Gap, KnownDocument, Profile

advisor_api = 1

#: What a library of workloads has near its beginning: a centroid, or features of a profile.
_WORKLOAD = rb'"centroid"|"profile":\s*\{\s*"(gap|time|region|cause) '
_MEASURES = ("mix", "centroid", "tanimoto", "matrix", "profile")
_PARALLELISM = (
    Argument("command", "program and arguments", remainder=True),
    Argument("--once", "run the program only once: no smoothability", bool),
    Argument("--rank", "observe this rank of a program started by an MPI launcher", int),
    Argument("--function", "schedule only this function and its callees", metavar="NAME"),
    Argument(
        "--after", "schedule only what follows the first return of this function, such as MPI_Init", metavar="NAME"
    ),
    Argument("--object", "schedule only code of matching files, such as 'libsolver*'", several=True, metavar="PATTERN"),
    Argument("--with-mpi", "with --rank: keep the MPI library's own instructions, such as polling", bool),
    Argument("--histogram", "show the distribution of operations per cycle", bool),
    Argument("--sample", "schedule only this share of a long run, 0 to 1", float),
    Argument("--window", "length of a sample in instructions (default: 1000000)", int, default=1_000_000),
    Argument("--functions", "number of functions to list (default: 10)", int, default=10),
    Argument("--no-stack", "ignore dependences through the stack pointer", bool),
    Argument("--input", "file for the program's standard input (default: none)", Path),
    Argument("--sysroot", "shared libraries of a program for another processor", Path, metavar="DIR"),
    Argument("--tracer", "tool that runs the program (default: qemu)", choices=("qemu", "valgrind")),
    Argument("--machine", "compare with the functional units of this machine model", metavar="MODEL"),
    Argument("--save", "save the workload in your library under this name", metavar="NAME"),
    Argument(
        "--timed",
        "with --save: also run the program three times untraced and save its CPU time under this machine name",
        metavar="MACHINE",
    ),
)
_SIMILAR = (
    Argument("paths", "executable, profile or name of a known workload; a second one to compare with", several=True),
    Argument("--by", "what to compare (default: mix, for profiles profile)", choices=_MEASURES),
    Argument("--count", "number of neighbours to show (default: 5)", int, default=5),
    Argument(
        "--keep", "save the first in your library under this name, with the lessons of its history", metavar="NAME"
    ),
    Argument("--timed", "run times of the first, to save in your library", several=True, metavar="MACHINE=SECONDS"),
    Argument(
        "--predict",
        "predict the run time of the first on this machine, from similar programs that were timed there",
        metavar="MACHINE",
    ),
)
_SUITE = (
    Argument("names", "workloads or programs in the suite (default: all known workloads)", default="", several=True),
    Argument("--by", "what to compare (default: mix)", choices=_MEASURES, default="mix"),
    Argument("--near", "distance below which workloads count as redundant (default: 0.1)", float, default=0.1),
    Argument(
        "--mix", "share of each workload in the site's time (default: equal)", several=True, metavar="NAME=WEIGHT"
    ),
    Argument("--representatives", "choose this many representative workloads", int),
)


@hookimpl
def advisor_commands(register: CommandRegistry) -> None:
    """Register ``gapwatch parallelism``, ``gapwatch similar`` and ``gapwatch suite``."""
    for name, words, arguments in (
        ("parallelism", "measure instruction-level parallelism: run a program on an oracle machine", _PARALLELISM),
        ("similar", "find the known workloads that a program or profile resembles", _SIMILAR),
        ("suite", "analyse a suite of workloads: coverage, redundancy, representatives", _SUITE),
    ):
        register(name, words, arguments, DeferredFunction(f"advisor_similarity.{name}_command", f"run_{name}"))


@hookimpl
def advisor_document(path: Path) -> KnownDocument | None:
    """Recognize a file of workloads, by operations or profiles, which are kept in the user's library."""
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
    from advisor_similarity import library, neighbours

    known = (*library.load_shared(library.find_shared_folders()), *library.load_own(folder))
    return neighbours.build_findings(profile, gaps, (*known, *library.build_experienced(applied)))
