"""OTF2 archives, the traces of Score-P, EZTrace and TAU, read with libotf2 (see ``docs/otf2.md``)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.errors import InputError
from advisor.hookspecs import hookimpl
from advisor.readers import otf2_communicators, otf2_contents
from advisor.readers.otf2_columns import ROWS, Columns, Lookup
from advisor.readers.otf2_process import Reading
from advisor.traces.events import Role, Trace, TraceRegion

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model import IntArray, Note, Profile
    from advisor.readers.otf2_communicators import Communicators
    from advisor.readers.otf2_definitions import Definitions

_DEPTH = 4
_MAGIC = b"OTF2"


def read_trace(path: Path, compiled: bool | None = None) -> Trace:
    """Return the events of the OTF2 archive at ``path``: its anchor file, or a directory that holds one.

    ``compiled`` chooses between callbacks compiled by numba and plain ones; by default by the size of the
    archive. Raises ``InputError`` for what is missing or damaged.
    """
    anchor = find_anchor(path)
    if anchor is None:
        raise InputError(path, "no OTF2 archive here (an anchor file *.otf2)")
    with Reading(anchor, bool(compiled)) as reading:
        definitions, creator = reading.header()
        contents = _Contents(anchor, definitions, creator)
        spans = contents.read(reading)
    return contents.trace(spans)


def find_anchor(path: Path) -> Path | None:
    """Return the anchor file at ``path`` or a few levels below, None when there is none."""
    if path.is_file():
        return path if path.suffix == ".otf2" else None
    for depth in range(_DEPTH):
        found = sorted(path.glob("*/" * depth + "*.otf2"))
        if found:
            return found[0]
    return None


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for an OTF2 anchor file or a directory that contains one, else None."""
    anchor = find_anchor(path)
    if anchor is None:
        return None
    try:
        with anchor.open("rb") as file:
            return 1.0 if _MAGIC in file.read(16) else None
    except OSError:
        return None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded in the OTF2 archive at ``path``; raises ``InputError`` for what is damaged."""
    from advisor.traces.profile import from_trace

    return from_trace(read_trace(path))


@dataclass(frozen=True, slots=True)
class _Span:
    """The rows of one location: from, to, and how many records were read for them."""

    start: int
    end: int
    records: int


class _Contents:
    """An archive on its way to a ``Trace``: definitions made into records, columns being filled."""

    def __init__(self, anchor: Path, definitions: Definitions, creator: str) -> None:
        self.anchor = anchor
        names = otf2_contents.strings(definitions)
        self.program = otf2_contents.program(definitions, names, anchor.stem)
        self.tool = otf2_contents.tool(definitions, names, creator)
        self.places = otf2_contents.places(definitions, names)
        region_of, self.regions = otf2_contents.regions(definitions, names)
        file_of, self.files = otf2_contents.files(definitions, names)
        self.candidates = otf2_communicators.candidates(definitions, self.places)
        self.comm_ids = list(self.candidates)
        self.region_lookup = Lookup(region_of)
        self.columns = Columns(
            self.region_lookup,
            Lookup({identity: number for number, identity in enumerate(self.comm_ids)}),
            Lookup(file_of),
        )
        clock = definitions["ClockProperties"]
        if not clock or clock[-1][0] == 0:
            raise InputError(anchor.with_suffix(".def"), "no clock resolution: times mean nothing")
        self.per_second, self.offset = clock[-1][:2]
        self.counts: IntArray = np.zeros((len(self.comm_ids), self.places.ranks), dtype=np.int64)

    def read(self, reading: Reading) -> list[_Span]:
        """Fill the columns; return the span of every location, empty where it has no event file."""
        recorded = [identity for identity in self.places.ids if self._events(identity).is_file()]
        spans: dict[int, _Span] = {}
        location, start = -1, 0
        for letter, payload in reading.locations(recorded):
            if letter == b"L":
                location, start = json.loads(payload), self.columns.used
            elif letter == b"R":
                self.columns.append(np.frombuffer(payload, dtype=ROWS))
            elif letter == b"N":
                spans[location] = _Span(start, self.columns.used, json.loads(payload))
                rank = self.places.rank_of[location]
                self.counts[:, rank] += self.columns.collectives(start, len(self.comm_ids))
        return self._in_order(spans)

    def _in_order(self, spans: dict[int, _Span]) -> list[_Span]:
        found: list[_Span] = []
        for identity in self.places.ids:
            end = found[-1].end if found else 0
            found.append(spans.get(identity, _Span(end, end, 0)))
        return found

    def _events(self, location: int) -> Path:
        return self.anchor.with_suffix("") / f"{location}.evt"

    def trace(self, spans: list[_Span]) -> Trace:
        """Return the finished record."""
        columns, communicators = self.columns, self._communicators(spans)
        for location, span in zip(self.places.locations, spans, strict=True):
            columns.place(span.start, span.end, location.rank, communicators)
        time_s = columns.seconds(self.offset, self.per_second)
        return Trace(
            program=self.program,
            tool=self.tool,
            locations=self.places.locations,
            regions=self._all_regions(),
            communicators=communicators.members,
            files=tuple(self.files),
            first=np.array([0, *(span.end for span in spans)], dtype=np.int64),
            time_s=time_s,
            kind=columns.kind,
            region=columns.region,
            comm=columns.comm,
            partner=columns.partner,
            tag=columns.tag,
            size=columns.size,
            request=columns.request,
            ticks_s=1 / self.per_second,
            notes=self._notes(),
        )

    def _communicators(self, spans: list[_Span]) -> Communicators:
        filled = zip(self.places.locations, spans, strict=True)
        present = {location.rank for location, span in filled if span.end > span.start}
        return otf2_communicators.choose(self.candidates, self.comm_ids, self.counts, present)

    def _all_regions(self) -> tuple[TraceRegion, ...]:
        if not self.region_lookup.undefined:
            return tuple(self.regions)
        self.columns.region[(self.columns.region < 0) & (self.columns.kind <= 2)] = len(self.regions)
        return (*self.regions, TraceRegion("undefined region", Role.USER))

    def _notes(self) -> tuple[Note, ...]:
        return ()
