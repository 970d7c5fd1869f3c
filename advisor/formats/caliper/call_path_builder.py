"""Records of Caliper's files as call paths: summed up over iterations, one column for each rank and thread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from advisor.formats import rank_extremes
from advisor.formats.caliper import checks, run_globals, times
from advisor.formats.caliper.cells import OTHER, RecordCells
from advisor.formats.caliper.hardware import read_hardware_counts
from advisor.formats.caliper.metrics import select_metrics, units_of
from advisor.formats.caliper.tables import RecordTable, RegionPath, RegionPaths
from advisor.formats.rank_extremes import Extremes
from advisor.formats.rank_files import compare_origins
from advisor.formats.rank_numbers import find_ranks_by_name
from advisor.model.errors import InputError
from advisor.model.records import DEVICES_UNSEEN, FloatArray, IntArray, Note, Processor
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role

#: Of that share of the mean times the ranks the sum of a region falls short where some ranks never were in it.
_ALL: Final = 1 - 0.5 / 10_000

#: What tells a model of devices: names of globals, files of libraries, and functions of its interface.
_MODELS: Final = {
    "CUDA": (r"(?:.*[_.])?(?:cuda|nvcc)(?:[_.].*)?", r"libcuda(?:rt)?[.-]", r"cu(?:da)?[A-Z]\w+"),
    "HIP": (r"(?:.*[_.])?(?:hip|rocm)(?:[_.].*)?", r"lib(?:amdhip64|hsa-runtime64)[.-]", r"hip[A-Z]\w+"),
    "Level Zero": (r"(?:.*[_.])?level_zero(?:[_.].*)?", r"libze_loader[.-]", r"ze[A-Z]\w+"),
}
_LIBRARIES: Final = "libraries"
#: Such a build may also run on the host alone, which nothing in the file tells.
_PENALTY: Final = 0.3
_HOW: Final = "CALI_CONFIG=cuda-activity-report ./PROGRAM  # of AMD: CALI_CONFIG=rocm-activity-report ./PROGRAM"
#: The regions that are kept apart, and the numbers that each table of regions and processors may have.
_REGIONS: Final = 100_000
_CELLS: Final = 20_000_000
_OUTSIDE: Final = "outside of all regions"


def build_call_paths(tables: Sequence[RecordTable], path: Path) -> CallPaths:
    """Return the call paths of the run that was recorded in ``tables``, the files at ``path``.

    Raises ``InputError`` when there are no times, or when files hold the same ranks.
    """
    if not any(len(table.path) for table in tables):
        raise InputError(path, "the profile holds no records")
    told: dict[str, str] = {}
    for table in tables:
        told.update({name: text for name, text in table.globals.items() if name not in told})
    processors, columns = _build_processors(tables, path)
    nodes, rows = _build_nodes(tables, len(processors))
    shape = (len(nodes), len(processors))
    cells = [
        RecordCells(
            table, select_metrics(table.values, units_of(table.values, table.units)), row * shape[1] + column, shape
        )
        for table, row, column in zip(tables, rows, columns, strict=True)
    ]
    for each in cells:
        if each.choice.time_metric is None:
            raise InputError(each.table.file, "the file holds no times: switch on Caliper's service timer")
    ranks = run_globals.find_rank_count(told)
    summed = times.has_summed_ranks(cells, ranks)
    extremes = extremes_of(cells[0], nodes, ranks) if summed and ranks else None
    if extremes is not None and ranks is not None:
        wall = rank_extremes.spread_over_ranks(extremes, nodes, ranks)
        processors = tuple(Processor(rank) for rank in range(ranks))
        shortest: FloatArray | None = rank_extremes.shortest_call_s(extremes, nodes, ranks)
    else:
        shortest = None if summed else _find_shortest_calls(cells)
        wall = times.compute_own_seconds(cells, nodes, ranks if summed and ranks else 1)
    return CallPaths(
        program=run_globals.find_program(told),
        run=run_globals.find_start_time(told) or path.name,
        reader="caliper",
        processors=processors,
        nodes=nodes,
        wall_s=wall,
        visits=None if summed else _sum_visits(cells),
        shortest_s=shortest,
        counts=read_hardware_counts(cells, nodes, wall),
        actual_s=None if extremes is None else rank_extremes.longest_run_s(extremes, nodes),
        status="estimated" if summed else "measured",
        started=run_globals.find_start_time(told),
        ranks_expected=ranks,
        job=run_globals.find_job(told),
        build=run_globals.find_build(told),
        parameters=run_globals.select_parameters(told),
        notes=(
            *checks.build_notes(cells, nodes, wall, summed, extremes is not None),
            *note_unseen_devices(told, nodes),
            *compare_origins([run_globals.read_origin(table.file.name, table.globals) for table in tables]),
        ),
    )


def _build_processors(tables: Sequence[RecordTable], path: Path) -> tuple[tuple[Processor, ...], list[IntArray]]:
    """Return the processors, and for each table the processor of each record; those of files without ranks by name."""
    ranks = [np.maximum(table.rank, 0) for table in tables]
    if len(tables) > 1 and all((table.rank < 0).all() for table in tables):
        names = [table.file.stem for table in tables]
        numbers = find_ranks_by_name(names, [None] * len(tables)) or range(len(tables))
        ranks = [np.full(len(rank), n) for n, rank in zip(numbers, ranks, strict=True)]
    span = max(int(table.thread.max(initial=0)) for table in tables) + 1
    keys = [rank * span + np.maximum(table.thread, 0) for rank, table in zip(ranks, tables, strict=True)]
    seen: dict[int, RecordTable] = {}
    hosts: dict[int, str | None] = {}
    for table, key in zip(tables, keys, strict=True):
        mine = np.unique(np.unique(key) // span).tolist()
        for rank in mine:
            if rank in seen:
                raise InputError(path, f"rank {rank} is in {seen[rank].file.name} and {table.file.name}: several runs")
        seen.update(dict.fromkeys(mine, table))
        hosts.update(dict.fromkeys(mine, run_globals.find_host(table.globals) if len(mine) == 1 else None))
    known = np.unique(np.concatenate([np.unique(key) for key in keys]))
    found = tuple(Processor(key // span, key % span, hosts[key // span]) for key in known.tolist())
    return found, [np.searchsorted(known, key) for key in keys]


def _build_nodes(tables: Sequence[RecordTable], processors: int) -> tuple[tuple[CallPathNode, ...], list[IntArray]]:
    """Return the call paths of all tables, and for each table the one of each record; too many are put together."""
    most = min(_REGIONS, max(_CELLS // processors, 10))
    paths = RegionPaths()
    rows = []
    outside = any((table.path < 0).any() for table in tables)
    first = paths.add_path(RegionPath(_OUTSIDE, Role.ROOT, -1)) if outside else -1
    other = -1
    for table in tables:
        numbers = np.full(len(table.places) + 1, first, dtype=np.int64)
        for n, place in enumerate(table.places):
            if len(paths.places) >= most and other < 0:
                other = paths.add_path(RegionPath(OTHER, Role.USER, -1))
            parent = int(numbers[place.parent]) if place.parent >= 0 else first
            full = len(paths.places) > most or parent == other >= 0
            numbers[n] = other if full else paths.add_path(RegionPath(place.name, place.role, parent))
        rows.append(numbers[table.path])
    return tuple(CallPathNode(place.name, place.role, parent=place.parent) for place in paths.places), rows


def _sum_visits(cells: Sequence[RecordCells]) -> FloatArray | None:
    """Return how often regions were entered (nodes, processors), None where a file does not tell."""
    total = np.zeros(cells[0].shape)
    for each in cells:
        values: Mapping[str, FloatArray] = each.table.values
        if each.choice.calls is not None:
            total += each.sum_cells(each.select_ended(values[each.choice.calls]))
        elif each.table.ends is not None:
            total += each.sum_cells(each.select_ended(values.get("count", np.ones(len(each.cell)))))
        else:
            return None
    return total


def _find_shortest_calls(cells: Sequence[RecordCells]) -> FloatArray | None:
    """Return the shortest single call (nodes, processors) in seconds, NaN where no file tells."""
    shape = cells[0].shape
    least = np.full(shape[0] * shape[1], np.inf)
    for each in cells:
        if each.table.ends is None:
            continue
        values = each.select_ended(each.to_seconds(each.choice.shortest_call or each.choice.shortest))
        known = ~np.isnan(values)
        np.minimum.at(least, each.cell[known], values[known])
    return None if np.isinf(least).all() else np.where(np.isinf(least), np.nan, least).reshape(shape)


def note_unseen_devices(told: Mapping[str, str], nodes: Iterable[CallPathNode]) -> tuple[Note, ...]:
    """Return the doubt of a profile that holds the host's part of a program for devices; ``told`` are its globals."""
    names = {node.name for node in nodes}
    models = [
        model
        for model, (name, library, function) in _MODELS.items()
        if any(re.fullmatch(name, key, re.IGNORECASE) for key in told)
        or re.search(library, told.get(_LIBRARIES, ""))
        or any(re.fullmatch(function, called) for called in names)
    ]
    if not models:
        return ()
    text = (
        f"the program is made for {', '.join(models)}, and what devices did is not in the profile: time in which the "
        "host waits for them counts as computation"
    )
    return (Note(DEVICES_UNSEEN, text, _PENALTY, _HOW),)


