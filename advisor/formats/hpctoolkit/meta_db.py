"""``meta.db``: metrics, functions, and the tree of calling contexts of a database of version 4.

Layout as in FORMATS.md of HPCToolkit 2022 to 2024 (version 4.0 with entry points).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from advisor.formats.hpctoolkit.binary import BinaryContent, check_signature
from advisor.formats.hpctoolkit.database import NODE_LIMIT, CallFrames
from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

SIZE_LIMIT: Final = 1 << 30
_HEADER: Final = 0x90
#: The sections in the order of the header; the fifth holds the strings that others point to.
_GENERAL, _NAMES, _METRICS, _CONTEXT, _, _MODULES, _FILES, _FUNCTIONS = range(8)
_CONTEXT_SIZE: Final = 0x20  # bytes before the flexible part
_FUNCTION_LIKE: Final = 0
_HAS_FUNCTION: Final = 1
_MAIN_ENTRY: Final = 1


@dataclass(frozen=True, slots=True)
class MetricScope:
    """One way in which a metric was summed up over contexts: its name, and the number of its values.

    ``total`` is the number of the sums over all threads in the summary profile, None where there are none.
    """

    metric: str
    name: str
    number: int
    total: int | None


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """One function: its name (empty where it has none), binary, file and line."""

    name: str
    module: str
    file: str | None
    line: int


@dataclass(slots=True)
class MetaFile:
    """What the file says. ``context`` is each frame's context number, ``other_contexts`` those of loops and lines."""

    program: str
    kinds: tuple[str, ...]
    scopes: tuple[MetricScope, ...]
    frames: CallFrames = field(default_factory=CallFrames)
    context: list[int] = field(default_factory=list)
    other_contexts: list[int] = field(default_factory=list)


def read_meta(path: Path) -> MetaFile:
    """Return what the file at ``path`` says; raises ``InputError`` with the byte of what is damaged."""
    data = read_limited(path, SIZE_LIMIT)
    if len(data) < _HEADER + 8:
        raise InputError(path, f"ends after {len(data)} bytes")
    check_signature(path, data[:16], data[-8:], "meta")
    content = BinaryContent(path, data)
    section = [content.read_u64(0x18 + 16 * number) for number in range(8)]
    title = content.read_text(content.read_u64(section[_GENERAL]))
    meta = MetaFile(title, _read_kinds(content, section[_NAMES]), _read_scopes(content, section[_METRICS]))
    _ContextTree(content, meta, _read_functions(content, section)).read_contexts(section[_CONTEXT])
    if not meta.context:
        raise InputError(path, "holds no contexts")
    return meta


def _read_kinds(content: BinaryContent, place: int) -> tuple[str, ...]:
    """Return what the kinds of identifiers are called: NODE, RANK, THREAD …"""
    names, count = content.read_u64(place), content.read_u8(place + 8)
    return tuple(content.read_text(content.read_u64(at)) for at in content.structure_places(names, count, 8, 8))


def _read_scopes(content: BinaryContent, place: int) -> tuple[MetricScope, ...]:
    count, sizes = (
        content.read_u32(place + 8),
        (content.read_u8(place + 0xC), content.read_u8(place + 0xD), content.read_u8(place + 0xE)),
    )
    found = []
    for at in content.structure_places(content.read_u64(place), count, sizes[0], 0x1C):
        name = content.read_text(content.read_u64(at))
        totals = _read_totals(content, content.read_u64(at + 0x10), content.read_u16(at + 0x1A), sizes[2])
        for scope in content.structure_places(content.read_u64(at + 8), content.read_u16(at + 0x18), sizes[1], 0xA):
            described = content.read_u64(scope)
            label, number = content.read_text(content.read_u64(described)), content.read_u16(scope + 8)
            found.append(MetricScope(name, label, number, totals.get(described)))
    return tuple(found)


def _read_totals(content: BinaryContent, place: int, count: int, size: int) -> dict[int, int]:
    """Return the numbers of plain sums over all threads, by the place of the scope that they belong to."""
    found = {}
    for at in content.structure_places(place, count, size, 0x14) if count else ():
        if content.read_text(content.read_u64(at + 8)) == "$$" and content.read_u8(at + 0x10) == 0:
            found[content.read_u64(at)] = content.read_u16(at + 0x12)
    return found


