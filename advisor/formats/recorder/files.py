"""The binary files of Recorder 2.3 to 2.5 (``recorder-logger.c``, ``recorder-cst-cfg.c``, ``reader.c``).

``recorder.mt`` holds the number of ranks, the resolution of times and the names of functions. ``N.cst`` holds what rank
N called, each function with its arguments once; ``N.cfg`` a grammar that puts the calls into their order; ``N.ts`` two
numbers for each call, when it began and ended behind the begin of the one before. Where ranks were compressed together
``0.cst`` is that of all, ``ug.mt`` says which grammar is whose, and there are as many grammars as differ.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

if TYPE_CHECKING:
    import numpy.typing as npt

#: Versions whose files are read; signatures have a rank and a count from 2.4 on.
_VERSIONS: Final = {(2, 3): 2, (2, 4): 4, (2, 5): 4}
_LARGEST: Final = 1 << 30
MOST_CALLS: Final = 20_000_000
_MOST_RANKS: Final = 1 << 20
_DEEPEST: Final = 200
#: The rule that a grammar begins with.
_START: Final = -1
#: A function of the program itself, whose name is its second argument.
USER_FUNCTION: Final = 255
_KEY: Final = struct.Struct("<QBBBi")


class Signature(NamedTuple):
    """A call as it was made: the number of the function, how deep it is below others, its thread and its arguments."""

    function: int
    level: int
    thread: int
    arguments: tuple[str, ...]


class TraceHeader(NamedTuple):
    """What ``recorder.mt`` says; ``resolution_s`` is the unit of times, ``start_s`` the begin in seconds since 1970."""

    version: tuple[int, int]
    ranks: int
    start_s: float
    resolution_s: float
    together: bool
    functions: tuple[str, ...]


def read_header(folder: Path) -> TraceHeader:
    """Return the header of the trace; raises ``InputError`` for a version that is not read."""
    text = read_limited(folder / "VERSION", _LARGEST).decode("ascii", "replace").strip("\0\n ")
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        raise InputError(folder / "VERSION", f"{text[:40]!r} is not a version of Recorder")
    version = (int(parts[0]), int(parts[1]))
    if version not in _VERSIONS:
        raise InputError(folder, f"written by Recorder {text[:20]}; versions 2.3 to 2.5 are read")
    content = read_limited(folder / "recorder.mt", _LARGEST)
    size = 32 if version == (2, 3) else 40
    if len(content) < size:
        raise InputError(folder / "recorder.mt", "ends early", f"byte {len(content)}")
    ranks, start_s, resolution_s, _, algorithm = struct.unpack_from("<i4xddii", content)
    together = struct.unpack_from("<i", content, 32)[0] if size == 40 else 0
    if not 1 <= ranks <= _MOST_RANKS or not 1e-12 < resolution_s < 1 or not 0 <= start_s < 1e11:
        raise InputError(folder / "recorder.mt", "damaged: impossible numbers of ranks or times")
    if algorithm:
        raise InputError(folder / "recorder.mt", "the times are compressed, which is not read")
    names = content[size:].decode("ascii", "replace").split("\n")
    if names[-1] or len(names) < 2:
        raise InputError(folder / "recorder.mt", "the names of functions end early")
    return TraceHeader(version, ranks, start_s, resolution_s, bool(together), tuple(names[:-1]))


def read_owners(folder: Path, header: TraceHeader) -> list[int]:
    """Return the number of the grammar of each rank."""
    if not header.together:
        return list(range(header.ranks))
    content = read_limited(folder / "ug.mt", _LARGEST)
    if len(content) != 4 * (header.ranks + 1):
        raise InputError(folder / "ug.mt", f"is {len(content)} bytes long, not as long as {header.ranks} ranks need")
    *owners, grammars = struct.unpack(f"<{header.ranks + 1}i", content)
    if not all(0 <= owner < max(grammars, 1) for owner in owners):
        raise InputError(folder / "ug.mt", "damaged: a rank has a grammar that is not there")
    return owners


def read_signatures(path: Path, header: TraceHeader) -> list[Signature]:
    """Return the calls that the grammars put into order, by their number."""
    content = read_limited(path, _LARGEST)
    numbers = _VERSIONS[header.version]
    (count,), place = _unpack(content, "<i", 0, path)
    if not 0 <= count <= len(content):
        raise InputError(path, f"damaged: {count} calls")
    found: list[Signature | None] = [None] * count
    for _ in range(count):
        fields, place = _unpack(content, f"<{numbers}i", place, path)
        terminal, size = fields[0], fields[1] if numbers == 2 else fields[2]
        if not 0 <= terminal < count or found[terminal] is not None or not _KEY.size <= size <= len(content) - place:
            raise InputError(path, "damaged: no call here", f"byte {place}")
        found[terminal] = _parse_key(content[place : place + size], path, place)
        place += size
    if place != len(content):
        raise InputError(path, "holds more than its calls", f"byte {place}")
    return [signature for signature in found if signature is not None]


def _parse_key(key: bytes, path: Path, place: int) -> Signature:
    thread, function, level, count, length = _KEY.unpack_from(key)
    arguments = key[_KEY.size :].decode("utf-8", "surrogateescape").split(" ")
    if length != len(key) - _KEY.size or arguments[-1] or len(arguments) - 1 != count:
        raise InputError(path, "damaged: a call without all its arguments", f"byte {place}")
    return Signature(function, level, thread, tuple(arguments[:-1]))


def read_grammar(path: Path) -> dict[int, npt.NDArray[np.int32]]:
    """Return the rules of a grammar: pairs of a symbol (a call, or a rule below 0) and how often it is repeated."""
    content = read_limited(path, _LARGEST)
    (count,), place = _unpack(content, "<i", 0, path)
    rules: dict[int, npt.NDArray[np.int32]] = {}
    for _ in range(max(count, 0)):
        (number, symbols), place = _unpack(content, "<2i", place, path)
        if number >= 0 or number in rules or not 0 <= symbols <= (len(content) - place) // 8:
            raise InputError(path, "damaged: no rule here", f"byte {place}")
        rules[number] = np.frombuffer(content, dtype="<i4", count=2 * symbols, offset=place).reshape(symbols, 2)
        place += 8 * symbols
    if _START not in rules or place != len(content):
        raise InputError(path, "damaged: the grammar has no beginning, or goes on behind its end", f"byte {place}")
    return rules


def expand_grammar(rules: dict[int, npt.NDArray[np.int32]], calls: int, path: Path) -> npt.NDArray[np.int64]:
    """Return the numbers of all calls in their order; raises ``InputError`` for a grammar that has no end."""
    expanded: dict[int, npt.NDArray[np.int64]] = {}

    def expand_rule(rule: int, depth: int) -> npt.NDArray[np.int64]:
        if rule in expanded:
            return expanded[rule]
        if depth > _DEEPEST or rule not in rules:
            raise InputError(path, f"damaged: rule {rule} is missing or contains itself")
        pieces = []
        size = 0
        for symbol, times in rules[rule].tolist():
            if symbol >= calls or not 1 <= times <= MOST_CALLS:
                raise InputError(path, f"damaged: there is no call {symbol}, or {times} of them")
            piece = expand_rule(symbol, depth + 1) if symbol < 0 else np.array([symbol], dtype=np.int64)
            size += len(piece) * times
            if size > MOST_CALLS:
                raise InputError(path, f"holds more than {MOST_CALLS:,} calls")
            pieces.append(np.tile(piece, times))
        expanded[rule] = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
        return expanded[rule]

    return expand_rule(_START, 0)


def read_times(path: Path, calls: int, resolution_s: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return begin and end of each call in seconds since the first; raises ``InputError`` where times are missing.

    Times are 32-bit numbers that begin anew after about 430 s; an end before its begin shows that.
    """
    content = read_limited(path, _LARGEST)
    if len(content) != 8 * calls:
        raise InputError(path, f"holds times of {len(content) / 8:g} calls, the grammar has {calls}")
    deltas = np.frombuffer(content, dtype="<u4").reshape(calls, 2).astype(np.int64)
    begin = np.cumsum(deltas[:, 0])
    before = begin - deltas[:, 0]
    end = before + deltas[:, 1]
    end += np.where(end < begin, 1 << 32, 0)
    return begin.astype(np.float64) * resolution_s, end.astype(np.float64) * resolution_s


def list_missing(folder: Path, header: TraceHeader) -> Iterator[int]:
    """Yield the ranks of which no times are there."""
    return (rank for rank in range(header.ranks) if not (folder / f"{rank}.ts").is_file())


def _unpack(content: bytes, layout: str, place: int, path: Path) -> tuple[tuple[int, ...], int]:
    size = struct.calcsize(layout)
    if place + size > len(content):
        raise InputError(path, "ends early: the trace is damaged", f"byte {len(content)}")
    return struct.unpack_from(layout, content, place), place + size
