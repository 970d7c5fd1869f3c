"""The events of all locations of an OTF2 archive as columns, read chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from advisor.formats.otf2 import archive
from advisor.formats.otf2.chunks import Chunk, find_chunks
from advisor.formats.otf2.columns import Columns
from advisor.formats.otf2.decoding import Task, decode_chunks
from advisor.formats.otf2.local_definitions import (
    COMMUNICATORS,
    IO_HANDLES,
    REGIONS,
    LocalDefinitions,
    read_local_definitions,
)
from advisor.formats.otf2.rows import Context, new_counts, new_rows
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from advisor.formats.otf2.anchor import Anchor
    from advisor.formats.otf2.lookup import Lookup
    from advisor.formats.otf2.rows import Rows
    from advisor.model.records import IntArray


@dataclass(slots=True)
class Events:
    """The rows of the locations that were read, one location after the other.

    ``spans`` maps a location's id to its rows (from, to), ``undefined`` counts events of regions without definition,
    ``counts`` those of each of ``layout.COUNTED``.
    """

    columns: Columns
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    undefined: int = 0
    counts: IntArray = field(default_factory=new_counts)


class Reader:
    """Reads the event files of an archive; ids become numbers by ``regions``, ``comms`` and ``files``."""

    def __init__(self, path: Path, anchor: Anchor, regions: Lookup, comms: Lookup, files: Lookup) -> None:
        self._path, self._anchor = path, anchor
        self._regions, self._comms, self._files = regions, comms, files

    def read(self, locations: list[int], *, compiled: bool) -> Events:
        """Return the events of the ``locations``; raises ``InputError`` where one of their files is damaged."""
        sizes = self._anchor.event_chunk
        chunks = {identity: find_chunks(archive.events(self._path, identity), sizes) for identity in locations}
        room = sum(chunk.events for pieces in chunks.values() for chunk in pieces)
        events = Events(Columns(room))
        columns = events.columns
        buffers: list[Rows] = []
        for task, decoded in decode_chunks(self._tasks(chunks, buffers), compiled=compiled):
            if decoded.events != task.chunk.events:
                reason = f"holds {decoded.events} of {task.chunk.events} events: the file is damaged"
                raise InputError(task.chunk.file, reason, f"byte {task.chunk.begin}")
            first, _ = events.spans.setdefault(task.location, (columns.used, columns.used))
            columns.append(task.target.part(0, decoded.rows))
            buffers.append(task.buffer)
            early = columns.backwards(max(first, columns.used - decoded.rows - 1))
            if early is not None:
                raise InputError(task.chunk.file, "damaged: time runs backwards here", f"event {early - first + 1}")
            events.spans[task.location] = (first, columns.used)
            events.undefined += decoded.undefined
            events.counts += decoded.counts
        return events

    def _tasks(self, chunks: dict[int, list[Chunk]], buffers: list[Rows]) -> Iterator[Task]:
        """Yield the chunks of all locations; those of ``buffers`` that are free again are used again.

        So the rows of a chunk stay in the processor's cache until they are copied to their place.
        """
        most = max((chunk.events for pieces in chunks.values() for chunk in pieces), default=0)
        for identity, pieces in chunks.items():
            context = self._context(identity)
            for chunk in pieces:
                buffer = buffers.pop() if buffers else new_rows(most)
                yield Task(identity, chunk, context, buffer.part(0, chunk.events), buffer)

    def _context(self, identity: int) -> Context:
        """Return what the ids and times of a location mean by its own definitions, which some archives lack."""
        file = archive.definitions(self._path, identity)
        known = read_local_definitions(file, self._anchor.definition_chunk) if file.is_file() else LocalDefinitions()
        maps = known.id_maps
        return Context(
            regions=self._regions.through(maps.get(REGIONS, {})),
            comms=self._comms.through(maps.get(COMMUNICATORS, {})),
            files=self._files.through(maps.get(IO_HANDLES, {})),
            clock=known.clock,
        )
