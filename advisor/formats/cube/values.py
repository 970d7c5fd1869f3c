"""The values of a metric: ``N.index`` tells which call paths have a row, ``N.data`` holds one value per location.

The numbers in an index are not those of the call paths: each metric counts them in an order of its own, which depends
on how it is stored. See ``docs/formats/cube.md``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.cube.anchor import CubeMetric
    from advisor.formats.cube.archive import CubeArchive
    from advisor.model.records import FloatArray, IntArray

#: Bytes of one array of values, and so about of what is read for one metric.
SIZE_LIMIT: Final = 1 << 30
#: So many bytes of plain rows are read at a time: few enough to stay in the cache until they are in their places.
_BLOCK_B: Final = 1 << 20
_INDEX_MARK: Final = b"CUBEX.INDEX"
_DATA_MARK: Final = b"CUBEX.DATA"
_PACKED_MARK: Final = b"ZCUBEX.DATA"
_HEADER: Final = 18  # bytes of an index before the list: mark, endianness, version, kind
_SPARSE, _DENSE = 1, 3

#: CUBE's types of values: NumPy's type, and the field that is the value where there are several.
_TYPES: Final[Mapping[str, npt.DTypeLike]] = {
    "DOUBLE": "f8", "FLOAT": "f8", "MINDOUBLE": "f8", "MAXDOUBLE": "f8",
    "UINT64": "u8", "INT64": "i8", "UINT32": "u4", "INT32": "i4", "UINT16": "u2", "INT16": "i2", "UINT8": "u1",
    "INT8": "i1", "CHAR": "u1", "INTEGER": "i8", "UNSIGNED INTEGER": "u8", "SIGNED INTEGER": "i8", "INT": "i4",
    "UNSIGNED INT": "u4", "SIGNED INT": "i4", "SHORT INT": "i2", "SIGNED SHORT INT": "i2", "UNSIGNED SHORT INT": "u2",
    "TAU_ATOMIC": [("n", "u4"), ("min", "f8"), ("max", "f8"), ("value", "f8"), ("squares", "f8")],
    "RATE": [("value", "f8"), ("seconds", "f8")],
}  # fmt: skip
#: From here on a shortest or longest value means that nothing was measured.
_NEVER: Final = np.finfo(np.float64).max


@dataclass(frozen=True, slots=True)
class PathOrders:
    """The call paths (nodes,) in the orders in which metrics count them: depth first, level by level, as described."""

    deep: IntArray
    wide: IntArray
    described: IntArray

    def select_order(self, stored: str) -> IntArray:
        """Return the order of a metric that is stored in this way."""
        return {"INCLUSIVE": self.wide, "EXCLUSIVE": self.deep}.get(stored, self.described)


def build_orders(parent: Mapping[int, int]) -> PathOrders:
    """Return the orders of call paths, given the parent of each (-1: none) in the order of the document.

    Depth first is the order of the document. The other one lists all children of a node, then descends into each.
    """
    children: dict[int, list[int]] = {}
    for number, above in parent.items():
        children.setdefault(above, []).append(number)
    wide: list[int] = []
    for root in children.get(-1, []):
        wide.append(root)
        stack = [root]
        while stack:
            below = children.get(stack.pop(), [])
            wide += below
            stack += reversed(below)
    deep = np.fromiter(parent, dtype=np.int64)
    return PathOrders(deep, np.array(wide), np.sort(deep))


def iterate_values(
    archive: CubeArchive, metric: CubeMetric, place: IntArray, columns: IntArray, locations: int
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the values of ``metric`` (rows, columns), some rows at a time, each time with the rows' places.

    ``place`` (call paths,) is where each call path that the metric counts belongs, ``columns`` are the locations that
    are wanted. Nothing is yielded of call paths without values. Raises ``InputError`` with the member for what is
    damaged, and for types that are no numbers.
    """
    index, data = f"{metric.number}.index", f"{metric.number}.data"
    kind = _find_type(metric.values)
    if kind is None:
        raise InputError(archive.path, f"values of the type {metric.values[:40]!r} are not read", index)
    cells = len(place) * locations
    if cells * 8 > SIZE_LIMIT:
        raise InputError(archive.path, f"{cells:,} values of one metric are more than fit", index)
    little, counted = _read_index(archive, index, len(place))
    dtype = kind.newbyteorder("<" if little else ">")
    rows = place[counted]
    chosen = slice(None) if len(columns) == locations and (columns == np.arange(locations)).all() else columns
    for first, content in _iterate_rows(archive, data, len(rows), locations * dtype.itemsize, little):
        stored = np.frombuffer(content, dtype=dtype).reshape(-1, locations)
        plain = stored["value"] if dtype.names else stored
        if plain.dtype.kind == "f":
            plain = _clear_unmeasured(archive.path, metric, data, plain, first)
        yield rows[first : first + len(plain)], plain[:, chosen]


def has_values(archive: CubeArchive, metric: CubeMetric) -> bool:
    """Return whether the archive holds files of ``metric``."""
    return f"{metric.number}.index" in archive.members or f"{metric.number}.data" in archive.members


def _find_type(name: str) -> np.dtype[np.generic] | None:
    found = _TYPES.get(name.strip().upper())
    return None if found is None else np.dtype(found)


