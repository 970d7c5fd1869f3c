"""From an OTF2 archive's definitions and rows to a ``Trace``."""

from __future__ import annotations

import marshal
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.errors import InputError
from advisor.readers.otf2 import archive, contents, eztrace, languages
from advisor.readers.otf2.columns import ROWS, Columns, Lookup
from advisor.readers.otf2.communicators import candidates, choose
from advisor.readers.otf2.notes import Flaws, notes
from advisor.traces.events import Role, Trace, TraceRegion

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.readers.libotf2.child import Header
    from advisor.readers.otf2.communicators import Communicators
    from advisor.readers.otf2.process import Reading


@dataclass(frozen=True, slots=True)
class _Span:
    """The rows of one location: from, to, and how many records were read for them."""

    start: int
    end: int
    records: int = 0


class Assembly:
    """An archive on its way to a ``Trace``: definitions made into records, columns being filled."""

    def __init__(self, anchor: Path, header: Header) -> None:
        self._anchor = anchor
        self._header = header
        definitions = header["definitions"]
        names = contents.strings(definitions)
        self._program = contents.program(definitions, names, anchor.stem)
        self._tool = contents.tool(names, header["creator"])
        self._places = contents.places(definitions, names)
        self._region_of, self._regions = contents.regions(definitions, names)
        called = (names.get(row[1], "") for row in definitions["Region"])
        self._language = languages.spoken((region.file for region in self._regions), called)
        self._file_of, self._files = contents.files(definitions, names)
        self._candidates = candidates(definitions, self._places)
        self._counts: dict[int, Counter[int]] = {}
        self._left: list[int] = []
        self._per_second, self._offset = _clock(anchor, definitions["ClockProperties"])
        self._missing = self._missing_files()

    def trace(self, reading: Reading) -> Trace:
        """Return the events of all locations; raises ``InputError`` where a file is damaged."""
        recorded = [identity for identity in self._places.ids if identity not in self._missing]
        promised = {identity: self._promised(identity) for identity in recorded}
        numbers = {identity: number for number, identity in enumerate(self._candidates)}
        regions = Lookup(self._region_of)
        columns = Columns(regions, Lookup(numbers), Lookup(self._file_of), sum(promised.values()))
        spans = self._read(reading, columns, promised)
        communicators = self._communicators(spans)
        strangers = 0
        for location, span in zip(self._places.locations, spans, strict=True):
            strangers += columns.place(span.start, span.end, location.rank, communicators)
        if self._tool == contents.EZTRACE:
            strangers += self._repair(columns, spans, communicators)
        flaws = Flaws(
            locations=len(spans),
            lost=self._lost(),
            undefined=regions.undefined.total(),
            strangers=strangers,
            undecided=len(communicators.undecided),
            others=self._places.others,
            left=tuple(self._left),
        )
        return self._finished(columns, spans, communicators, flaws)

    def _missing_files(self) -> set[int]:
        missing = {i for i in self._places.ids if not archive.events(self._anchor, i).is_file()}
        if not self._places.ids:
            raise InputError(self._anchor.with_suffix(".def"), "defines no threads of execution: nothing was recorded")
        if len(missing) == len(self._places.ids):
            raise InputError(self._anchor.with_suffix(""), "holds no event file of any location")
        self._check_definitions(missing)
        return missing

    def _check_definitions(self, missing: set[int]) -> None:
        """Refuse an archive that lacks definitions of some locations: their ids would be taken for others."""
        recorded = [identity for identity in self._places.ids if identity not in missing]
        files = [archive.definitions(self._anchor, identity) for identity in recorded]
        found = [file.is_file() for file in files]
        for file, exists in zip(files, found, strict=True):
            if exists:
                archive.check_definitions(file)
            elif any(found):
                raise InputError(file, "missing: without it the events of this location cannot be interpreted")

    def _promised(self, identity: int) -> int:
        file = archive.events(self._anchor, identity)
        return archive.promised(file, self._header["chunk"])

    def _read(self, reading: Reading, columns: Columns, promised: dict[int, int]) -> list[_Span]:
        spans: dict[int, _Span] = {}
        location, start = -1, 0
        for letter, payload in reading.locations(promised):
            if letter == b"L":
                location, start = marshal.loads(payload), columns.used
            elif letter == b"R":
                columns.append(np.frombuffer(payload, dtype=ROWS))
            elif letter == b"N":
                spans[location] = _Span(start, columns.used, marshal.loads(payload))
                self._check(location, spans[location], promised[location], columns)
                rank = self._places.rank_of[location]
                for number, count in columns.collectives(start).items():
                    self._counts.setdefault(number, Counter())[rank] += count
            elif letter == b"Z":
                self._left = marshal.loads(payload)
        return self._in_order(spans)

    def _check(self, location: int, span: _Span, promised: int, columns: Columns) -> None:
        file = archive.events(self._anchor, location)
        if span.records != promised:
            raise InputError(file, f"holds {span.records} of {promised} events: the file is damaged")
        early = columns.backwards(span.start)
        if early is not None:
            raise InputError(file, "damaged: time runs backwards here", f"event {early - span.start + 1}")

    def _in_order(self, spans: dict[int, _Span]) -> list[_Span]:
        found: list[_Span] = []
        for identity in self._places.ids:
            end = found[-1].end if found else 0
            found.append(spans.get(identity, _Span(end, end)))
        return found

    def _communicators(self, spans: list[_Span]) -> Communicators:
        filled = zip(self._places.locations, spans, strict=True)
        present = {location.rank for location, span in filled if span.end > span.start}
        return choose(self._candidates, self._counts, present)

    def _repair(self, columns: Columns, spans: list[_Span], communicators: Communicators) -> int:
        ranks = np.array([location.rank for location in self._places.locations], dtype=np.int32)
        rank = np.repeat(ranks, [span.end - span.start for span in spans])
        return eztrace.repair(columns, rank, communicators.members)

    def _finished(self, columns: Columns, spans: list[_Span], communicators: Communicators, flaws: Flaws) -> Trace:
        if columns.name_undefined(len(self._regions)):
            self._regions.append(TraceRegion("undefined region", Role.USER))
        return Trace(
            program=self._program,
            tool=self._tool,
            locations=self._places.locations,
            regions=tuple(self._regions),
            communicators=communicators.members,
            files=tuple(self._files),
            first=np.array([0, *(span.end for span in spans)], dtype=np.int64),
            time_s=columns.seconds(self._offset, self._per_second),
            kind=columns.kind,
            region=columns.region,
            comm=columns.comm,
            partner=columns.partner,
            tag=columns.tag,
            size=columns.size,
            request=columns.request,
            ticks_s=1 / self._per_second,
            notes=notes(flaws),
            language=self._language,
        )

    def _lost(self) -> int:
        """Return the number of locations without an event file that should have one."""
        recorded = {row[0]: row[3] for row in self._header["definitions"]["Location"]}
        return sum(recorded[identity] > 0 for identity in self._missing)


def _clock(anchor: Path, rows: list[list[int]]) -> tuple[int, int]:
    if not rows or not rows[-1][0]:
        raise InputError(anchor.with_suffix(".def"), "defines no clock: its times have no unit")
    return rows[-1][0], rows[-1][1]
