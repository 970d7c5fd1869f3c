"""Records of Caliper's files as call paths: summed up over iterations, one column for each rank and thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.caliper import checks, facts, times
from advisor.formats.caliper.cells import OTHER, Cells
from advisor.formats.caliper.metrics import choose
from advisor.formats.caliper.tables import Paths, Place
from advisor.formats.rank_numbers import by_name
from advisor.model.errors import InputError
from advisor.model.records import Processor
from advisor.trace.callpaths.records import CallPaths, Node
from advisor.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from advisor.formats.caliper.tables import Table
    from advisor.model.records import FloatArray, IntArray

#: The regions that are kept apart, and the numbers that each table of regions and processors may have.
_REGIONS: Final = 100_000
_CELLS: Final = 20_000_000
_OUTSIDE: Final = "outside of all regions"


def call_paths(tables: Sequence[Table], path: Path) -> CallPaths:
    """Return the call paths of the run that was recorded in ``tables``, the files at ``path``.

    Raises ``InputError`` when there are no times, or when files hold the same ranks.
    """
    if not any(len(table.path) for table in tables):
        raise InputError(path, "the profile holds no records")
    told: dict[str, str] = {}
    for table in tables:
        told.update({name: text for name, text in table.globals.items() if name not in told})
    processors, columns = _processors(tables, path)
    nodes, rows = _nodes(tables, len(processors))
    shape = (len(nodes), len(processors))
    cells = [
        Cells(table, choose(table.values, table.units), row * shape[1] + column, shape)
        for table, row, column in zip(tables, rows, columns, strict=True)
    ]
    for each in cells:
        if each.choice.time is None:
            raise InputError(each.table.file, "the file holds no times: switch on Caliper's service timer")
    ranks = facts.ranks(told)
    summed = times.are_summed(cells, ranks)
    wall = times.own(cells, nodes, ranks if summed and ranks else 1)
    return CallPaths(
        program=facts.program(told),
        run=facts.started(told) or path.name,
        reader="caliper",
        processors=processors,
        nodes=nodes,
        wall_s=wall,
        visits=None if summed else _visits(cells),
        shortest_s=None if summed else _shortest(cells),
        status="estimated" if summed else "measured",
        started=facts.started(told),
        ranks_expected=ranks,
        parameters=facts.parameters(told),
        notes=checks.notes(cells, nodes, wall, summed),
    )


def _processors(tables: Sequence[Table], path: Path) -> tuple[tuple[Processor, ...], list[IntArray]]:
    """Return the processors, and for each table the processor of each record; those of files without ranks by name."""
    ranks = [np.maximum(table.rank, 0) for table in tables]
    if len(tables) > 1 and all((table.rank < 0).all() for table in tables):
        names = [table.file.stem for table in tables]
        numbers = by_name(names, [None] * len(tables)) or range(len(tables))
        ranks = [np.full(len(rank), n) for n, rank in zip(numbers, ranks, strict=True)]
    span = max(int(table.thread.max(initial=0)) for table in tables) + 1
    keys = [rank * span + np.maximum(table.thread, 0) for rank, table in zip(ranks, tables, strict=True)]
    seen: dict[int, Table] = {}
    hosts: dict[int, str | None] = {}
    for table, key in zip(tables, keys, strict=True):
        mine = np.unique(np.unique(key) // span).tolist()
        for rank in mine:
            if rank in seen:
                raise InputError(path, f"rank {rank} is in {seen[rank].file.name} and {table.file.name}: several runs")
        seen.update(dict.fromkeys(mine, table))
        hosts.update(dict.fromkeys(mine, facts.host(table.globals) if len(mine) == 1 else None))
    known = np.unique(np.concatenate([np.unique(key) for key in keys]))
    found = tuple(Processor(key // span, key % span, hosts[key // span]) for key in known.tolist())
    return found, [np.searchsorted(known, key) for key in keys]


def _nodes(tables: Sequence[Table], processors: int) -> tuple[tuple[Node, ...], list[IntArray]]:
    """Return the call paths of all tables, and for each table the one of each record; too many are put together."""
    most = min(_REGIONS, max(_CELLS // processors, 10))
    paths = Paths()
    rows = []
    outside = any((table.path < 0).any() for table in tables)
    first = paths.number(Place(_OUTSIDE, Role.ROOT, -1)) if outside else -1
    other = -1
    for table in tables:
        numbers = np.full(len(table.places) + 1, first, dtype=np.int64)
        for n, place in enumerate(table.places):
            if len(paths.places) >= most and other < 0:
                other = paths.number(Place(OTHER, Role.USER, -1))
            parent = int(numbers[place.parent]) if place.parent >= 0 else first
            full = len(paths.places) > most or parent == other >= 0
            numbers[n] = other if full else paths.number(Place(place.name, place.role, parent))
        rows.append(numbers[table.path])
    return tuple(Node(place.name, place.role, parent=place.parent) for place in paths.places), rows


def _visits(cells: Sequence[Cells]) -> FloatArray | None:
    """Return how often regions were entered (nodes, processors), None where a file does not tell."""
    total = np.zeros(cells[0].shape)
    for each in cells:
        values: Mapping[str, FloatArray] = each.table.values
        if each.choice.calls is not None:
            total += each.total(each.ended(values[each.choice.calls]))
        elif each.table.ends is not None:
            total += each.total(each.ended(values.get("count", np.ones(len(each.cell)))))
        else:
            return None
    return total


def _shortest(cells: Sequence[Cells]) -> FloatArray | None:
    """Return the shortest single call (nodes, processors) in seconds, NaN where no file tells."""
    shape = cells[0].shape
    least = np.full(shape[0] * shape[1], np.inf)
    for each in cells:
        if each.table.ends is None:
            continue
        values = each.ended(each.seconds(each.choice.shortest_call or each.choice.shortest))
        known = ~np.isnan(values)
        np.minimum.at(least, each.cell[known], values[known])
    return None if np.isinf(least).all() else np.where(np.isinf(least), np.nan, least).reshape(shape)
