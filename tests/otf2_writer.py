"""Writes OTF2 archives without the library: definitions one by one, events in arrays, millions a second.

Only what tests and benchmarks need. It shares no table with the reader, so that both can't be wrong in the same way;
that libotf2 reads the same is tested where there is one (``test_otf2_library.py``).
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import numpy.typing as npt

Order = Literal["little", "big"]
U64 = np.uint64
NONE_32, NONE_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
#: The smallest chunks that OTF2 allows, in bytes.
CHUNK = 1 << 18
_HEADER = 18

#: Record type and fields of each event: ``B`` a byte, ``I`` and ``Q`` packed integers of 32 and 64 bits.
EVENTS: dict[str, tuple[int, str]] = {
    "enter": (12, "I"),
    "leave": (13, "I"),
    "mpi_send": (14, "IIIQ"),
    "mpi_isend": (15, "IIIQQ"),
    "mpi_isend_complete": (16, "Q"),
    "mpi_irecv_request": (17, "Q"),
    "mpi_recv": (18, "IIIQ"),
    "mpi_irecv": (19, "IIIQQ"),
    "mpi_request_cancelled": (21, "Q"),
    "mpi_collective_begin": (22, ""),
    "mpi_collective_end": (23, "BIIQQ"),
    "omp_fork": (24, "I"),
    "omp_join": (25, ""),
    "metric": (31, "IBBQ"),  # with a single value, of the type in the second byte
    "parameter_int": (33, "IQ"),
    "rma_put": (46, "IIQQ"),
    "thread_fork": (53, "BI"),
    "thread_join": (54, "B"),
    "thread_team_begin": (55, "I"),
    "thread_team_end": (56, "I"),
    "calling_context_enter": (66, "II"),
    "io_operation_complete": (78, "IQQ"),
    "non_blocking_collective_complete": (86, "BIIQQQ"),
}
_FIELDS = dict(EVENTS.values())
_WITHOUT_LENGTH = (12, 13, 16, 17, 20, 21, 24, 28, 29, 30)
_WIDTHS = {"B": 1, "I": 4, "Q": 8}


def pack(value: int, width: int, order: Order) -> bytes:
    """Return a packed integer of at most ``width`` bytes; -1 is undefined."""
    value &= (1 << 8 * width) - 1
    if value == (1 << 8 * width) - 1:
        return b"\xff"
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, order)


def pack_record(kind: int, fields: str, values: Iterable[int | str | Sequence[int]], order: Order) -> bytes:
    """Return a record with a length. Fields as in ``EVENTS``, ``S`` a string, ``D`` eight plain bytes, ``L`` a list."""
    content = b"".join(_pack_field(field, value, order) for field, value in zip(fields, values, strict=True))
    length = bytes([len(content)]) if len(content) < 255 else b"\xff" + len(content).to_bytes(8, order)
    return bytes([kind]) + length + content


def _pack_field(field: str, value: int | str | Sequence[int], order: Order) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape") + b"\0"
    if not isinstance(value, int):
        return b"".join(pack(each, 8, order) for each in value)
    if field in "BD":
        return value.to_bytes(1 if field == "B" else 8, order)
    return pack(value, _WIDTHS[field], order)


def definition_file(records: Iterable[bytes], order: Order, chunk: int = CHUNK) -> bytes:
    """Return the content of a file of definitions: records in as many chunks as they need."""
    header = b"\x03" + (b"B" if order == "little" else b"#") + bytes(16)
    chunks = [bytearray(header)]
    for record in records:
        if len(chunks[-1]) + len(record) + 2 > chunk:
            chunks[-1] += bytes(chunk - len(chunks[-1]))
            chunks.append(bytearray(header))
        chunks[-1] += record
    return b"".join(chunks) + b"\x02\x01"


def anchor_file(locations: int, definitions: int, order: Order, creator: str = "", chunk: int = CHUNK) -> bytes:
    """Return the content of an anchor file."""
    sign, mark = ("<", b"B") if order == "little" else (">", b"#")
    numbers = struct.pack(f"{sign}QQBBQQ", chunk, chunk, 1, 1, locations, definitions)
    texts = b"\0" + creator.encode() + b"\0" + b"\0"
    tail = struct.pack(f"{sign}IQII", 0, 1234, 0, 0) + b"\x02\x01\x00"
    return b"\x03" + mark + b"OTF2\0" + bytes([3, 2, 3, 0, 0]) + numbers + texts + tail


def event_file(
    time: npt.NDArray[np.uint64],
    record: npt.NDArray[np.uint8],
    values: npt.NDArray[np.uint64],
    order: Order = "little",
    chunk: int = CHUNK,
) -> bytes:
    """Return the content of an event file.

    ``time`` and ``record`` (events,) are ticks and record types, ``values`` (events, at most 6) the fields of each
    in the order of ``EVENTS``.
    """
    count = len(time)
    stamped = np.ones(count, dtype=bool)
    stamped[1:] = time[1:] != time[:-1]
    sizes, lengths = _measure(record, values)
    room = sizes + 9 * stamped
    edges = _cut(room, stamped, chunk)
    firsts = np.array(edges[:-1], dtype=np.int64)
    if count:
        room[firsts] += 9 * ~stamped[firsts]
        stamped[firsts] = True
    position = np.cumsum(room) - room
    starts = position[firsts] if count else np.zeros(1, dtype=np.int64)
    chunk_of = np.searchsorted(firsts, np.arange(count), side="right") - 1
    position += chunk_of * chunk + _HEADER - starts[chunk_of] if count else 0
    end = int(position[-1] + room[-1]) if count else _HEADER
    out = np.zeros(end + 2, dtype=np.uint8)
    for number, (first, last) in enumerate(pairwise(edges)):
        begin = number * chunk
        out[begin], out[begin + 1] = 3, ord("B" if order == "little" else "#")
        numbers = struct.pack("<QQ" if order == "little" else ">QQ", first + 1, last)
        out[begin + 2 : begin + _HEADER] = np.frombuffer(numbers, dtype=np.uint8)
    if count:
        _put_word(out, position[stamped] + 1, time[stamped], np.full(int(stamped.sum()), 8), order)
        out[position[stamped]] = 5
        _put_events(out, position + 9 * stamped, record, lengths, values, order)
    out[end:] = 2, 1
    return out.tobytes()


def _cut(room: npt.NDArray[np.int64], stamped: npt.NDArray[np.bool_], chunk: int) -> list[int]:
    """Return the first event of each chunk, and the number of events."""
    behind = np.concatenate([[0], np.cumsum(room)])
    edges = [0]
    while edges[-1] < len(room):
        first = edges[-1]
        left = chunk - _HEADER - 2 - 9 * (not stamped[first])
        edges.append(int(np.searchsorted(behind, behind[first] + left, side="right")) - 1)
    return edges if len(room) else [0, 0]


def _packed_sizes(values: npt.NDArray[np.uint64], width: int) -> npt.NDArray[np.int64]:
    """Return the number of bytes of each packed value, -1 for undefined ones."""
    size = np.zeros(len(values), dtype=np.int64)
    for byte in range(width):
        size += values >> U64(8 * byte) > 0
    size[values == U64((1 << 8 * width) - 1)] = -1
    return size


def _measure(
    record: npt.NDArray[np.uint8], values: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the bytes that each event takes without its time, and those of its content."""
    content = np.zeros(len(record), dtype=np.int64)
    for kind in np.unique(record).tolist():
        chosen = np.flatnonzero(record == kind)
        for column, field in enumerate(_FIELDS[kind]):
            if field == "B":
                content[chosen] += 1
            else:
                content[chosen] += 1 + np.maximum(_packed_sizes(values[chosen, column], _WIDTHS[field]), 0)
    return content + 2 - np.isin(record, _WITHOUT_LENGTH), content


