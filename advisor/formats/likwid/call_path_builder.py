"""From the tables of all processes to the call paths of a run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from advisor.formats import rank_numbers
from advisor.formats.likwid import checks, events
from advisor.formats.likwid.detection import RANK_AND_NODE
from advisor.formats.likwid.tables import RECORD_DEVICES, GroupTable, read_tables
from advisor.formats.rank_files import PENALTY
from advisor.model.errors import InputError
from advisor.model.lists import join_clauses
from advisor.model.records import FloatArray, Note, Processor
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.regions import classify_region

#: As likwid-mpirun names columns: node, rank, hardware thread.
_COLUMN: Final = re.compile(r"(.+):(\d{1,7}):(\d{1,7})")


@dataclass(frozen=True, slots=True)
class Placement:
    """The processors of a run, and for each file the number of each column in them; whether ranks were told."""

    processors: tuple[Processor, ...]
    columns: tuple[dict[str, int], ...]
    ranks_known: bool


_DEVICES_LEFT_OUT: Final = Note(
    "devices left out",
    "counts of GPUs are left out: they hold no times of kernels, and what the host waits for them counts as work",
    0.1,
    RECORD_DEVICES,
)
REGION_LIMIT: Final = 10_000
WHOLE: Final = "the whole program"
_SHOWN: Final = 3
_INFO: Final = ("RDTSC Runtime [s]", "call count")
Cells = dict[tuple[str, int], "FloatArray"]


@dataclass(slots=True)
class RegionCounts:
    """Values of regions by processor: seconds and calls, and of each event, for each group of events.

    ``seconds`` and ``calls`` map a group's number to (regions, processors); ``event_counts`` maps an event and a
    group's number to the same.
    """

    regions: tuple[str | None, ...]
    processors: int
    seconds: dict[int, FloatArray] = field(default_factory=dict)
    calls: dict[int, FloatArray] = field(default_factory=dict)
    event_counts: Cells = field(default_factory=dict)

    def make_zeros(self) -> FloatArray:
        """Return zeros (regions, processors)."""
        return np.zeros((len(self.regions), self.processors))

    def count_event(self, event: str) -> FloatArray:
        """Return how often an event happened (regions, processors).

        Groups take turns: what was counted in the seconds of some stands for the seconds of all.
        """
        groups = [number for name, number in self.event_counts if name == event]
        found = sum((self.event_counts[event, number] for number in groups), self.make_zeros())
        here = sum((self.seconds.get(number, self.make_zeros()) for number in groups), self.make_zeros())
        everywhere = sum(self.seconds.values(), self.make_zeros())
        scale = np.divide(everywhere, here, out=np.ones_like(here), where=here > 0)
        return found * scale


def build_call_paths(files: Sequence[Path], path: Path) -> CallPaths:
    """Return the regions of a run, one file per process; raises ``InputError`` with the line of what is damaged."""
    everything = [read_tables(file) for file in files]
    tables = [[table for table in mine if not table.is_of_devices] for mine in everything]
    placed = place_columns(files, tables)
    regions = tuple(dict.fromkeys(table.group.region for mine in tables for table in mine))
    if len(regions) > REGION_LIMIT:
        raise InputError(path, f"more than {REGION_LIMIT:,} regions")
    measured = RegionCounts(regions, len(placed.processors))
    for file, mine, columns in zip(files, tables, placed.columns, strict=True):
        for table in mine:
            if not table.sums:
                _add_table(measured, file, table, columns)
    _check_times(measured, files[0])
    visits = sum(measured.calls.values(), measured.make_zeros()) if measured.calls else None
    return CallPaths(
        program="",
        run=path.name,
        reader="likwid",
        processors=placed.processors,
        nodes=tuple(_build_node(region) for region in regions),
        wall_s=sum(measured.seconds.values(), measured.make_zeros()) if measured.seconds else None,
        visits=visits,
        counts=_build_counts(measured),
        actual_s=None if measured.seconds else math.nan,
        status="estimated",
        ranks_expected=_find_expected_ranks(placed),
        notes=(*((_DEVICES_LEFT_OUT,) if tables != everything else ()), *_build_notes(files, tables, placed, measured)),
    )


def _build_node(region: str | None) -> CallPathNode:
    if region is None:
        return CallPathNode(WHOLE)
    name, role = classify_region(region)
    return CallPathNode(name, role)


def _find_expected_ranks(placed: Placement) -> int | None:
    """Return how many ranks there must have been where some are missing."""
    ranks = {processor.rank for processor in placed.processors}
    return max(ranks) + 1 if placed.ranks_known and max(ranks) + 1 > len(ranks) else None


def _add_table(measured: RegionCounts, file: Path, table: GroupTable, columns: dict[str, int]) -> None:
    """Add the values of a table to those of its region and processors."""
    region, number = measured.regions.index(table.group.region), table.group.number
    here = [columns[column] for column in table.columns]
    for name, values in zip(table.names, table.values, strict=True):
        if np.isnan(values).all():
            continue
        if table.kind == "info" and name == _INFO[0]:
            target = measured.seconds.setdefault(number, measured.make_zeros())
        elif table.kind == "info" and name == _INFO[1]:
            target = measured.calls.setdefault(number, measured.make_zeros())
        elif name == events.RUNTIME and not _has_seconds(measured, number, region, here):
            target = measured.seconds.setdefault(number, measured.make_zeros())
        elif name == events.RUNTIME or (table.kind == "metric" and name != events.MEMORY_VOLUME):
            continue
        else:
            target = measured.event_counts.setdefault((name, number), measured.make_zeros())
        if (values < 0).any():
            raise InputError(file, f"{name[:60]} is below zero", f"line {table.line + 1}")
        target[region, here] += np.nan_to_num(values)


def _has_seconds(measured: RegionCounts, number: int, region: int, here: list[int]) -> bool:
    """Return whether the seconds of some processors are known: they may stand among events and among metrics."""
    return number in measured.seconds and bool(measured.seconds[number][region, here].any())


def _check_times(measured: RegionCounts, file: Path) -> None:
    if measured.seconds and not any(seconds.any() for seconds in measured.seconds.values()):
        raise InputError(file, "no region took any time")


def _build_counts(measured: RegionCounts) -> dict[str, FloatArray]:
    """Return the counts (regions, processors), and other events by their own names."""
    names = tuple(dict.fromkeys(name for name, _ in measured.event_counts))
    meanings = events.match_counts(names)
    found = {
        count: sum((factor * measured.count_event(event) for event, factor in parts.items()), measured.make_zeros())
        for count, parts in meanings.items()
    }
    if events.MEMORY_VOLUME in names and events.MEMORY_BYTES not in found:
        found[events.MEMORY_BYTES] = 1e9 * measured.count_event(events.MEMORY_VOLUME)
    used = {event for parts in meanings.values() for event in parts} | {events.MEMORY_VOLUME}
    return found | {name: measured.count_event(name) for name in names if name not in used}


def _build_notes(
    files: Sequence[Path], tables: Sequence[Sequence[GroupTable]], placed: Placement, measured: RegionCounts
) -> Iterator[Note]:
    """Yield what must be known about the quality of the data."""
    text = "LIKWID does not tell waiting from working: waiting inside regions counts as work"
    yield Note("waiting not known", text, 0.1, "mpirun -n RANKS eztrace -t mpi ./PROGRAM")
    if len(measured.regions) > 1:
        yield Note("regions may overlap", "LIKWID does not tell regions that lie in others: these count twice", 0.05)
    if measured.regions == (None,):
        text = "the program was measured as a whole: mark its regions with the Marker API"
        yield Note("no regions", text, 0.05, "likwid-perfctr -m -g MEM -o out_%r_%h.csv ./PROGRAM")
        whole_s = sum(measured.seconds.values(), measured.make_zeros())[0]
        apart = checks.find_separate_processes(placed.processors, whole_s)
        if apart is not None:
            yield Note("ranks unlike", apart, PENALTY, "gapwatch advise FILE, one at a time")
    if len({number for _, number in measured.event_counts}) > 1:
        text = "groups of events took turns: what each counted is extended to the time of all"
        yield Note("several groups", text, 0.0)
    if not placed.ranks_known:
        yield Note("ranks not known", "the names of files tell no ranks: they are numbered in order", 0.05)
    for name, say in (
        ("contradictions in tables", checks.find_contradictions),
        ("tables missing", checks.find_missing_tables),
    ):
        found = [text for file, mine in zip(files, tables, strict=True) for text in say(file, mine)]
        if found:
            yield Note(name, f"{len(found)}: {join_clauses(found, _SHOWN)}", 0.3)


def place_columns(files: Sequence[Path], tables: Sequence[Sequence[GroupTable]]) -> Placement:
    """Return the processors of files; the hardware threads of a file are threads of one rank unless they say more."""
    ranks, hosts, told = _find_file_ranks(files)
    found: dict[tuple[int, int], Processor] = {}
    numbers: list[dict[str, tuple[int, int]]] = []
    threads: dict[int, int] = {}
    for file, mine in enumerate(tables):
        names: dict[str, tuple[int, int]] = {}
        for column in dict.fromkeys(column for table in mine if not table.sums for column in table.columns):
            match = _COLUMN.fullmatch(column)
            rank, host = (int(match[2]), match[1]) if match else (ranks[file], hosts[file])
            key = (rank, threads.get(rank, 0))
            threads[rank] = key[1] + 1
            found[key] = Processor(*key, host)
            names[column] = key
        numbers.append(names)
    order = {key: n for n, key in enumerate(sorted(found))}
    return Placement(
        tuple(found[key] for key in sorted(found)),
        tuple({column: order[key] for column, key in names.items()} for names in numbers),
        told,
    )


def _find_file_ranks(files: Sequence[Path]) -> tuple[list[int], list[str | None], bool]:
    matches = [RANK_AND_NODE.fullmatch(file.name) for file in files]
    ranks = [int(match[1]) for match in matches if match]
    if len(ranks) == len(files) == len(set(ranks)):
        return ranks, [match[2] for match in matches if match], True
    named = rank_numbers.find_ranks_by_name([file.name for file in files], [None] * len(files))
    return named or list(range(len(files))), [None] * len(files), named is not None or len(files) == 1