def _clear_unmeasured(path: Path, metric: CubeMetric, member: str, values: FloatArray, first: int) -> FloatArray:
    """Return ``values``, rows from ``first`` on, with zero for what was never measured.

    Raises ``InputError`` for what is no number.
    """
    extreme = metric.values.strip().upper() in ("MINDOUBLE", "MAXDOUBLE")
    with np.errstate(over="ignore", invalid="ignore"):
        if not extreme and np.isfinite(values.sum()):
            return values  # a single one that is no number would make the sum none
    never = (np.abs(values) >= _NEVER) & extreme
    wrong = ~np.isfinite(values) & ~never
    if wrong.any():
        row, location = (int(found[0]) for found in np.nonzero(wrong))
        reason = f"{metric.name} is {values[row, location]:g}, in row {first + row} at location {location}"
        raise InputError(path, reason, member)
    return np.where(never, 0.0, values)


def _read_index(archive: CubeArchive, name: str, nodes: int) -> tuple[bool, IntArray]:
    """Return whether numbers are little-endian, and for each row of the data the call path by the metric's count."""
    content = archive.read_member(name, _HEADER + 4 + 4 * nodes)
    if not content.startswith(_INDEX_MARK) or len(content) < _HEADER:
        raise InputError(archive.path, f"does not begin with {_INDEX_MARK.decode()}", f"{name}: byte 0")
    order = content[11:15]
    if order not in (b"\1\0\0\0", b"\0\0\0\1"):
        raise InputError(archive.path, "does not tell its byte order", f"{name}: byte 11")
    little = order[0] == 1
    version = int.from_bytes(content[15:17], "little" if little else "big")
    if version != 0:
        raise InputError(archive.path, f"unsupported version {version} of an index", f"{name}: byte 15")
    if content[17] == _DENSE and len(content) == _HEADER:
        return little, np.arange(nodes)
    if content[17] != _SPARSE:
        raise InputError(archive.path, f"unknown kind {content[17]} of an index", f"{name}: byte 17")
    return little, _parse_row_list(archive.path, name, content[_HEADER:], nodes, "<u4" if little else ">u4")


def _parse_row_list(path: Path, name: str, content: bytes, nodes: int, kind: str) -> IntArray:
    """Return the numbers that a sparse index lists: how many, then each, in ascending order."""
    if len(content) % 4 or not content:
        raise InputError(path, "does not hold whole numbers", name)
    numbers: npt.NDArray[np.generic] = np.frombuffer(content, dtype=kind)
    rows = numbers[1:].astype(np.int64)
    if int(numbers[0].item()) != len(rows):
        raise InputError(path, f"announces {numbers[0]} rows and lists {len(rows)}", f"{name}: byte {_HEADER}")
    if (np.diff(rows) <= 0).any() or (len(rows) and rows[-1] >= nodes):
        raise InputError(path, "lists rows out of order or beyond the call paths", f"{name}: byte {_HEADER + 4}")
    return rows


def _iterate_rows(
    archive: CubeArchive, name: str, rows: int, row_bytes: int, little: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the plain content of the rows, a few rows at a time, each with the number of its first."""
    size = rows * row_bytes
    mark = archive.read_part(name, 0, len(_PACKED_MARK))
    if mark == _PACKED_MARK:
        content = archive.read_member(name, SIZE_LIMIT)
        yield from _unpack_rows(archive.path, name, content, rows, row_bytes, "<u8" if little else ">u8")
        return
    if not mark.startswith(_DATA_MARK):
        raise InputError(archive.path, f"does not begin with {_DATA_MARK.decode()}", f"{name}: byte 0")
    held = archive.members[name].size - len(_DATA_MARK)
    if held != size:
        raise InputError(archive.path, f"holds {held:,} bytes of values, its index tells of {size:,}", name)
    height = max(1, _BLOCK_B // max(row_bytes, 1))
    for first in range(0, rows, height):
        count = min(height, rows - first)
        yield first, archive.read_part(name, len(_DATA_MARK) + first * row_bytes, count * row_bytes)


def _unpack_rows(
    path: Path, name: str, content: bytes, rows: int, row_bytes: int, kind: str
) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of compressed data: their number, for each its place before and after packing and its size."""
    start = len(_PACKED_MARK) + 8
    head: npt.NDArray[np.generic] = np.frombuffer(content[start - 8 : start].ljust(8, b"\xff"), dtype=kind)
    announced = int(head[0].item())
    if announced > rows or len(content) < start + 24 * announced:
        raise InputError(path, f"announces {announced:,} packed rows, its index tells of {rows:,}", name)
    table = np.frombuffer(content, dtype=kind, count=3 * announced, offset=start).reshape(-1, 3).astype(object)
    packed = memoryview(content)[start + 24 * announced :]
    for number, (place, begin, size) in enumerate(_check_packed_rows(path, name, table.tolist(), len(packed))):
        if place % row_bytes or place // row_bytes >= rows:
            raise InputError(path, f"row {number} lies outside of the values", name)
        yield place // row_bytes, _unpack_row(path, name, number, packed[begin : begin + size], row_bytes)


def _check_packed_rows(path: Path, name: str, table: list[list[int]], size: int) -> list[list[int]]:
    """Return the rows that were written, which fill the ``size`` bytes of packed data one behind the other."""
    written = sorted((row for row in table if row[2]), key=lambda row: row[1])
    end = 0
    for _, begin, length in written:
        if begin != end:
            raise InputError(path, f"packed rows overlap or leave gaps at byte {end} of them", name)
        end += length
    if end != size or len({row[0] for row in written}) < len(written):
        raise InputError(path, f"packed rows fill {end:,} of {size:,} bytes, or one place twice", name)
    return written


def _unpack_row(path: Path, name: str, number: int, packed: memoryview, size: int) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        row = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise InputError(path, f"row {number} cannot be unpacked: {error}", name) from None
    if len(row) != size or not unpacker.eof:
        raise InputError(path, f"row {number} unpacks to {len(row):,} bytes or more instead of {size:,}", name)
    return row
