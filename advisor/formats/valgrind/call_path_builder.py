"""Outputs of valgrind of one run -> call paths without times: what each function executed on each processor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from advisor.formats.valgrind import counts, detection
from advisor.formats.valgrind.annotations import read_annotation
from advisor.formats.valgrind.files import find_files, read_dump
from advisor.formats.valgrind.functions import build_functions
from advisor.formats.valgrind.notes import build_notes
from advisor.formats.valgrind.processes import find_processes
from advisor.model.errors import InputError
from advisor.support.stated_commands import state_command
from advisor.trace.callpaths.records import CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.formats.valgrind.dump import ValgrindDump
    from advisor.formats.valgrind.functions import FunctionList
    from advisor.formats.valgrind.processes import ProgramProcesses
    from advisor.model.records import FloatArray

_MPI: Final = tuple(role for role in Role if Role.INIT <= role <= Role.LOCAL and role != Role.COMM_OTHER)


@dataclass(frozen=True, slots=True)
class _ValgrindRun:
    """All files of a run, which processor each belongs to, and its functions."""

    dumps: tuple[ValgrindDump, ...]
    processor: tuple[int, ...]
    processes: ProgramProcesses
    functions: FunctionList


def read_outputs(path: Path, tool: Literal["cachegrind", "callgrind"]) -> CallPaths:
    """Return what a tool counted in each function; raises ``InputError`` with the line of what is damaged."""
    numbered = tool == "callgrind"
    pattern = detection.CALLGRIND if numbered else detection.CACHEGRIND
    if path.is_file() and detection.is_output(path, detection.TABLES[pattern]):
        return build_call_paths([read_annotation(path)], path.name, tool)
    files = find_files(path, pattern)
    return build_call_paths([read_dump(file, numbered) for file in files], path.name, tool)


def build_call_paths(dumps: Sequence[ValgrindDump], run: str, reader: str) -> CallPaths:
    """Return what was counted, by function (``nodes``) and processor; there are no times.

    Raises ``InputError`` where the files do not fit together.
    """
    events = dumps[0].events
    other = next((dump for dump in dumps if dump.events != events), None)
    if other is not None:
        raise InputError(other.path, f"counts other events than {dumps[0].path.name}")
    processes = find_processes(dumps)
    lanes = [(dump, q) for q, group in enumerate(processes.dumps) for dump in group]
    used = tuple(dump for dump, _ in lanes)
    whole = _ValgrindRun(used, tuple(q for _, q in lanes), processes, build_functions(used))
    tables = _build_tables(whole, events)
    return CallPaths(
        program=processes.program,
        executable=next((word for word in used[0].command.split() if "/" in word), None),
        run=run,
        reader=reader,
        processors=processes.processors,
        nodes=whole.functions.nodes,
        visits=_sum_visits(whole),
        parameters=state_command(used[0].command) if len({dump.command for dump in used}) == 1 else {},
        counts=tables,
        actual_s=float("nan"),
        ranks_expected=processes.ranks_expected,
        notes=build_notes(used, processes, whole.functions, tables),
    )


def _build_tables(run: _ValgrindRun, events: tuple[str, ...]) -> dict[str, FloatArray]:
    """Return the counts (functions, processors) by name, those of library code under names of their own."""
    parts = counts.name_counts(events)
    shape = (len(run.functions.nodes), len(run.processes.processors))
    found = {name: np.zeros(shape) for name in parts}
    for dump, q, functions in zip(run.dumps, run.processor, run.functions.of_places, strict=True):
        for name, column in zip(parts, counts.sum_columns(dump.counts, parts).T, strict=True):
            np.add.at(found[name][:, q], functions, column)
    library = run.functions.library
    for name in parts if library.any() else ():
        found[counts.LIBRARY + name] = np.where(library[:, None], found[name], 0.0)
        found[name] = np.where(library[:, None], 0.0, found[name])
    return found


def _sum_visits(run: _ValgrindRun) -> FloatArray | None:
    """Return how often functions were called (functions, processors), None where that was not recorded."""
    if all(dump.calls is None for dump in run.dumps):
        return None
    found = np.zeros((len(run.functions.nodes), len(run.processes.processors)))
    for dump, q, functions in zip(run.dumps, run.processor, run.functions.of_places, strict=True):
        if dump.calls is not None:
            np.add.at(found[:, q], functions, dump.calls)
    # Calls without those that MPI's wrappers (mpi_send_, PMPI_Send) pass on to each other
    nodes = run.functions.nodes
    called: dict[str, list[int]] = {}
    for number, node in enumerate(nodes):
        if node.role in _MPI:
            called.setdefault(node.name, []).append(number)
    for numbers in called.values():
        most = max(numbers, key=lambda number: float(found[number].sum()))
        found[[number for number in numbers if number != most]] = 0.0
    return found
