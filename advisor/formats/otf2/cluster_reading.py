"""The events of an OTF2 archive as columns, read by the workers of a cluster (``docs/scale.md``).

Each worker decodes the files of a block of locations into files of its own. How many rows there are, and what the ids
of communicators mean, is known only then; a second step puts the rows at their places in the columns of all, ranges of
rows in parallel. Results are those of ``reading`` and ``columns``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from advisor.formats.otf2.columns import TraceColumns, choose_begin
from advisor.formats.otf2.reading import EventReader, RecordedEvents
from advisor.formats.otf2.rows import ROW_TYPES, EventRows
from advisor.trace import spool

if TYPE_CHECKING:
    from advisor.formats.otf2.communicators import Communicators
    from advisor.model.records import FloatArray, IntArray
    from advisor.support.cluster import Cluster

#: Bytes of event files from which on workers read them: handing over takes some tenths of a second.
WORTH_SPREADING = 3_000_000
#: Blocks of locations for each thread of the workers: some have more to do than others.
BLOCKS_A_THREAD: Final = 4
#: Rows that are put into place together; ranges begin at whole pages of every column, so that no two workers write to
#: one page.
RANGE_ROWS = 1 << 20


class TraceClock(NamedTuple):
    """The tick at which the trace begins, and ticks per second."""

    begin: int
    per_second: int


class DecodedBlock(NamedTuple):
    """What a worker found in the files of some locations, and the stem of the files with the rows.

    ``collectives`` are those of ``TraceColumns.count_collectives``, ``edges`` the first and last ticks of parts.
    """

    stem: str
    rows: int
    events: RecordedEvents
    collectives: dict[int, Counter[int]]
    edges: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """What putting rows into place needs: the blocks, where each begins, the files of the columns, and what ids mean.

    The rows of location l, which is of ``rank[l]``, end before ``ends[l]``; times count from ``clock``.
    """

    blocks: tuple[tuple[str, int], ...]
    begins: tuple[int, ...]
    files: Mapping[str, str]
    ends: IntArray
    rank: IntArray
    communicators: Communicators
    clock: TraceClock


class SpreadColumns(TraceColumns):
    """Columns whose rows lie in the files of blocks until partners are resolved, and then in files of their own."""

    def __init__(self, cluster: Cluster, blocks: list[DecodedBlock], clock: TraceClock) -> None:
        super().__init__(0)
        self._cluster, self._blocks = cluster, blocks
        begin = choose_begin([edge for block in blocks for edge in block.edges], clock.begin)
        self._clock = TraceClock(begin, clock.per_second)

    def count_collectives(self, ends: IntArray, rank: IntArray) -> dict[int, Counter[int]]:
        """Return what the blocks counted."""
        found: dict[int, Counter[int]] = {}
        for block in self._blocks:
            for number, counts in block.collectives.items():
                found.setdefault(number, Counter()).update(counts)
        return found

    def resolve_partners(self, ends: IntArray, rank: IntArray, communicators: Communicators) -> int:
        """Put all rows into place, with communicators and ranks; return how many stay without."""
        *begins, rows = accumulate((block.rows for block in self._blocks), initial=0)
        files = {name: f"{self._cluster.folder}{os.sep}rows-{name}" for name in ROW_TYPES}
        for file in files.values():
            Path(file).touch(exist_ok=False)
        blocks = tuple((block.stem, block.rows) for block in self._blocks)
        places = RowPlaces(blocks, tuple(begins), files, ends, rank, communicators, self._clock)
        held = self._cluster.send_to_all(places)
        ranges = [(held, low, min(low + RANGE_ROWS, rows)) for low in range(0, rows, RANGE_ROWS)]
        unknown = sum(self._cluster.map_tasks(place_rows, ranges))
        for block in self._blocks:
            for name in ROW_TYPES:
                Path(f"{block.stem}{name}").unlink(missing_ok=True)
        # opened only now, so that nothing older is in this machine's memory
        columns: dict[str, Any] = {name: spool.open_column(files[name], rows, kind) for name, kind in ROW_TYPES.items()}
        self._rows, self.used = EventRows(**columns), rows
        return unknown

    def to_seconds(self, offset: int, per_second: int) -> FloatArray:
        """Return the times in seconds, which were written when the rows were put into place."""
        return self.rows.ticks.view(np.float64)


def read_on_cluster(
    cluster: Cluster, reader: EventReader, ranks: dict[int, int], clock: TraceClock, compiled: bool
) -> RecordedEvents:
    """Return what ``reader`` reads of the locations, of these ``ranks``; raises as it does, and ``ClusterError``."""
    cluster.check_file(reader.path, "all workers have to see the archive")
    held = cluster.send_to_all(reader)
    parts = min(BLOCKS_A_THREAD * max(cluster.count_threads(), 1), len(ranks))
    several = np.array_split(np.array(list(ranks), dtype=np.uint64), max(parts, 1))
    tasks = [
        (held, {each: ranks[each] for each in part.tolist()}, f"{cluster.folder}{os.sep}block-{number}-", compiled)
        for number, part in enumerate(several)
    ]
    blocks = list(cluster.map_tasks(decode_block, tasks))
    events = RecordedEvents(SpreadColumns(cluster, blocks, clock))
    begin = 0
    for block in blocks:
        told = block.events
        events.spans |= {each: (low + begin, high + begin) for each, (low, high) in told.spans.items()}
        events.recorded |= told.recorded
        events.sizes |= told.sizes
        events.heads |= told.heads
        events.undefined += told.undefined
        events.counts += told.counts
        begin += block.rows
    return events


def decode_block(reader: EventReader, ranks: dict[int, int], stem: str, compiled: bool) -> DecodedBlock:
    """Return what lies in the files of some locations, whose rows are written to files named after the columns."""
    events = reader.read_events(list(ranks), compiled=compiled)
    columns, end = events.columns, 0
    ends: list[int] = []
    for each in ranks:
        end = events.spans.get(each, (end, end))[1]
        ends.append(end)
    rank = np.array(list(ranks.values()), dtype=np.int64)
    collectives = columns.count_collectives(np.array(ends, dtype=np.int64), rank)
    edges = columns.find_edges()
    for name, column in columns.rows._asdict().items():
        _write_column(Path(f"{stem}{name}"), column)
    events.columns = TraceColumns(0)
    return DecodedBlock(stem, columns.used, events, collectives, edges)


def place_rows(places: RowPlaces, low: int, high: int) -> int:
    """Put the rows from ``low`` up to ``high`` into the columns; return how many partners are unknown."""
    parts: dict[str, list[Any]] = {name: [] for name in ROW_TYPES}
    for (stem, rows), begin in zip(places.blocks, places.begins, strict=True):
        first, last = max(low - begin, 0), min(high - begin, rows)
        for name, kind in ROW_TYPES.items() if first < last else ():
            at = first * np.dtype(kind).itemsize
            parts[name].append(np.fromfile(f"{stem}{name}", dtype=kind, count=last - first, offset=at))
    columns = TraceColumns.of_rows(EventRows(**{name: np.concatenate(part) for name, part in parts.items()}))
    unknown = columns.resolve_partners(places.ends - low, places.rank, places.communicators)
    placed = columns.rows
    seconds = (placed.ticks - np.uint64(places.clock.begin)).view(np.int64) / places.clock.per_second
    for name, column in placed._replace(ticks=seconds.view(np.uint64))._asdict().items():
        with open(places.files[name], "r+b") as file:
            file.seek(low * column.itemsize)
            file.write(column.data)
            file.flush()
            os.fsync(file.fileno())
    return unknown


def _write_column(path: Path, column: Any) -> None:  # noqa: ANN401 (an array of numbers of any kind)
    unfinished = path.with_name(f"{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    with unfinished.open("wb") as file:
        step = RANGE_ROWS
        for begin in range(0, len(column), step):
            file.write(np.ascontiguousarray(column[begin : begin + step]).data)
            spool.release_memory([column])
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)  # at once: another worker may do the same after this one was thought lost