def _put_word(
    out: npt.NDArray[np.uint8],
    at: npt.NDArray[np.int64],
    values: npt.NDArray[np.uint64],
    size: npt.NDArray[np.int64],
    order: Order,
) -> None:
    """Write integers of ``size`` bytes each."""
    for byte in range(int(size.max(initial=0))):
        there = np.flatnonzero(size > byte) if size.min() <= byte else slice(None)
        offset = byte if order == "little" else size[there] - 1 - byte
        out[at[there] + offset] = (values[there] >> U64(8 * byte)) & U64(255)


def _put_events(
    out: npt.NDArray[np.uint8],
    at: npt.NDArray[np.int64],
    record: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int64],
    values: npt.NDArray[np.uint64],
    order: Order,
) -> None:
    out[at] = record
    for kind in np.unique(record).tolist():
        chosen = np.flatnonzero(record == kind)
        place = at[chosen] + 1
        if kind not in _WITHOUT_LENGTH:
            out[place] = lengths[chosen]
            place += 1
        for column, field in enumerate(_FIELDS[kind]):
            value = values[chosen, column]
            if field == "B":
                out[place] = value
                place += 1
                continue
            size = _packed_sizes(value, _WIDTHS[field])
            out[place] = np.where(size < 0, 255, size)
            size = np.maximum(size, 0)
            _put_word(out, place + 1, value, size, order)
            place += 1 + size


def write_archive(
    path: Path,
    definitions: Sequence[bytes],
    files: dict[int, tuple[bytes, bytes]],
    order: Order = "little",
    creator: str = "",
) -> None:
    """Write an archive into the directory ``path``; ``files`` are local definitions and events by location."""
    (path / "traces").mkdir(parents=True)
    (path / "traces.otf2").write_bytes(anchor_file(len(files), len(definitions), order, creator))
    (path / "traces.def").write_bytes(definition_file(definitions, order))
    for location, (local, events) in files.items():
        (path / "traces" / f"{location}.def").write_bytes(local)
        (path / "traces" / f"{location}.evt").write_bytes(events)