def extremes_of(cells: RecordCells, nodes: Sequence[CallPathNode], ranks: int) -> Extremes | None:
    """Return least, mean and most over all ``ranks`` for each node; None where the file does not hold all three.

    A rank that never was in a region has no part in the file's means: then the least is zero.
    """
    choice = cells.choice
    if choice.mean is None or choice.least is None or choice.most is None:
        return None
    least, mean, most = (
        cells.sum_cells(cells.to_seconds(each))[:, 0] for each in (choice.least, choice.mean, choice.most)
    )  # fmt: skip
    if choice.inclusive is not None and choice.inclusive.depth == choice.mean.depth:
        together = cells.sum_cells(cells.to_seconds(choice.inclusive))[:, 0]
        least = np.where(together < _ALL * ranks * mean, 0.0, least)
        mean = together / ranks
    return _with_unrecorded(Extremes(least, mean, np.maximum(most, mean)), nodes)


def _with_unrecorded(found: Extremes, nodes: Sequence[CallPathNode]) -> Extremes:
    """Return ``found`` with what is below the nodes whose records hold only their own time, or that have none."""
    least, mean, most = found.least.copy(), found.mean.copy(), found.most.copy()
    below: dict[int, list[int]] = {}
    for n in range(len(nodes) - 1, -1, -1):
        here = below.get(n, [])
        if here and (nodes[n].role == Role.ROOT or mean[n] <= 0):
            certain = least[n] + float(least[here].sum())
            mean[n] += float(mean[here].sum())
            most[n] = max(float(mean[n]), certain + float((most - least)[here].max()))
            least[n] = certain
        if nodes[n].parent >= 0:
            below.setdefault(nodes[n].parent, []).append(n)
    return Extremes(least, mean, most)
