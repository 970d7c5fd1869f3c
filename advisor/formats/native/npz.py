"""NPZ archives from strangers: arrays by name, sizes checked before anything is read, never a pickle.

An NPZ file is a zip archive of ``.npy`` members (NumPy's documentation of ``numpy.lib.format``). Members that are
stored uncompressed as little-endian float64 are mapped into memory instead of read. The checksum of each member is
verified, also of the mapped ones, so that a damaged file is noticed.
"""

from __future__ import annotations

import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, Final, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from advisor.model.errors import InputError

FILE_LIMIT: Final = 8 << 30  # bytes of the archive
DIRECTORY_LIMIT: Final = 8 << 20  # bytes of the archive's list of members: some 100,000 names
READ_LIMIT: Final = 2 << 30  # bytes in all that are read into memory instead of being mapped
RATIO_LIMIT: Final = 200  # of compression, for members that unpack to more than RATIO_FREE
RATIO_FREE: Final = 16 << 20
HEADER_LIMIT: Final = 10_000
CHUNK: Final = 1 << 20
DAMAGED: Final = "size or checksum do not fit the data: the file is damaged"


@dataclass(slots=True)
class NpzArchive:
    """The members of one archive by name (without ``.npy``); ``budget`` is what may still be read into memory."""

    path: Path
    members: dict[str, zipfile.ZipInfo]
    budget: int = READ_LIMIT
    used: set[str] = field(default_factory=set)
    _map: npt.NDArray[np.uint8] | None = None

    def load_array(self, name: str) -> npt.NDArray[np.generic]:
        """Return the array of member ``name``, mapped where possible; raises ``InputError`` on damage."""
        self.used.add(name)
        member = self.members[name]
        with _convert_errors(self.path, name), self.path.open("rb") as stream:
            mapped = member.compress_type == zipfile.ZIP_STORED
            return self._map_member(stream, member) if mapped else self._unpack_member(stream, member)

    def load_text(self, name: str) -> bytes:
        """Return the UTF-8 text of a member that holds a string, or the bytes of one that holds bytes."""
        array = self.load_array(name)
        if array.dtype.kind == "U" and array.ndim == 0:
            return str(array).encode("utf-8", "surrogatepass")
        if (array.dtype.kind == "S" and array.ndim == 0) or array.dtype == np.uint8:
            return array.tobytes()
        raise InputError(self.path, f"expected a string, found an array of {array.dtype}", f"{name}.npy")

    def _map_member(self, stream: IO[bytes], member: zipfile.ZipInfo) -> npt.NDArray[np.generic]:
        if member.file_size != member.compress_size:
            raise ValueError(DAMAGED)
        start = _data_start(stream, member)
        _verify_checksum(stream, start, member)
        stream.seek(start)
        layout = _read_layout(stream, start + member.file_size)
        if layout.dtype == np.dtype("<f8") and layout.count:
            return np.ndarray(layout.shape, layout.dtype, self._map_file(), layout.offset, order=layout.order)
        self._spend_budget(layout.size)
        stream.seek(layout.offset)
        return layout.build_array(stream.read(layout.size))

    def _unpack_member(self, stream: IO[bytes], member: zipfile.ZipInfo) -> npt.NDArray[np.generic]:
        if member.compress_type != zipfile.ZIP_DEFLATED:
            raise ValueError("a kind of compression that NPZ files do not use")
        if member.file_size > max(RATIO_FREE, RATIO_LIMIT * member.compress_size):
            raise ValueError(f"unpacks to more than {RATIO_LIMIT} times its size")
        self._spend_budget(member.file_size)
        stream.seek(_data_start(stream, member))
        packed = stream.read(member.compress_size)
        data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.file_size + 1)
        if len(data) != member.file_size or zlib.crc32(data) != member.CRC:
            raise ValueError(DAMAGED)
        layout = _read_layout(BytesIO(data), len(data))
        return layout.build_array(data[layout.offset :])

    def _map_file(self) -> npt.NDArray[np.uint8]:
        """Return the file as one read-only map: a map of its own for each of many members costs a descriptor each."""
        if self._map is None:
            self._map = np.memmap(self.path, np.uint8, "r")
        return self._map

    def _spend_budget(self, size: int) -> None:
        self.budget -= size
        if self.budget < 0:
            raise ValueError(f"more than {READ_LIMIT >> 30} GiB would have to be read into memory; store float64")


