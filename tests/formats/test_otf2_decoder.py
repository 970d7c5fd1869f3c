"""The decoder of OTF2 events by itself: what is written is read, by both ways of decoding, and nothing crashes it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from otf2_writer import CHUNK, EVENTS, Order, definition_file, event_file, pack_record

from advisor.formats.otf2 import plain_decoder
from advisor.formats.otf2.chunks import END_OF_CHUNK, END_OF_FILE, HEADER, find_chunks
from advisor.formats.otf2.clock_correction import ClockCorrection
from advisor.formats.otf2.codes import COMM_LOCATIONS, MPI, PARADIGMS, ROLES
from advisor.formats.otf2.decoding import choose_decoder, read_bytes
from advisor.formats.otf2.definitions import read_definitions
from advisor.formats.otf2.id_lookup import IdLookup
from advisor.formats.otf2.layout import COUNTER, ROW_KIND
from advisor.formats.otf2.rows import (
    PADDING,
    ROW_TYPES,
    ChunkBytes,
    DecodedChunk,
    DecodingContext,
    DecodingError,
    EventRows,
)
from advisor.model.errors import InputError
from advisor.trace.events import Kind

if TYPE_CHECKING:
    from pathlib import Path

WAYS = [False, True] if find_spec("numba") else [False]
NONE_32, NONE_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
KNOWN = (0, 1, 2, 7, 300, 70_000, 2**24, 2**32 - 2)
CONTEXT = DecodingContext(*(IdLookup({identity: number for number, identity in enumerate(KNOWN)}) for _ in range(3)),
                  ClockCorrection.make_identity())  # fmt: skip


class Written(NamedTuple):
    """Events as arrays: ticks, record types and fields."""

    time: npt.NDArray[np.uint64]
    record: npt.NDArray[np.uint8]
    values: npt.NDArray[np.uint64]


@st.composite
def written(draw: st.DrawFn, most: int = 60) -> Written:
    """Events of any type with any fields; few distinct values, so that each size of a packed integer occurs."""
    names = draw(st.lists(st.sampled_from(sorted(EVENTS)), max_size=most))
    pauses = draw(st.lists(st.sampled_from([0, 0, 1, 1000, 2**40]), min_size=len(names), max_size=len(names)))
    values = np.zeros((len(names), 6), dtype=np.uint64)
    for row, name in enumerate(names):
        for column, field in enumerate(EVENTS[name][1]):
            most_bits = {"B": 8, "I": 32, "Q": 64}[field]
            known = [value for value in (*KNOWN, NONE_32, 2**40, NONE_64) if value < 1 << most_bits]
            values[row, column] = draw(st.sampled_from(known) | st.integers(0, (1 << most_bits) - 1))
    time = np.cumsum(np.array([draw(st.integers(0, 2**50)), *pauses], dtype=np.uint64))[: len(names)]
    return Written(time, np.array([EVENTS[name][0] for name in names], dtype=np.uint8), values)


def empty_rows(count: int) -> EventRows:
    return EventRows(*(np.zeros(count, dtype=kind) for kind in ROW_TYPES.values()))


def as_bytes(content: bytes, start: int = HEADER, order: Order = "little") -> ChunkBytes:
    """Return the content of a chunk as the decoders take it."""
    data = np.frombuffer(content + bytes(PADDING), dtype=np.uint8).copy()
    return ChunkBytes(data, len(content), start, order == "big")


def decode(chunk: ChunkBytes, most: int, compiled: bool) -> tuple[DecodedChunk, EventRows] | str:
    """Return what was in a chunk and its rows, or the reason why it is none."""
    rows = empty_rows(most)
    try:
        decoded = choose_decoder(compiled=compiled)(chunk, CONTEXT, rows)
    except DecodingError as error:
        return str(error) if 0 <= error.position <= chunk.size else f"no place of the chunk: {error.position}"
    return decoded, rows.slice_rows(0, decoded.rows)


def same(one: tuple[DecodedChunk, EventRows] | str, other: tuple[DecodedChunk, EventRows] | str) -> bool:
    """Whether two ways of decoding gave the same; if they refuse, they may name different damage first."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and "no place" not in one + other
    (told, rows), (told_too, rows_too) = one, other
    columns = all(np.array_equal(a, b) for a, b in zip((*rows, told.counts), (*rows_too, told_too.counts), strict=True))
    return columns and told._replace(counts=rows.ticks) == told_too._replace(counts=rows.ticks)


