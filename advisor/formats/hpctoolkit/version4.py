"""Databases of version 4: the values of each thread in ``profile.db``, for the contexts of ``meta.db``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from advisor.formats.hpctoolkit import meta_db as contexts
from advisor.formats.hpctoolkit.binary import HEADER, BinaryContent, check_signature
from advisor.formats.hpctoolkit.database import SIZE_LIMIT, Database, MeasuredThread, parse_time_metric
from advisor.model.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.hpctoolkit.meta_db import MetaFile, MetricScope
    from advisor.model.records import FloatArray, IntArray

FILE_LIMIT: Final = 64 << 30
_SECTION_LIMIT: Final = 256 << 20  # bytes of the list of profiles
_BLOCK: Final = 0x20  # bytes that describe the values of a profile
_VALUE: Final = np.dtype([("metric", "<u2"), ("value", "<f8")])
_INDEX: Final = np.dtype([("context", "<u4"), ("start", "<u8")])
#: The scope in which values of a context contain those of everything below it.
_INCLUSIVE: Final = "execution"
_PHYSICAL: Final = 1
#: Kinds of identifiers of streams of accelerators.
_STREAMS: Final = frozenset({"GPUDEVICE", "GPUCONTEXT", "GPUSTREAM"})
_ROUNDING: Final = 1e-6


@dataclass(frozen=True, slots=True)
class ProfileBlock:
    """Where the values of one profile are, and whose they are; without ``identity`` they are sums over all threads."""

    values: int
    value_count: int
    indices: int
    index_count: int
    identity: dict[str, tuple[int, int]]


@dataclass(slots=True)
class ProfileReader:
    """Reads values of single profiles; ``position`` (contexts,) is the frame of a context, -1 for those of no frame."""

    path: Path
    stream: IO[bytes]
    size: int
    position: IntArray
    has_context: npt.NDArray[np.bool_]

    def read_values(self, block: ProfileBlock, numbers: tuple[int, ...], frames: int) -> list[FloatArray]:
        """Return the values (frames,) of each metric of ``numbers``, zero where the profile has none."""
        stored = self._read_array(block.values, block.value_count, _VALUE)
        index = self._read_array(block.indices, block.index_count, _INDEX)
        context, start = index["context"].astype(np.int64), index["start"].astype(np.int64)
        self._check_contexts(block, context, start)
        owner = np.repeat(context, np.diff(np.append(start, block.value_count)))
        frame = np.where(owner < len(self.position), self.position[np.minimum(owner, len(self.position) - 1)], -1)
        result = []
        for number in numbers:
            mine = np.flatnonzero((stored["metric"] == number) & (frame >= 0))
            values = stored["value"][mine].astype(np.float64)
            if not (np.isfinite(values) & (values >= 0)).all():
                raise InputError(self.path, f"a value of metric {number} is none", f"byte {block.values}")
            found = np.zeros(frames)
            found[frame[mine]] = values
            result.append(found)
        return result

    def _check_contexts(self, block: ProfileBlock, context: IntArray, start: IntArray) -> None:
        place = f"byte {block.indices}"
        if len(start) and (start[0] != 0 or (start[1:] < start[:-1]).any() or start[-1] > block.value_count):
            raise InputError(self.path, "values of contexts are out of order", place)
        if not len(start) and block.value_count:
            raise InputError(self.path, "values of no context", place)
        if (np.diff(context) <= 0).any():
            raise InputError(self.path, "contexts are out of order", place)
        # Of instructions below a line, and of the root above all entry points, hpcprof writes values but no context.
        # They add nothing: values of a frame hold those of everything below it.
        if len(context) and not self.has_context[context[context < len(self.has_context)]].any():
            raise InputError(self.path, "values of contexts of which meta.db knows none", place)

    def _read_array(self, place: int, count: int, kind: np.dtype[np.void]) -> npt.NDArray[np.void]:
        size = count * kind.itemsize
        if count and (place < HEADER or place + size > self.size):
            raise InputError(self.path, f"points outside of the file, to byte {place}")
        self.stream.seek(place)
        return np.frombuffer(self.stream.read(size), dtype=kind)


def read_version_4(directory: Path) -> Database:
    """Return the database in ``directory``; raises ``InputError`` with file and byte of what is missing or damaged."""
    meta = contexts.read_meta(directory / "meta.db")
    path = directory / "profile.db"
    if not path.is_file():
        raise InputError(directory, "the database has no profile.db")
    with path.open("rb") as stream:
        blocks = _read_blocks(path, stream, meta)
        position, known = _find_positions(meta, directory)
        profiles = ProfileReader(path, stream, path.stat().st_size, position, known)
        return _build_database(meta, profiles, blocks)


def _build_database(meta: MetaFile, profiles: ProfileReader, blocks: list[ProfileBlock]) -> Database:
    summary = [block for block in blocks if not block.identity]
    streams = [block for block in blocks if block.identity.keys() & _STREAMS]
    mine = [block for block in blocks if block.identity and block not in streams]
    frames = len(meta.context)
    if not mine:
        raise InputError(profiles.path, "holds no threads")
    if frames * len(mine) * 8 > SIZE_LIMIT:
        raise InputError(profiles.path, f"{frames:,} frames of {len(mine):,} threads are more than fit")
    times = [scope for scope in meta.scopes if scope.name == _INCLUSIVE and parse_time_metric(scope.metric)]
    numbers = tuple(scope.number for scope in times)
    columns = [profiles.read_values(block, numbers, frames) for block in mine]
    inclusive: dict[str, FloatArray] = {}
    doubts: list[str] = []
    for n, scope in enumerate(times):
        kind, unit = parse_time_metric(scope.metric) or ("", 1.0)
        inclusive[kind] = np.column_stack([column[n] for column in columns]) * unit
        if not streams:
            doubts += _check_sums(profiles, summary, scope, inclusive[kind].sum(axis=1) / unit, meta)
        doubts += _check_children(meta, inclusive[kind], scope)
    threads = tuple(_build_thread(block) for block in mine)
    return Database(meta.program, meta.frames, threads, inclusive, tuple(doubts), len(streams))


def _check_sums(
    profiles: ProfileReader, summary: list[ProfileBlock], scope: MetricScope, found: FloatArray, meta: MetaFile
) -> Iterator[str]:
    """Yield where the sums over all threads that the database states are others than those of its profiles."""
    if scope.total is None or len(summary) != 1:
        return
    stated = profiles.read_values(summary[0], (scope.total,), len(found))[0]
    wrong = np.flatnonzero(np.abs(stated - found) > _ROUNDING * np.maximum(stated, found))
    if len(wrong):
        n = int(wrong[0])
        name = meta.frames.name[n][:60] or "an unknown function"
        yield f"{scope.metric} of {name} is {found[n]:.6g} on all threads, {stated[n]:.6g} in the summary"


def _check_children(meta: MetaFile, inclusive: FloatArray, scope: MetricScope) -> Iterator[str]:
    """Yield a frame that took less than the frames that it calls."""
    parent = np.array(meta.frames.parent, dtype=np.int64)
    inner = np.flatnonzero(parent >= 0)
    rest = inclusive.copy()
    np.subtract.at(rest, parent[inner], inclusive[inner])
    wrong = np.flatnonzero((rest < -_ROUNDING * np.maximum(inclusive, 1e-6)).any(axis=1))
    if len(wrong):
        name = meta.frames.name[int(wrong[0])][:60] or "an unknown function"
        yield f"{scope.metric} of {name} is less than that of what it calls"


def _find_positions(meta: MetaFile, directory: Path) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return the frame of each context by its number (-1: none of its own), and which contexts there are."""
    context = np.array(meta.context, dtype=np.int64)
    others = np.array(meta.other_contexts, dtype=np.int64)
    size = int(max(context.max(), others.max(initial=0))) + 1
    if size > 20 * (len(context) + len(others)) + 1000:
        raise InputError(directory / "meta.db", f"numbers of contexts go up to {size:,}")
    position, known = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=bool)
    position[context] = np.arange(len(context))
    known[context] = known[others] = True
    return position, known