def _read_functions(content: BinaryContent, section: list[int]) -> dict[int, SourceFunction]:
    """Return the functions by their places."""
    modules = {
        at: content.read_text(content.read_u64(at + 8)) for at in _list_structures(content, section[_MODULES], 16)
    }
    files = {at: content.read_text(content.read_u64(at + 8)) for at in _list_structures(content, section[_FILES], 16)}
    found = {}
    for at in _list_structures(content, section[_FUNCTIONS], 0x28):
        name, module, file = (content.read_u64(at + offset) for offset in (0x00, 0x08, 0x18))
        found[at] = SourceFunction(
            content.read_text(name) if name else "",
            _resolve_place(content, modules, module, at),
            _resolve_place(content, files, file, at) or None,
            content.read_u32(at + 0x20),
        )
    return found


def _resolve_place(content: BinaryContent, table: dict[int, str], place: int, at: int) -> str:
    if place and place not in table:
        raise InputError(content.path, "a function lies in no known file", f"byte {at}")
    return table.get(place, "")


def _list_structures(content: BinaryContent, place: int, least: int) -> range:
    return content.structure_places(
        content.read_u64(place), content.read_u32(place + 8), content.read_u16(place + 0xC), least
    )


class _ContextTree:
    """Reads the contexts: frames of functions, and what lies inside of them, which counts as part of the frame."""

    def __init__(self, content: BinaryContent, meta: MetaFile, functions: dict[int, SourceFunction]) -> None:
        self._content = content
        self._meta = meta
        self._functions = functions
        self._seen: set[int] = set()

    def read_contexts(self, place: int) -> None:
        """Fill frames and contexts from the section at ``place``."""
        content = self._content
        count, size = content.read_u16(place + 8), content.read_u8(place + 0xA)
        for at in content.structure_places(content.read_u64(place), count, size, 0x20):
            kind = content.read_u16(at + 0x14)
            name = content.read_text(content.read_u64(at + 0x18))
            name = "<program root>" if kind == _MAIN_ENTRY else name
            frame = self._add_frame(content.read_u32(at + 0x10), SourceFunction(name, "", None, 0), -1, at)
            self._read_children(at, frame)

    def _read_children(self, at: int, frame: int) -> None:
        """Read all contexts below the one at ``at``, which belongs to ``frame``."""
        content = self._content
        pending = [(content.read_u64(at + 8), content.read_u64(at), frame)]
        while pending:
            place, size, above = pending.pop()
            end = place + size
            while size and place < end:
                below = self._read_context(place, above)
                if content.read_u64(place):
                    pending.append((content.read_u64(place + 8), content.read_u64(place), below))
                place += _CONTEXT_SIZE + 8 * content.read_u8(place + 0x17)
            if size and place != end:
                raise InputError(content.path, "contexts do not end where they should", f"byte {end}")

    def _read_context(self, at: int, above: int) -> int:
        """Return the frame of the context at ``at``: its own, or the one it lies in."""
        content = self._content
        number, flags = content.read_u32(at + 0x10), content.read_u8(at + 0x14)
        if content.read_u8(at + 0x16) != _FUNCTION_LIKE:
            self._meta.other_contexts.append(self._require_new(number, at))
            return above
        function = SourceFunction("", "", None, 0)
        if flags & _HAS_FUNCTION:
            place = content.read_u64(at + _CONTEXT_SIZE)
            if place not in self._functions:
                raise InputError(content.path, "a context of no known function", f"byte {at}")
            function = self._functions[place]
        return self._add_frame(number, function, above, at)

    def _add_frame(self, number: int, function: SourceFunction, above: int, at: int) -> int:
        self._meta.context.append(self._require_new(number, at))
        return self._meta.frames.add_frame(function.name, function.module, function.file, function.line, above)

    def _require_new(self, number: int, at: int) -> int:
        if number in self._seen:
            raise InputError(self._content.path, f"context {number} occurs twice", f"byte {at}")
        if len(self._seen) >= NODE_LIMIT:
            raise InputError(self._content.path, f"more than {NODE_LIMIT:,} contexts", f"byte {at}")
        self._seen.add(number)
        return number
