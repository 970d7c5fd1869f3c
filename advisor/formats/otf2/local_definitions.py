"""What a location's own definitions say: which global ids its local ids stand for, and how its clock is corrected."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from advisor.formats.otf2.chunks import split_definition_records
from advisor.formats.otf2.clock_correction import ClockCorrection
from advisor.model.record_class import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.otf2.cursor import Cursor

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