def expected(events: Written) -> list[tuple[int, ...]]:
    """Return the rows that events make, value by value."""
    numbers = {identity: number for number, identity in enumerate(KNOWN)}
    rows = []
    for time, record, fields in zip(events.time.tolist(), events.record.tolist(), events.values.tolist(), strict=True):
        kind = int(ROW_KIND[record])
        if not kind:
            continue
        region = comm = partner = tag = size = -1
        request = 0
        if kind <= Kind.LEAVE:
            region = numbers.get(fields[0], -1)
        elif kind in (Kind.SEND, Kind.RECV, Kind.ISEND, Kind.IRECV):
            partner, comm, tag, size = fields[0], numbers.get(fields[1], -1), fields[2], fields[3]
            request = fields[4] if kind in (Kind.ISEND, Kind.IRECV) else 0
        elif kind == Kind.COLLECTIVE:
            comm, partner = numbers.get(fields[1], -1), fields[2]
            size = NONE_64 if NONE_64 in fields[3:5] else (fields[3] + fields[4]) % 2**64
            request = fields[5]
        elif kind == Kind.FORK:
            size = fields[0] if record == EVENTS["omp_fork"][0] else fields[1]
        elif kind == Kind.IO:
            partner, size = numbers.get(fields[0], -1), fields[1]
        elif kind in (Kind.ISEND_DONE, Kind.IRECV_POST):
            request = fields[0]
        rows.append((time, kind, region, comm, wrap(partner, 32), wrap(tag, 32), wrap(size, 64), request))
    return rows


def wrap(value: int, bits: int) -> int:
    """Return an unsigned number as a signed one of ``bits`` bits."""
    return value - (1 << bits) if value >> bits - 1 > 0 else value


@settings(deadline=None)
@given(events=written(), order=st.sampled_from(["little", "big"]))
def test_what_is_written_is_read(events: Written, order: Order) -> None:
    chunk = as_bytes(event_file(*events, order), order=order)
    for compiled in WAYS:
        outcome = decode(chunk, len(events.time), compiled)
        assert not isinstance(outcome, str), outcome
        decoded, rows = outcome
        assert list(zip(*(column.tolist() for column in rows), strict=True)) == expected(events)
        assert decoded.events == len(events.time)
        assert decoded.counts.sum() == np.count_nonzero(COUNTER[events.record] >= 0)
        assert decoded.end_record == END_OF_FILE
        assert decoded.undefined == sum(row[1] <= Kind.LEAVE and row[2] < 0 for row in expected(events))


@settings(deadline=None, max_examples=300)
@given(events=written(20), data=st.data())
def test_damaged_bytes_are_refused_or_read_the_same_by_both(events: Written, data: st.DataObject) -> None:
    content = bytearray(event_file(*events))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(HEADER, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(HEADER, len(content)))
    chunk = as_bytes(bytes(content[:cut]))
    outcomes = [decode(chunk, len(events.time), compiled) for compiled in WAYS]
    assert same(outcomes[0], outcomes[-1]), outcomes


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from([0, 2, 5, 6, 12, 13, 14, 23, 31, 255]) | st.integers(0, 255), max_size=80).map(bytes))
def test_any_bytes_are_refused_or_read_the_same_by_both(content: bytes) -> None:
    outcomes = [decode(as_bytes(content, start=0), 8, compiled) for compiled in WAYS]
    assert same(outcomes[0], outcomes[-1]), outcomes


