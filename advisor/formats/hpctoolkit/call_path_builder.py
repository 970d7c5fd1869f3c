"""The call-path profile of an HPCToolkit database."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import InputError
from advisor.model.lists import join_clauses
from advisor.model.records import FloatArray, IntArray, Note, Processor
from advisor.trace.callpaths.records import CallPathNode, CallPaths, fold_regions
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.hpctoolkit.database import CallFrames, Database

REGION_LIMIT: Final = 100_000
OTHERS: Final = "other functions"
_ROOTS: Final = frozenset({"<program root>", "main thread"})
_UNKNOWN: Final = frozenset({"", "<unknown procedure>"})
_BINARY: Final = re.compile(r" \[([^\[\]\s]+)\]$")
_SHOWN: Final = 3  # contradictions that are repeated
_CPU_TIME_ONLY: Final = Note(
    "CPU time for wall time",
    "only CPU time was sampled: that of the busiest thread stands for the run time, and what no thread spent on a core "
    "(sleeping, waiting without polling, I/O) is not in it",
    0.2,
    "record again with hpcrun -e REALTIME -e CPUTIME",
)


def build_call_paths(database: Database, path: Path) -> CallPaths:
    """Return the call paths of ``database``; raises ``InputError`` for ``path`` where it holds no times or no run."""
    if not database.inclusive:
        raise InputError(path, "no time was sampled: record with hpcrun -e REALTIME -e CPUTIME")
    if len(set(_processor_keys(database))) < len(database.threads):
        text = "two profiles are the same thread of the same rank: of several runs, or of processes without ranks"
        raise InputError(path, f"{text}; record each run into a directory of its own (hpcrun -o)")
    order = sorted(range(len(database.threads)), key=lambda n: _processor_keys(database)[n])
    parent = np.array(database.frames.parent, dtype=np.int64)
    own = {kind: _subtract_children(values[:, order], parent) for kind, values in database.inclusive.items()}
    seconds = sum(own.values(), np.zeros(1)).sum(axis=1)
    nodes, folded = fold_regions(_build_nodes(database.frames), seconds, REGION_LIMIT, OTHERS)
    ranks = {thread.rank for thread in database.threads}
    wall_s = own.get("wall", own.get("cpu"))
    return CallPaths(
        program=database.program,
        run=_compute_identity(own),
        reader="hpctoolkit",
        processors=tuple(Processor(*_processor_keys(database)[n], database.threads[n].host) for n in order),
        nodes=nodes,
        wall_s=wall_s,
        cpu_s=own.get("cpu") if "wall" in own else None,
        status="estimated",
        ranks_expected=max(ranks) + 1 if max(ranks) + 1 > len(ranks) else None,
        notes=tuple(_build_notes(database, folded)),
    )


def _processor_keys(database: Database) -> list[tuple[int, int]]:
    return [(thread.rank, thread.number) for thread in database.threads]


def _subtract_children(inclusive: FloatArray, parent: IntArray) -> FloatArray:
    """Return the seconds of the frames themselves; samples are counted once, so that less than none is rounding."""
    own = inclusive.copy()
    inner = np.flatnonzero(parent >= 0)
    np.subtract.at(own, parent[inner], inclusive[inner])
    return np.where(own < 1e-9 * inclusive, 0.0, own)


def _build_nodes(frames: CallFrames) -> list[CallPathNode]:
    known: dict[tuple[str, str, str | None, int | None], tuple[str, Role]] = {}
    found = []
    columns = (frames.name, frames.module, frames.file, frames.line)
    for name, module, file, line, parent in zip(*columns, frames.parent, strict=True):
        key = (name, module, file, line)
        if key not in known:
            known[key] = _classify_function(name, module)
        shown, role = known[key]
        found.append(CallPathNode(shown, role, file, line, parent))
    return found


def _classify_function(name: str, module: str) -> tuple[str, Role]:
    """Return name and role of a function; one without a name is told by the binary that it is in."""
    if name in _ROOTS:
        return name, Role.ROOT
    if name in _UNKNOWN:
        return f"<unknown procedure> in {module.rsplit('/', 1)[-1] or 'an unknown binary'}", Role.USER
    # Of code without line numbers hpcstruct writes the binary behind the name: PMPI_Send [libmpi.so.12.1.1].
    binary = _BINARY.search(name)
    return classify_region(name[: binary.start()] if binary and binary[1] == module.rsplit("/", 1)[-1] else name)


def _compute_identity(own: dict[str, FloatArray]) -> str:
    digest = hashlib.sha256()
    for values in own.values():
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:12]


def _build_notes(database: Database, folded: int) -> Iterator[Note]:
    if database.doubts:
        text = f"{len(database.doubts)}: {join_clauses(database.doubts, _SHOWN)}"
        yield Note("contradictions in the database", text, 0.3)
    if database.accelerator_streams:
        yield Note("accelerators left out", f"accelerator streams ignored: {database.accelerator_streams:,}")
    if "wall" not in database.inclusive:
        yield _CPU_TIME_ONLY
    if folded:
        yield Note("many functions", f"the {folded:,} functions with the least time are shown as one, {OTHERS}")
