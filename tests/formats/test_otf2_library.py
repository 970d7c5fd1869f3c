"""Our decoder of OTF2 against libotf2, event by event, where the ``otf2`` wheel can be installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from otf2_archives import COMM_IDS, REGION_IDS, Archive
from otf2_writer import CHUNK, EVENTS, event_file

from advisor.formats.otf2 import read_trace
from advisor.formats.otf2.anchor import read_anchor
from advisor.formats.otf2.id_lookup import IdLookup
from advisor.formats.otf2.layout import COUNTED
from advisor.formats.otf2.reading import EventReader
from advisor.trace.events import Kind

pytest.importorskip("_otf2", reason="needs the otf2 wheel: CPython 3.10 or 3.11 on x86-64")
import otf2_library

if TYPE_CHECKING:
    from otf2_library import LibraryEvent
    from otf2_writer import Order

ROOT = Path(__file__).resolve().parents[2]
ARCHIVES = sorted(path for folder in ("tests/profiles", "examples") for path in (ROOT / folder).rglob("*.otf2"))
WAYS = [False, True] if find_spec("numba") else [False]
NONE_32, NONE_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF

#: Kind of each event that becomes a row, and which of its fields are reference, partner, tag, size and request.
ROWS = {
    "Enter": (Kind.ENTER, 0, None, None, None, None),
    "Leave": (Kind.LEAVE, 0, None, None, None, None),
    "MpiSend": (Kind.SEND, 1, 0, 2, 3, None),
    "MpiRecv": (Kind.RECV, 1, 0, 2, 3, None),
    "MpiIsend": (Kind.ISEND, 1, 0, 2, 3, 4),
    "MpiIsendComplete": (Kind.ISEND_DONE, None, None, None, None, 0),
    "MpiIrecvRequest": (Kind.IRECV_POST, None, None, None, None, 0),
    "MpiIrecv": (Kind.IRECV, 1, 0, 2, 3, 4),
    "MpiCollectiveEnd": (Kind.COLLECTIVE, 1, 2, None, (3, 4), None),
    "NonBlockingCollectiveComplete": (Kind.COLLECTIVE, 1, 2, None, (3, 4), 5),
    "OmpFork": (Kind.FORK, None, None, None, 0, None),
    "OmpJoin": (Kind.JOIN, None, None, None, None, None),
    "ThreadFork": (Kind.FORK, None, None, None, 1, None),
    "ThreadJoin": (Kind.JOIN, None, None, None, None, None),
    "ThreadTeamBegin": (Kind.TEAM_BEGIN, None, None, None, None, None),
    "ThreadTeamEnd": (Kind.TEAM_END, None, None, None, None, None),
    "IoOperationComplete": (Kind.IO, 0, None, None, 1, None),
}
COUNTED_NAMES = (
    {"CallingContextEnter", "CallingContextLeave", "CallingContextSample"},
    {"Metric"},
    {"ParameterString", "ParameterInt", "ParameterUnsignedInt"},
    {"RmaPut", "RmaGet", "RmaAtomic"},
    {"MpiRequestCancelled"},
    {"Unknown"},
)
Row = tuple[int, ...]


def expected_row(event: LibraryEvent, numbers: dict[int, int]) -> Row:
    """Return ticks, kind, region, comm, partner, tag, size and request of an event of the library."""
    kind, *places = ROWS[event.name]
    reference, partner, tag, size, request = (
        None if place is None or isinstance(place, tuple) else event.fields[place] for place in places
    )
    if isinstance(places[3], tuple):
        parts = [event.fields[place] for place in places[3]]
        size = NONE_64 if NONE_64 in parts else sum(parts) % 2**64
    number = -1 if reference is None else numbers[reference]
    in_comm = kind not in (Kind.ENTER, Kind.LEAVE, Kind.IO)
    columns = (
        -1 if kind > Kind.LEAVE else number,
        number if in_comm else -1,
        number if kind == Kind.IO else signed(partner, NONE_32),
        signed(tag, NONE_32),
        signed(size, NONE_64),
        request or 0,
    )
    return (event.time, int(kind), *columns)


def signed(value: int | None, undefined: int) -> int:
    """Return an unsigned number as a signed one of the same width, -1 for none."""
    value = undefined if value is None else value
    return value - undefined - 1 if value > undefined // 2 else value


def assert_same_events(anchor: Path) -> int:
    """Assert that the events of an archive are those of the library; return how many rows they make."""
    locations = sorted(int(file.stem) for file in anchor.with_suffix("").glob("*.evt"))
    told = otf2_library.read_events(anchor, locations)
    rows = [event for events in told.values() for event in events if event.name in ROWS]
    ids = {event.fields[ROWS[event.name][1]] for event in rows if ROWS[event.name][1] is not None}
    numbers = {identity: number for number, identity in enumerate(sorted(ids))}
    for compiled in WAYS:
        lookups = (IdLookup(numbers) for _ in range(3))
        events = EventReader(anchor, read_anchor(anchor), *lookups).read_events(locations, compiled=compiled)
        found = list(zip(*(column.tolist() for column in events.columns.rows), strict=True))
        assert found == [expected_row(event, numbers) for event in rows]
        assert events.counts.tolist() == [
            sum(event.name in names for each in told.values() for event in each) for names in COUNTED_NAMES
        ]
    return len(rows)


@pytest.mark.parametrize("anchor", ARCHIVES, ids=lambda path: path.relative_to(ROOT).parts[-3])
def test_recorded_archives(anchor: Path) -> None:
    assert assert_same_events(anchor) > 0


def test_every_event_that_the_library_knows(tmp_path: Path) -> None:
    names = otf2_library.write_every_event(tmp_path / "every")
    assert set(ROWS) | set().union(*COUNTED_NAMES[:-1]) <= set(names)
    assert len(COUNTED_NAMES) == len(COUNTED)
    rows = assert_same_events(tmp_path / "every" / "traces.otf2")
    assert rows == 2 * len(ROWS)


@pytest.mark.parametrize("order", ["little", "big"])
def test_events_that_our_own_writer_wrote(tmp_path: Path, order: Order) -> None:
    """In several chunks, with id maps, corrected clocks, undefined values and times before and after the intervals."""
    generator = np.random.default_rng(4)
    with Archive(tmp_path / "own", ranks=2, order=order) as archive:
        for rank in range(2):
            write_random(archive, rank, generator)
            archive.id_map(rank, REGION_IDS, [2, 0, 1])
            archive.id_map(rank, COMM_IDS, {3: 1, 1: 0})
            for time in (10**6, 3 * 10**6, 10**7, 4 * 10**7):
                archive.clock_offset(rank, time, int(generator.integers(-(10**5), 10**5)))
    assert (tmp_path / "own" / "traces" / "0.evt").stat().st_size > CHUNK
    assert assert_same_events(tmp_path / "own" / "traces.otf2") > 10_000


def write_random(archive: Archive, rank: int, generator: np.random.Generator) -> None:
    """Write events of every type with random fields, many of them 0, undefined, or as large as they can be."""
    time = 500_000  # late enough for the corrected time not to be negative
    for name in generator.choice(sorted(set(EVENTS) - {"metric"}), 20_000).tolist():
        time += int(generator.choice([0, 0, 1, 3000]))
        widths = [{"B": 1, "I": 4, "Q": 8}[field] for field in EVENTS[name][1]]
        fields = [int(generator.integers(0, 256)) ** int(generator.integers(0, width + 1)) for width in widths]
        most = [(1 << 8 * width) - 1 for width in widths]
        undefined = (generator.random(len(fields)) < 0.1).tolist()
        values = [top if none else min(field, top) for field, top, none in zip(fields, most, undefined, strict=True)]
        getattr(archive.events(rank), name)(time, *values)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(points=st.lists(st.tuples(st.integers(1, 2**50), st.integers(-(2**40), 2**40)), max_size=5), data=st.data())
def test_clocks_are_corrected_to_the_tick(
    tmp_path_factory: pytest.TempPathFactory, points: list[tuple[int, int]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("clocks") / "archive"
    times = data.draw(st.lists(st.integers(2**41, 2**51), min_size=1, max_size=20).map(sorted))
    with Archive(path) as archive:
        for time in times:
            archive.events().mpi_isend_complete(time, 1)
        for time, offset in sorted(dict(points).items()):
            archive.clock_offset(0, time, offset)
    told = [event.time for event in otf2_library.read_events(path / "traces.otf2", [0])[0]]
    assume(told == sorted(told))  # else refused: time runs backwards
    start = min(told) if max(told) - min(times) >= 2**53 else min(times)
    assume(max(told) < 2**63 and max(told) - start < 2**51)  # else ticks are lost on the way to seconds and back
    for compiled in WAYS:
        found = np.rint(read_trace(path, compiled).time_s * 1e9).astype(np.int64)
        assert (found + start).tolist() == told


def test_an_empty_event_file_is_one_to_the_library_too(tmp_path: Path) -> None:
    nothing = np.zeros(0, dtype=np.uint64)
    with Archive(tmp_path / "idle", ranks=2) as archive:
        archive.events(0).enter(1, archive.region("work"))
        archive.events(1)
    assert len(event_file(nothing, nothing.astype(np.uint8), np.zeros((0, 6), dtype=np.uint64))) == 20
    assert assert_same_events(tmp_path / "idle" / "traces.otf2") == 1
