"""Kernels as call paths: below the process its kernels, a column for each process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.quality import HIDDEN
from advisor.model.errors import InputError
from advisor.model.lists import join_names
from advisor.model.records import Note, Processor
from advisor.model.units import format_seconds
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.kokkos_timer.kernel_files import Process

_SHARE: Final = 0.02
_SLACK_S: Final = 2e-3


def build_call_paths(processes: Sequence[Process], path: Path) -> CallPaths:
    """Return the kernels of all processes; raises ``InputError`` where none took any time."""
    names = sorted({kernel.name for process in processes for kernel in process.kernels})
    if not names or not max(process.wall_s for process in processes) > 0:
        raise InputError(path, "the timer saw no kernels")
    rows = {name: number for number, name in enumerate(names, start=1)}
    nodes = (CallPathNode("not in kernels", Role.ROOT), *(CallPathNode(name, Role.USER, parent=0) for name in names))
    wall, calls = np.zeros((len(nodes), len(processes))), np.zeros((len(nodes), len(processes)))
    for column, process in enumerate(processes):
        for kernel in process.kernels:
            wall[rows[kernel.name], column] += kernel.seconds
            calls[rows[kernel.name], column] += kernel.calls
        wall[0, column] = max(process.wall_s - wall[1:, column].sum(), 0.0)
        calls[0, column] = 1
    return CallPaths(
        program="",
        run=path.name,
        reader="kokkos_timer",
        processors=tuple(Processor(rank) for rank in range(len(processes))),
        nodes=nodes,
        wall_s=wall,
        visits=calls,
        actual_s=max(float(wall[:, column].sum()) for column in range(len(processes))),
        language="cxx",
        notes=tuple(_describe(processes)),
    )


def _describe(processes: Sequence[Process]) -> Iterator[Note]:
    """Yield what the files leave open, and where times contradict each other."""
    if len(processes) > 1:
        text = "what is in no kernel holds calls of MPI and waiting as well: that counts as work here"
        yield Note(HIDDEN, text, 0.1, "kokkos-tools: libkp_space_time_stack.so, or a trace")
        yield Note(
            "ranks numbered by process", "ranks are numbered in the order of host and process, as files are called"
        )
    inside = [(sum(kernel.seconds for kernel in process.kernels), process.wall_s) for process in processes]
    over = max(inside_s - wall_s * (1 + _SHARE) for inside_s, wall_s in inside)
    if over > _SLACK_S:
        yield Note("contradictory times", f"kernels take {format_seconds(over)} longer than the process", 0.3)
    regions = sorted({region.name for process in processes for region in process.regions})
    if regions:
        text = f"regions contain kernels, and the file does not tell which: {join_names(regions, 3)}"
        yield Note("regions left out", text)