def test_events_of_several_chunks_are_cut_where_their_headers_say(tmp_path: Path) -> None:
    count = 60_000
    time = np.repeat(np.arange(count // 4, dtype=np.uint64), 4)  # chunks begin within events of one time
    values = np.full((count, 6), 300, dtype=np.uint64)
    (tmp_path / "0.evt").write_bytes(event_file(time, np.full(count, 14, dtype=np.uint8), values))
    chunks = find_chunks(tmp_path / "0.evt", CHUNK)
    assert len(chunks) > 2
    for compiled in WAYS:
        read = [decode(read_bytes(chunk), chunk.events, compiled) for chunk in chunks]
        ticks = [outcome[1].ticks for outcome in read if not isinstance(outcome, str)]
        assert np.array_equal(np.concatenate(ticks), time)
        ends = [outcome[0].end_record for outcome in read if not isinstance(outcome, str)]
        assert ends == [END_OF_CHUNK] * (len(chunks) - 1) + [END_OF_FILE]


@pytest.mark.parametrize("compiled", WAYS)
def test_records_of_newer_and_older_writers(compiled: bool) -> None:
    """What a newer writer appended is passed over, also by a length of nine bytes; what is missing is undefined."""
    stamp = b"\x05" + (77).to_bytes(8, "little")
    send = b"\x01\x01\x01\x02\x01\x07\x01\x09"
    newer = b"\x0e" + bytes([len(send) + 3]) + send + b"new"
    long = b"\x0e\xff" + (len(send) + 500).to_bytes(8, "little") + send + b"x" * 500
    older = b"\x0e\x04" + send[:4]
    unknown = b"\xc8\x02\x05\x00"
    outcome = decode(as_bytes(stamp + newer + long + older + unknown + b"\x02", start=0), 4, compiled)
    assert not isinstance(outcome, str), outcome
    decoded, rows = outcome
    assert (decoded.events, decoded.counts[-1]) == (4, 1)
    assert list(zip(rows.partner, rows.comm, rows.tag, rows.size, strict=True)) == [
        (1, 2, 7, 9), (1, 2, 7, 9), (1, 2, -1, -1)
    ]  # fmt: skip


@pytest.mark.parametrize("compiled", WAYS)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "ends inside a record"),
        (b"\x05\x01\x00", "ends inside a record"),
        (b"\x0c\x00\x02", "without a time"),
        (b"\x05" + bytes(8) + b"\x0c\x05" + bytes(9), "integer of 5 bytes"),
        (b"\x05" + bytes(8) + b"\x0e\x02\x01\x01\x02", None),
        (b"\x05" + bytes(8) + b"\x0e\x02\x04\x01\x02", "beyond the end of its record"),
        (b"\x05" + bytes(8) + b"\x0e\xff" + b"\xff" * 8 + b"\x02", "ends inside a record"),
        (b"\x05" + bytes(8) + b"\x07\x00\x02", "7 is not a record type"),
        (b"\x05" + bytes(8) + b"\x0c\x00" * 5 + b"\x02", "more than the 4 events"),
    ],
)
def test_what_makes_no_events_is_said(content: bytes, reason: str | None, compiled: bool) -> None:
    outcome = decode(as_bytes(content, start=0), 4, compiled)
    assert (reason is None) if not isinstance(outcome, str) else reason is not None and reason in outcome


def test_definitions_of_the_first_versions_are_understood(tmp_path: Path) -> None:
    records = [
        pack_record(15, "IIIBIII", (0, 1, NONE_32, 22, NONE_32, 0, 0), "little"),
        pack_record(18, "IIBIL", (0, 1, 6, 2, [0, 1]), "little"),
        pack_record(22, "IIII", (0, 1, 0, NONE_32), "little"),
    ]
    (tmp_path / "old.def").write_bytes(definition_file(records, "little"))
    found = read_definitions(tmp_path / "old.def", CHUNK, 3)
    assert found["Region"] == [[0, 1, 1, NONE_32, ROLES.index("BARRIER"), PARADIGMS.index("MPI"), 0, NONE_32, 0, 0]]
    assert found["Group"] == [[0, 1, COMM_LOCATIONS, MPI, 0, [0, 1]]]
    assert found["Comm"] == [[0, 1, 0, NONE_32, NONE_32]]
    with pytest.raises(InputError, match="holds 3 of 4 definitions"):
        read_definitions(tmp_path / "old.def", CHUNK, 4)


def test_the_walk_ends_where_the_bytes_end() -> None:
    assert plain_decoder.find_records(b"\x0c\xff\x0e", 0, "little") == ([0], 3)
