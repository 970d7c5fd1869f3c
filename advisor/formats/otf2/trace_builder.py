"""From an OTF2 archive's definitions and rows to a ``Trace``."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.otf2 import archive, cluster_reading, definition_contents, eztrace
from advisor.formats.otf2.anchor import read_anchor
from advisor.formats.otf2.communicators import Communicators, find_candidates, select_communicators
from advisor.formats.otf2.devices import note_unseen_devices
from advisor.formats.otf2.id_lookup import IdLookup
from advisor.formats.otf2.notes import ArchiveFlaws, build_notes
from advisor.formats.otf2.reading import EventReader, RecordedEvents
from advisor.model.errors import InputError
from advisor.support.cluster import find_cluster
from advisor.trace.events import RECEIVES, SENDS, Role, Trace, TraceRegion, are_kinds
from advisor.trace.meetings import meet_in_calls

if TYPE_CHECKING:
    from advisor.formats.otf2.columns import TraceColumns
    from advisor.formats.otf2.definitions import Definitions

#: Endings of source files; headers are left out, since C++ includes those of C.
_SUFFIXES: Final = {
    "c": (".c",),
    "cxx": (".cc", ".cpp", ".cxx", ".c++", ".C"),
    "fortran": tuple(
        f".{name}" for word in ("f", "for", "ftn", "f90", "f95", "f03", "f08") for name in (word, word.upper())
    ),
}
_LANGUAGES: Final = {suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes}
#: Compilers of Fortran call MPI by names in one case, with underscores at the end.
_FORTRAN_CALL: Final = re.compile(r"(mpi_[a-z0-9_]*[a-z0-9]|MPI_[A-Z0-9_]*[A-Z0-9])__?")


class TraceBuilder:
    """An archive on its way to a ``Trace``: definitions made into records, columns being filled."""

    def __init__(self, path: Path, definitions: Definitions) -> None:
        self._path = path
        self._anchor = read_anchor(path)
        file = path.with_suffix(".def")
        self._definitions = definitions
        names = definition_contents.collect_strings(definitions)
        self._program = definition_contents.find_program(definitions, names, path.stem)
        self._tool = definition_contents.find_tool(names, self._anchor.creator)
        self._places = definition_contents.build_locations(definitions, names)
        self._region_of, self._regions = definition_contents.build_regions(definitions, names)
        called = (names.get(row[1], "") for row in definitions["Region"])
        self._language = detect_language((region.file for region in self._regions), called)
        self._file_of, self._files = definition_contents.build_files(definitions, names)
        self._candidates = find_candidates(definitions, self._places)
        self._per_second, self._offset = _read_clock(file, definitions["ClockProperties"])
        self._missing = self._find_missing_files()

    def build_trace(self, *, compiled: bool) -> Trace:
        """Return the events of all locations; raises ``InputError`` where a file is damaged."""
        numbers = {identity: number for number, identity in enumerate(self._candidates)}
        lookups = IdLookup(self._region_of), IdLookup(numbers), IdLookup(self._file_of)
        recorded = [identity for identity in self._places.ids if identity not in self._missing]
        reader = EventReader(self._path, self._anchor, *lookups)
        events = self._read_on_cluster(reader, recorded, compiled=compiled) or reader.read_events(
            recorded, compiled=compiled
        )
        columns, spans = events.columns, self._find_spans(events)
        ends = np.array([end for _, end in spans], dtype=np.int64)
        rank = np.array([location.rank for location in self._places.locations], dtype=np.int64)
        present = set(rank[np.diff(ends, prepend=0) > 0].tolist())
        communicators = select_communicators(self._candidates, columns.count_collectives(ends, rank), present)
        strangers = columns.resolve_partners(ends, rank, communicators)
        if self._tool == definition_contents.EZTRACE:
            strangers += self._repair_eztrace(columns, spans, communicators)
        flaws = ArchiveFlaws(
            locations=len(spans),
            missing_files=self._count_lost(),
            foreign_files=self._count_foreign_files(events),
            undefined_events=events.undefined,
            unknown_partners=strangers,
            uncertain_communicators=len(communicators.undecided_ids),
            other_locations=self._places.other_locations,
            unused_counts=tuple(events.counts.tolist()),
            copied_files=self._count_copied_files(events),
        )
        return self._finish_trace(columns, spans, communicators, flaws)

    def _read_on_cluster(self, reader: EventReader, recorded: list[int], *, compiled: bool) -> RecordedEvents | None:
        """Return the events of the locations as the workers of a cluster read them; None where none takes part."""
        cluster = find_cluster()
        if cluster is None or archive.decoding_effort(self._path) < cluster_reading.WORTH_SPREADING:
            return None
        ranks = dict(zip(self._places.ids, (location.rank for location in self._places.locations), strict=True))
        clock = cluster_reading.TraceClock(self._offset, self._per_second)
        return cluster_reading.read_on_cluster(
            cluster, reader, {each: ranks[each] for each in recorded}, clock, compiled
        )

    def _find_missing_files(self) -> set[int]:
        files = archive.list_files(self._path)
        missing = {identity for identity in self._places.ids if f"{identity}.evt" not in files}
        if not self._places.ids:
            raise InputError(self._path.with_suffix(".def"), "defines no threads of execution: nothing was recorded")
        if len(missing) == len(self._places.ids):
            raise InputError(self._path.with_suffix(""), "holds no event file of any location")
        self._check_definitions(missing, files)
        return missing

    def _check_definitions(self, missing: set[int], files: frozenset[str]) -> None:
        """Refuse an archive that lacks definitions of some locations: their ids would be taken for others."""
        recorded = [identity for identity in self._places.ids if identity not in missing]
        lacking = [identity for identity in recorded if f"{identity}.def" not in files]
        if 0 < len(lacking) < len(recorded):
            file = archive.definition_file(self._path, lacking[0])
            raise InputError(file, "missing: without it the events of this location cannot be interpreted")

    def _find_spans(self, events: RecordedEvents) -> list[tuple[int, int]]:
        """Return from which row to which each location goes; those without events go from and to the same."""
        spans: list[tuple[int, int]] = []
        for identity in self._places.ids:
            end = spans[-1][1] if spans else 0
            spans.append(events.spans.get(identity, (end, end)))
        return spans

    def _repair_eztrace(self, columns: TraceColumns, spans: list[tuple[int, int]], communicators: Communicators) -> int:
        ranks = np.array([location.rank for location in self._places.locations], dtype=np.int32)
        rank = np.repeat(ranks, [end - start for start, end in spans])
        return eztrace.repair_receives(columns, rank, communicators.members)

    def _finish_trace(
        self, columns: TraceColumns, spans: list[tuple[int, int]], communicators: Communicators, flaws: ArchiveFlaws
    ) -> Trace:
        if flaws.undefined_events:
            columns.name_undefined(len(self._regions))
            self._regions.append(TraceRegion("undefined region", Role.USER))
        rows = columns.rows
        trace = Trace(
            program=self._program,
            tool=self._tool,
            locations=self._places.locations,
            regions=tuple(self._regions),
            communicators=communicators.members,
            files=tuple(self._files),
            first=np.array([0, *(end for _, end in spans)], dtype=np.int64),
            time_s=columns.to_seconds(self._offset, self._per_second),
            kind=rows.kind,
            region=rows.region,
            comm=rows.comm,
            partner=rows.partner,
            tag=rows.tag,
            size=rows.size,
            request=rows.request,
            ticks_s=1 / self._per_second,
            notes=(*build_notes(flaws), *note_unseen_devices(self._definitions)),
            language=self._language,
        )
        return meet_in_calls(trace)

    def _count_copied_files(self, events: RecordedEvents) -> int:
        """Return how many event files are copies of another one: no two locations exchange the same messages.

        Only files whose events name partners are compared: threads that begin and end at the same ticks may well be
        alike. Where most files are alike, a simulator wrote them: in virtual time, processors of one kind do the same.
        Files are read again only where others begin alike and are as long.
        """
        sizes: dict[tuple[int, int], list[int]] = {}
        for identity, count in events.recorded.items():
            if count > 1:
                sizes.setdefault((events.sizes[identity], events.heads[identity]), []).append(identity)
        kind = events.columns.rows.kind
        alike = [
            archive.event_file(self._path, identity)
            for group in sizes.values()
            for identity in (group if len(group) > 1 else ())
            if are_kinds(kind[slice(*events.spans.get(identity, (0, 0)))], *SENDS, *RECEIVES).any()
        ]
        copies = len(alike) - len({hashlib.sha256(file.read_bytes()).digest() for file in alike})
        return copies if copies <= len(events.recorded) / 2 else 0

    def _count_foreign_files(self, events: RecordedEvents) -> int:
        """Return how many event files hold other numbers of events than the definitions say of their locations.

        EZTrace states other numbers than it records.
        """
        if self._tool == definition_contents.EZTRACE:
            return 0
        stated = {row[0]: row[3] for row in self._definitions["Location"]}
        return sum(stated[identity] not in (0, count) for identity, count in events.recorded.items())

    def _count_lost(self) -> int:
        """Return the number of locations without an event file that should have one."""
        recorded = {row[0]: row[3] for row in self._definitions["Location"]}
        return sum(recorded[identity] > 0 for identity in self._missing)


def _read_clock(file: Path, rows: list[list[int]]) -> tuple[int, int]:
    """Return ticks per second and the tick at which the trace begins."""
    if not rows or not rows[-1][0]:
        raise InputError(file, "defines no clock: its times have no unit")
    return rows[-1][0], rows[-1][1]


def detect_language(files: Iterable[str | None], calls: Iterable[str]) -> str | None:
    """Return ``c``, ``cxx`` or ``fortran``: what most of the source ``files`` are in.

    If no file tells, Fortran where MPI was called by names that only compilers of Fortran make; else None, since C and
    C++ call it by the same names.
    """
    found = Counter(_LANGUAGES.get(PurePath(file).suffix) for file in files if file)
    del found[None]
    if found:
        return found.most_common(1)[0][0]
    return "fortran" if any(_FORTRAN_CALL.fullmatch(call) for call in calls) else None
