"""The Profile of a call-path profile: call paths folded to regions, library calls split into categories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import InputError
from advisor.model.records import FloatArray, Phase, Profile, Region, Status
from advisor.trace.callpaths import splitting, tree
from advisor.trace.callpaths.causes import collect_causes
from advisor.trace.callpaths.tree import RegionRows, build_rows
from advisor.trace.events import Role
from advisor.trace.regions import is_process_wait

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.trace.callpaths.records import CallPaths
    from advisor.trace.callpaths.splitting import LibraryCall
    from advisor.trace.callpaths.tree import CutTree

#: What a processor spent outside of everything that was recorded.
_UNRECORDED: Final = "not recorded"
_MPI: Final = tuple(role for role in Role if Role.INIT <= role <= Role.LOCAL)
_THREADS: Final = (Role.OMP_PARALLEL, Role.OMP_BARRIER, Role.OMP_WORK, Role.OMP_LOCK)
_COLLECTIVES: Final = (Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN)


@dataclass(frozen=True, slots=True)
class _ProfileSource:
    """The call paths, cut at library calls, the rows of the profile that they become, and the calls."""

    paths: CallPaths
    tree: CutTree
    rows: RegionRows
    calls: tuple[LibraryCall, ...]


def from_call_paths(paths: CallPaths, path: Path | str) -> Profile:
    """Return the profile of ``paths``, without phases; raises ``InputError`` for ``path`` when it holds no run."""
    if not paths.nodes or not paths.processors:
        raise InputError(
            path, "the profile holds no regions" if paths.processors else "the profile holds no processors"
        )
    cut = tree.cut_at_library_calls(paths)
    source = _ProfileSource(paths, cut, build_rows(paths, cut), splitting.split_library_calls(paths, cut))
    outside = _sum_outside_phases(source)
    return Profile(
        program=paths.program,
        run=paths.run,
        reader=paths.reader,
        actual_s=_wall_time(source, path),
        processors=paths.processors,
        regions=_build_regions(source),
        phases=(_build_phase(source),),
        status=_measure_status(source),
        started=paths.started,
        cores=paths.cores,
        language=paths.language,
        executable=paths.executable,
        paradigms=_find_paradigms(paths),
        parameters=paths.parameters,
        outside=outside,
        counts=_build_counts(source),
        causes=collect_causes(source.paths, source.tree, source.rows, source.calls),
        notes=paths.notes,
        ranks_expected=paths.ranks_expected,
        job=paths.job,
        build=paths.build,
    )


def _wall_time(source: _ProfileSource, path: Path | str) -> float:
    """Return the wall time of the run: what the tool says, else that of the processor with the most seconds."""
    if source.paths.actual_s is not None:
        return source.paths.actual_s
    longest = float(source.tree.wall_s.sum(axis=0).max())
    if source.paths.wall_s is None or longest <= 0:
        raise InputError(path, "the profile holds no times")
    return longest


def _build_regions(source: _ProfileSource) -> tuple[Region, ...]:
    """Return the regions of the profile; the program's root has the program's name."""
    found = []
    for node, threaded in zip(source.rows.nodes.tolist(), source.rows.threaded.tolist(), strict=True):
        region = source.paths.nodes[node]
        name = source.paths.program if region.role == Role.ROOT and source.paths.program else region.name
        found.append(Region(name, region.file, region.line, threaded))
    return tuple(found)


def _build_phase(source: _ProfileSource) -> Phase:
    """Return the whole run as one phase with what was measured."""
    paths, rows = source.paths, source.rows
    arrays: dict[str, FloatArray] = {}
    if paths.wall_s is not None:
        arrays["wall_s"] = rows.sum_node_values(_rows_inside_phases(source))
        for name in ("wait_s", "sync_s", "transfer_s", "io_s"):
            arrays[name] = rows.sum_node_values([(call.node, getattr(call, name)) for call in source.calls])
    if paths.cpu_s is not None:
        works = np.array([node.role in tree.WORKING for node in paths.nodes])
        own = source.tree.owner == np.arange(len(works))
        counted = (works & own)[:, None] & np.logical_not(_is_outside_phases(source))
        arrays["cpu_s"] = rows.sum_by_row(np.where(counted, paths.cpu_s, 0.0))
    if "wall_s" in arrays and "cpu_s" in arrays:
        known = sum((arrays[name] for name in ("cpu_s", "wait_s", "sync_s", "transfer_s", "io_s")), np.zeros(1))
        arrays["os_s"] = arrays["wall_s"] - known
    shaped = {name: values[:, :, None] for name, values in arrays.items()}
    return Phase("the whole run", "whole", np.arange(len(rows.nodes)), shaped)


def _rows_inside_phases(source: _ProfileSource) -> Iterator[tuple[int, FloatArray]]:
    """Yield the nodes with seconds in the phase, and those of each processor: a root works on first threads only."""
    for n, node in enumerate(source.paths.nodes):
        if node.role == Role.ROOT:
            yield n, np.where(source.rows.workers, 0.0, source.tree.wall_s[n])
        elif node.role not in splitting.OUTSIDE:
            yield n, source.tree.wall_s[n]


def _is_outside_phases(source: _ProfileSource) -> npt.NDArray[np.bool_]:
    """Return the cells (nodes, processors) whose seconds lie in no phase."""
    parts = np.array([node.role in splitting.OUTSIDE for node in source.paths.nodes])
    roots = np.array([node.role == Role.ROOT for node in source.paths.nodes])
    workers = np.array([processor.thread > 0 for processor in source.paths.processors])
    cells: npt.NDArray[np.bool_] = parts[:, None] | (roots[:, None] & workers[None, :])
    return cells


def _sum_outside_phases(source: _ProfileSource) -> dict[str, FloatArray]:
    """Return the seconds of each processor in no phase: start-up, shutdown, the tool, idle threads, and the rest."""
    paths, wall = source.paths, source.tree.wall_s
    if paths.wall_s is None:
        return {}
    found: dict[str, FloatArray] = {}
    workers = np.array([processor.thread > 0 for processor in paths.processors])
    for n, node in enumerate(paths.nodes):
        name = splitting.OUTSIDE.get(node.role)
        if name:
            found[name] = found.get(name, np.zeros(len(workers))) + wall[n]
        if node.role == Role.ROOT and workers.any():
            found["idle"] = found.get("idle", np.zeros(len(workers))) + np.where(workers, wall[n], 0.0)
    rest = np.maximum((paths.actual_s or float(wall.sum(axis=0).max())) - wall.sum(axis=0), 0.0)
    found["idle"] = found.get("idle", np.zeros(len(workers))) + np.where(workers, rest, 0.0)
    found[_UNRECORDED] = np.where(workers, 0.0, rest)
    return {name: seconds for name, seconds in found.items() if seconds.any()}


def _measure_status(source: _ProfileSource) -> dict[str, Status]:
    """Return how each measure came about."""
    guessed = any(call.estimated for call in source.calls)
    split: Status = "estimated" if guessed else source.paths.status
    times = source.paths.status
    return {
        "wall_s": times, "cpu_s": times, "io_s": times, "os_s": times,
        "wait_s": split, "sync_s": split, "transfer_s": split,
    }  # fmt: skip


def _build_counts(source: _ProfileSource) -> dict[str, FloatArray]:
    """Return the counts (rows, processors): calls, messages, bytes, I/O operations and what else the tool counted."""
    paths, rows = source.paths, source.rows
    found = {name: rows.sum_by_row(values) for name, values in paths.counts.items()}
    if paths.visits is None:
        return found
    found["calls"] = rows.sum_by_row(paths.visits)
    role = np.array([node.role for node in paths.nodes])
    sends = np.array([node.role in (Role.SEND, Role.SENDRECV) or _is_posted_send(node.name) for node in paths.nodes])
    groups = {"messages": ("bytes", sends), "collectives": ("", np.isin(role, _COLLECTIVES))}
    for name, (moved, mine) in {**groups, "io_operations": ("io_bytes", role == Role.IO)}.items():
        if not mine.any():
            continue
        found.setdefault(name, rows.sum_by_row(np.where(mine[:, None], paths.visits, 0.0)))
        if moved and paths.bytes is not None:
            found.setdefault(moved, rows.sum_by_row(np.where(mine[:, None], paths.bytes, 0.0)))
    return found


def _is_posted_send(name: str) -> bool:
    return name in ("MPI_Isend", "MPI_Ibsend", "MPI_Issend", "MPI_Irsend", "MPI_Isendrecv")


def _find_paradigms(paths: CallPaths) -> tuple[str, ...]:
    """Return the programming models that the regions show."""
    used = {node.role for node in paths.nodes if not is_process_wait(node.name)}
    models = {"mpi": bool(used & set(_MPI)) or paths.processors[-1].rank > 0, "openmp": bool(used & set(_THREADS))}
    return tuple(name for name, present in models.items() if present)
