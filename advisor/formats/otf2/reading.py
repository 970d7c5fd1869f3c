"""The events of all locations of an OTF2 archive as columns, read chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from advisor.formats.otf2 import archive
from advisor.formats.otf2.chunks import EventChunk, find_chunks, split_definition_records
from advisor.formats.otf2.clock_correction import ClockCorrection
from advisor.formats.otf2.columns import TraceColumns
from advisor.formats.otf2.cursor import Cursor, read_file
from advisor.formats.otf2.decoding import DecodingTask, decode_chunks
from advisor.formats.otf2.rows import DecodingContext, EventRows, make_counts, make_rows
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.otf2.anchor import Otf2Anchor
    from advisor.formats.otf2.id_lookup import IdLookup
    from advisor.model.records import IntArray

#: What an id map is about, as OTF2 numbers it.
REGIONS, COMMUNICATORS, IO_HANDLES = 3, 6, 13
_ID_MAP, _CLOCK_OFFSET = 5, 6
_DENSE, _SPARSE = 0, 1
#: Local ids and the global ids that they stand for; ids that are not listed stand for themselves.
IdMap = dict[int, int]


@dataclass(frozen=True, slots=True)
class LocalDefinitions:
    """The id maps of a location by what they are about, and the correction of its clock."""

    id_maps: dict[int, IdMap] = field(default_factory=dict)
    clock: ClockCorrection = field(default_factory=ClockCorrection.make_identity)


@dataclass(slots=True)
class RecordedEvents:
    """The rows of the locations that were read, one location after the other.

    ``spans`` maps a location's id to its rows (from, to), ``undefined`` counts events of regions without definition,
    ``recorded`` all in the file of each location, ``counts`` those of each of ``layout.COUNTED``. ``sizes`` are the
    bytes of the locations' files, ``heads`` checksums of how they begin.
    """

    columns: TraceColumns
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    undefined: int = 0
    recorded: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    heads: dict[int, int] = field(default_factory=dict)
    counts: IntArray = field(default_factory=make_counts)


class _LocalContext(NamedTuple):
    """The definitions of a location as bytes (None: it has none), its id maps, and what they mean."""

    content: bytes | None
    id_maps: dict[int, IdMap]
    context: DecodingContext


class EventReader:
    """Reads the event files of an archive; ids become numbers by ``regions``, ``comms`` and ``files``."""

    def __init__(self, path: Path, anchor: Otf2Anchor, regions: IdLookup, comms: IdLookup, files: IdLookup) -> None:
        self.path, self._anchor, self._present = path, anchor, archive.list_files(path)
        self._regions, self._comms, self._files = regions, comms, files
        self._latest: _LocalContext | None = None

    def read_events(self, locations: list[int], *, compiled: bool) -> RecordedEvents:
        """Return the events of the ``locations``; raises ``InputError`` where one of their files is damaged."""
        sizes = self._anchor.event_chunk
        chunks = {identity: find_chunks(archive.event_file(self.path, identity), sizes) for identity in locations}
        room = sum(chunk.events for pieces in chunks.values() for chunk in pieces)
        events = RecordedEvents(TraceColumns(room))
        events.recorded = {identity: sum(chunk.events for chunk in pieces) for identity, pieces in chunks.items()}
        events.sizes = {identity: sum(chunk.size for chunk in pieces) for identity, pieces in chunks.items()}
        columns = events.columns
        buffers: list[EventRows] = []
        for task, decoded in decode_chunks(self._iterate_tasks(chunks, buffers), compiled=compiled):
            if decoded.events != task.chunk.events:
                reason = f"holds {decoded.events} of {task.chunk.events} events: the file is damaged"
                raise InputError(task.chunk.file, reason, f"byte {task.chunk.begin}")
            first, _ = events.spans.setdefault(task.location, (columns.used, columns.used))
            columns.append(task.target.slice_rows(0, decoded.rows))
            buffers.append(task.buffer)
            early = columns.find_backward_row(max(first, columns.used - decoded.rows - 1))
            if early is not None:
                raise InputError(task.chunk.file, "damaged: time runs backwards here", f"event {early - first + 1}")
            events.spans[task.location] = (first, columns.used)
            events.heads.setdefault(task.location, decoded.head)
            events.undefined += decoded.undefined
            events.counts += decoded.counts
        return events

    def _iterate_tasks(self, chunks: dict[int, list[EventChunk]], buffers: list[EventRows]) -> Iterator[DecodingTask]:
        """Yield the chunks of all locations; those of ``buffers`` that are free again are used again.

        So the rows of a chunk stay in the processor's cache until they are copied to their place.
        """
        most = max((chunk.events for pieces in chunks.values() for chunk in pieces), default=0)
        for identity, pieces in chunks.items():
            context = self._build_context(identity)
            for chunk in pieces:
                buffer = buffers.pop() if buffers else make_rows(most)
                yield DecodingTask(identity, chunk, context, buffer.slice_rows(0, chunk.events), buffer)

    def _build_context(self, identity: int) -> DecodingContext:
        """Return what the ids and times of a location mean by its own definitions, which some archives lack.

        Where those of a location are those of the one before, or map ids alike, so is what comes of them.
        """
        file = archive.definition_file(self.path, identity)
        content = read_file(file) if f"{identity}.def" in self._present else None
        if self._latest is not None and content == self._latest.content:
            return self._latest.context
        known = LocalDefinitions()
        if content is not None:
            known = read_local_definitions(file, content, self._anchor.definition_chunk)
        if self._latest is not None and known.id_maps == self._latest.id_maps:
            context = self._latest.context._replace(clock=known.clock)
        else:
            context = self._map_definitions(known)
        self._latest = _LocalContext(content, known.id_maps, context)
        return context

    def _map_definitions(self, known: LocalDefinitions) -> DecodingContext:
        maps = known.id_maps
        return DecodingContext(
            regions=self._regions.map_through(maps.get(REGIONS, {})),
            comms=self._comms.map_through(maps.get(COMMUNICATORS, {})),
            files=self._files.map_through(maps.get(IO_HANDLES, {})),
            clock=known.clock,
        )


def read_local_definitions(file: Path, content: bytes, chunk_bytes: int) -> LocalDefinitions:
    """Return what the ``content`` of a file says; raises ``InputError`` where it is damaged."""
    id_maps: dict[int, IdMap] = {}
    points: list[tuple[int, int]] = []
    for kind, record in split_definition_records(file, content, chunk_bytes):
        if kind == _ID_MAP:
            about, id_map = _read_id_map(record)
            id_maps[about] = id_map
        elif kind == _CLOCK_OFFSET:
            time, offset = record.read_raw(8), record.read_signed()
            if points and time <= points[-1][0]:
                raise record.make_error("damaged: clock offsets are not in the order of time")
            points.append((time, offset))
    return LocalDefinitions(
        id_maps, ClockCorrection.from_points(points) if len(points) > 1 else ClockCorrection.make_identity()
    )


def _read_id_map(record: Cursor) -> tuple[int, IdMap]:
    about, count, mode = record.read_raw(1), record.read_packed(8), record.read_raw(1)
    if mode not in (_DENSE, _SPARSE) or count > record.bytes_left:
        raise record.make_error(f"damaged: an id map of {count} ids in {record.bytes_left} bytes is impossible")
    if mode == _DENSE:
        return about, {local: record.read_packed(8) for local in range(count)}
    pairs = ((record.read_packed(8), record.read_packed(8)) for _ in range(count))
    return about, dict(pairs)