def _read_blocks(path: Path, stream: IO[bytes], meta: MetaFile) -> list[ProfileBlock]:
    """Return what the file's sections say about its profiles."""
    size = path.stat().st_size
    if size > FILE_LIMIT:
        raise InputError(path, f"is larger than {FILE_LIMIT >> 30} GiB")
    head = stream.read(0x30)
    if size < 0x38:
        raise InputError(path, f"ends after {size} bytes")
    stream.seek(size - 8)
    check_signature(path, head[:16], stream.read(8), "prof")
    edges = [int.from_bytes(head[at : at + 8], "little") for at in (0x10, 0x18, 0x20, 0x28)]
    if any(edges[n + 1] + edges[n] > size or edges[n] > _SECTION_LIMIT for n in (0, 2)):
        raise InputError(path, "a section lies outside of the file", "byte 16")
    infos = _FileSection(path, stream, edges[1], edges[0])
    tuples = _FileSection(path, stream, edges[3], edges[2])
    start = infos.to_local(edges[1])
    profiles, count = infos.content.read_u64(start), infos.content.read_u32(start + 8)
    stride = infos.content.read_u8(start + 0xC)
    return [
        _read_block(infos, tuples, at, meta)
        for at in infos.content.structure_places(infos.to_local(profiles), count, stride, _BLOCK + 8)
    ]


class _FileSection:
    """A section of a large file, read as if it were one of its own; places in it are shifted by ``to_local``."""

    def __init__(self, path: Path, stream: IO[bytes], place: int, size: int) -> None:
        stream.seek(place)
        self._shift = HEADER - place
        self.content = BinaryContent(path, bytes(HEADER) + stream.read(size))

    def to_local(self, place: int) -> int:
        """Return where the byte at ``place`` of the file stands in ``content``."""
        return place + self._shift


def _read_block(infos: _FileSection, tuples: _FileSection, at: int, meta: MetaFile) -> ProfileBlock:
    content = infos.content
    identity = content.read_u64(at + _BLOCK)
    return ProfileBlock(
        content.read_u64(at + 8), content.read_u64(at), content.read_u64(at + 0x18), content.read_u32(at + 0x10),
        _read_identity(tuples, identity, meta) if identity else {},
    )  # fmt: skip


def _read_identity(tuples: _FileSection, place: int, meta: MetaFile) -> dict[str, tuple[int, int]]:
    """Return the identifiers of a profile by kind: the number to show, and the physical one."""
    content, start = tuples.content, tuples.to_local(place)
    found = {}
    for at in content.structure_places(start + 8, content.read_u16(start), 16, 16):
        kind, flags = content.read_u8(at), content.read_u16(at + 2)
        if kind >= len(meta.kinds):
            raise InputError(content.path, f"an identifier of the unknown kind {kind}")
        physical = content.read_u64(at + 8)
        found[meta.kinds[kind].upper()] = (physical if flags & _PHYSICAL else content.read_u32(at + 4), physical)
    if not found:
        raise InputError(content.path, "a profile of nobody", f"byte {place}")
    return found


def _build_thread(block: ProfileBlock) -> MeasuredThread:
    rank, _ = block.identity.get("RANK", (0, 0))
    number, _ = block.identity.get("THREAD", (0, 0))
    node = block.identity.get("NODE")
    return MeasuredThread(rank, number, f"{node[1]:08x}" if node else None)
