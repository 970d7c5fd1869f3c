"""Reports of gprof as functions with CPU seconds and calls, one column for each process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from advisor.formats.gprof.checks import build_notes
from advisor.formats.gprof.report import GprofReport, split_source_place
from advisor.formats.rank_numbers import find_ranks_by_name
from advisor.model.errors import InputError
from advisor.model.records import Note, Processor
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

_REGIONS: Final = 100_000
_OTHER: Final = CallPathNode("other functions")
#: What ``-pg`` puts into every function.
_OWN: Final = frozenset({"mcount", "_mcount", "__mcount", "__mcount_internal", "_mcount_private", "__fentry__"})
_MPI: Final = re.compile(r"p?mpi_\w+", re.IGNORECASE)
_CPU_ONLY: Final = Note(
    "CPU time only",
    "gprof samples the CPU time of the program's own functions: waiting, communication and I/O are not in it",
    0.0,
    "gapwatch run -- CMD, or a tool that measures wall time",
)


def build_call_paths(reports: Sequence[GprofReport], path: Path) -> CallPaths:
    """Return the functions of ``reports``, a process each; raises ``InputError`` when none has any.

    gprof samples CPU time in the program's own functions. There is no wall time, and so no waiting.
    """
    functions = [list(_iterate_functions(report)) for report in reports]
    if not any(functions):
        raise InputError(path, "the report holds no functions: the program ended too early, or was built without -pg")
    keys = {node: 0.0 for each in functions for node, _, _ in each}
    for each in functions:
        for node, seconds, _ in each:
            keys[node] += seconds
    kept = sorted(keys, key=lambda node: -keys[node])[: _REGIONS - 1] if len(keys) > _REGIONS else list(keys)
    numbers = {node: n for n, node in enumerate(kept)}
    nodes = (*kept, _OTHER) if len(kept) < len(keys) else tuple(kept)
    shape = (len(nodes), len(reports))
    cpu, calls = np.zeros(shape), np.zeros(shape)
    for column, each in enumerate(functions):
        for node, seconds, called in each:
            row = numbers.get(node, len(kept))
            cpu[row, column] += seconds
            calls[row, column] += called
    folded = [] if len(kept) == len(keys) else [_note_folded(len(kept))]
    return CallPaths(
        program="",
        run=path.name,
        reader="gprof",
        processors=tuple(Processor(rank) for rank in _find_ranks(reports)),
        nodes=nodes,
        cpu_s=cpu,
        visits=calls,
        actual_s=float("nan"),
        status="estimated",
        notes=(_CPU_ONLY, *build_notes(reports), *folded),
    )


def _note_folded(kept: int) -> Note:
    return Note("too many functions", f"only the {kept:,} functions with the most time are kept apart", 0.1)


def _iterate_functions(report: GprofReport) -> Iterator[tuple[CallPathNode, float, float]]:
    """Yield each function with its seconds and calls; from the call graph where there is no flat profile."""
    if report.rows:
        for row in report.rows:
            yield _build_node(row.name), row.self_s, float(row.calls or 0)
        return
    for entry in (report.entries or {}).values():
        if not entry.name.endswith(" as a whole>"):
            yield _build_node(entry.name), entry.self_s, float(entry.calls or 0)


def _build_node(text: str) -> CallPathNode:
    name, file, line = split_source_place(text)
    if name in _OWN:
        return CallPathNode(name, Role.TOOL)
    name, role = classify_region(name) if _MPI.fullmatch(name) else (name, Role.USER)
    return CallPathNode(name, role, file, line)


def _find_ranks(reports: Sequence[GprofReport]) -> list[int]:
    """Return the ranks of the processes: those that headings or names of files tell, else their order."""
    nobody = [None] * len(reports)
    for texts in ([report.label for report in reports], [report.file.name for report in reports]):
        ranks = find_ranks_by_name(texts, nobody)
        if ranks is not None:
            return ranks
    return list(range(len(reports)))
