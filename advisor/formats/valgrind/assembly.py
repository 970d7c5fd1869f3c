"""Outputs of valgrind of one run -> call paths without times: what each function executed on each processor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.valgrind import counts
from advisor.formats.valgrind.functions import functions_of
from advisor.formats.valgrind.notes import notes
from advisor.formats.valgrind.processes import processes_of
from advisor.model.errors import InputError
from advisor.trace.callpaths.records import CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.formats.valgrind.dump import Dump
    from advisor.formats.valgrind.functions import Functions
    from advisor.formats.valgrind.processes import Processes
    from advisor.model.records import FloatArray
    from advisor.trace.callpaths.records import Node

_MPI: Final = tuple(role for role in Role if Role.INIT <= role <= Role.LOCAL and role != Role.COMM_OTHER)


@dataclass(frozen=True, slots=True)
class _Run:
    """All files of a run, which processor each belongs to, and its functions."""

    dumps: tuple[Dump, ...]
    processor: tuple[int, ...]
    processes: Processes
    functions: Functions


def call_paths(dumps: Sequence[Dump], run: str, reader: str) -> CallPaths:
    """Return what was counted, by function (``nodes``) and processor; there are no times.

    Raises ``InputError`` where the files do not fit together.
    """
    events = dumps[0].events
    other = next((dump for dump in dumps if dump.events != events), None)
    if other is not None:
        raise InputError(other.path, f"counts other events than {dumps[0].path.name}")
    processes = processes_of(dumps)
    lanes = [(dump, q) for q, group in enumerate(processes.dumps) for dump in group]
    used = tuple(dump for dump, _ in lanes)
    whole = _Run(used, tuple(q for _, q in lanes), processes, functions_of(used))
    tables = _tables(whole, events)
    return CallPaths(
        program=processes.program,
        run=run,
        reader=reader,
        processors=processes.processors,
        nodes=whole.functions.nodes,
        visits=_visits(whole),
        counts=tables,
        actual_s=float("nan"),
        ranks_expected=processes.expected,
        notes=notes(used, processes, whole.functions, tables),
    )


def _tables(run: _Run, events: tuple[str, ...]) -> dict[str, FloatArray]:
    """Return the counts (functions, processors) by name, those of library code under names of their own."""
    parts = counts.named(events)
    shape = (len(run.functions.nodes), len(run.processes.processors))
    found = {name: np.zeros(shape) for name in parts}
    for dump, q, functions in zip(run.dumps, run.processor, run.functions.of_places, strict=True):
        for name, column in zip(parts, counts.columns(dump.counts, parts).T, strict=True):
            np.add.at(found[name][:, q], functions, column)
    library = run.functions.library
    for name in parts if library.any() else ():
        found[counts.LIBRARY + name] = np.where(library[:, None], found[name], 0.0)
        found[name] = np.where(library[:, None], 0.0, found[name])
    return found


def _visits(run: _Run) -> FloatArray | None:
    """Return how often functions were called (functions, processors), None where that was not recorded."""
    if all(dump.calls is None for dump in run.dumps):
        return None
    found = np.zeros((len(run.functions.nodes), len(run.processes.processors)))
    for dump, q, functions in zip(run.dumps, run.processor, run.functions.of_places, strict=True):
        if dump.calls is not None:
            np.add.at(found[:, q], functions, dump.calls)
    return _called_once(run.functions.nodes, found)


def _called_once(nodes: Sequence[Node], calls: FloatArray) -> FloatArray:
    """Return ``calls`` without those that MPI's wrappers (``mpi_send_``, ``PMPI_Send``) pass on to each other."""
    called: dict[str, list[int]] = {}
    for number, node in enumerate(nodes):
        if node.role in _MPI:
            called.setdefault(node.name, []).append(number)
    for numbers in called.values():
        most = max(numbers, key=lambda number: float(calls[number].sum()))
        calls[[number for number in numbers if number != most]] = 0.0
    return calls