def open_archive(path: Path) -> NpzArchive:
    """Return the archive at ``path``; raises ``InputError`` where it is none, damaged, or has a hostile directory."""
    with _convert_errors(path, None), path.open("rb") as stream:
        size = stream.seek(0, 2)
        if size > FILE_LIMIT:
            raise ValueError(f"is larger than {FILE_LIMIT >> 30} GiB, the limit for archives")
        if _directory_size(stream, size) > DIRECTORY_LIMIT:
            raise ValueError("too many members")
        with zipfile.ZipFile(stream) as archive:
            infos = archive.infolist()
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = info.filename.removesuffix(".npy")
        if name == info.filename or name in members or info.flag_bits & 1:
            raise InputError(path, "no array, encrypted, or a second member of this name", info.filename[:80])
        if info.header_offset + info.compress_size > size:
            raise InputError(path, "claims more bytes than the file has", info.filename[:80])
        members[name] = info
    return NpzArchive(path, members)


@dataclass(frozen=True, slots=True)
class _ArrayLayout:
    """What the header of a ``.npy`` member claims, checked against the bytes that are there."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype[np.generic]
    offset: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        return self.count * self.dtype.itemsize

    def build_array(self, data: bytes) -> npt.NDArray[np.generic]:
        return np.frombuffer(data, self.dtype, self.count).reshape(self.shape, order=self.order)


def _read_layout(stream: IO[bytes], end: int) -> _ArrayLayout:
    layout = _ArrayLayout(*_read_header(stream), stream.tell())
    shape, dtype = layout.shape, layout.dtype
    if dtype.hasobject or dtype.kind not in "fiuUS":
        raise ValueError(f"holds {str(dtype)[:80]}, where numbers or text are expected")
    if any(extent < 0 for extent in shape) or layout.size != end - layout.offset:
        raise ValueError(f"claims {layout.size:,} bytes of data and holds {end - layout.offset:,}")
    return layout


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype[np.generic]]:
    """Return shape, order and type; a header may be any literal of Python, so whatever that raises is damage."""
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version[0]}.{version[1]} of the npy format")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            shape, fortran, dtype = read(stream, max_header_size=HEADER_LIMIT)
    except Exception as error:
        raise ValueError("the header of the array is damaged") from error
    return shape, "F" if fortran else "C", dtype


def _data_start(stream: IO[bytes], member: zipfile.ZipInfo) -> int:
    """Return where the bytes of a member begin: its local header is 30 bytes, a name and extra fields."""
    stream.seek(member.header_offset)
    header = stream.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise ValueError("its local header is damaged")
    name_size, extra_size = struct.unpack_from("<HH", header, 26)
    start = member.header_offset + 30 + int(name_size) + int(extra_size)
    if start + member.compress_size > stream.seek(0, 2):
        raise ValueError("claims more bytes than the file has")
    return start


def _verify_checksum(stream: IO[bytes], start: int, member: zipfile.ZipInfo) -> None:
    stream.seek(start)
    left, checksum = member.file_size, 0
    while left:
        chunk = stream.read(min(CHUNK, left))
        if not chunk:
            break
        checksum = zlib.crc32(chunk, checksum)
        left -= len(chunk)
    if checksum != member.CRC:
        raise ValueError(DAMAGED)


def _directory_size(stream: IO[bytes], size: int) -> int:
    """Return the size of the list of members that the archive's end record claims (APPNOTE.TXT 4.3.14, 4.3.16)."""
    stream.seek(max(0, size - 65_557))
    tail = stream.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or end + 22 > len(tail):
        raise ValueError("is not a zip archive, or its end is missing")
    large = end - 76  # a record of 56 bytes and a locator of 20, in archives beyond 4 GiB
    if large >= 0 and tail[large : large + 4] == b"PK\x06\x06":
        return int(struct.unpack_from("<Q", tail, large + 40)[0])
    return int(struct.unpack_from("<I", tail, end + 12)[0])


@contextmanager
def _convert_errors(path: Path, name: str | None) -> Iterator[None]:
    """Turn what zipfile, zlib and numpy raise on damaged data into an ``InputError`` that names the member."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, ValueError, EOFError, RuntimeError) as error:
        raise InputError(path, str(error)[:300], f"{name}.npy" if name is not None else None) from error
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
