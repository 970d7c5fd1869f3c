"""How often each instruction was executed, from outputs of ``callgrind --dump-instr=yes``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

from advisor.model.errors import InputError

Counts = dict[int, list[float]]

_LARGEST: Final = 1 << 30
_FILES: Final = 100_000
_NAMED: Final = re.compile(r"\((\d+)\)(?: (.*))?")
_NUMBER: Final = re.compile(r"\d+$")
_MAGIC: Final = re.compile(rb"(# callgrind format\n)?(version: \d+\n)?creator: callgrind-")
_SIMULATED: Final = re.compile(r"(\d+) B,")
_HOW: Final = "record it with valgrind --tool=callgrind --dump-instr=yes ./PROGRAM"
#: Libraries of the system that compute; its others are no work of the program.
_COMPUTING: Final = re.compile(r"lib(m|mvec|c?blas|openblas\w*|lapack\w*|fftw3\w*|\w*atlas|blis|mkl_\w+|gsl)[-.].*")
_SYSTEM: Final = re.compile(r"/(usr/(local/)?)?lib(32|64|exec)?/")


@dataclass(frozen=True, slots=True)
class Executions:
    """One process: its program, and for each object file the counts of ``events`` by address of the instruction."""

    program: str
    pid: int
    rank: int
    events: tuple[str, ...]
    objects: Mapping[str, Mapping[int, list[float]]]
    last_cache_B: float | None = None

    def instruction_counts(self, path: str) -> dict[int, float]:
        """Return how often each instruction of an object was executed."""
        column = self.events.index("Ir")
        return {address: counts[column] for address, counts in self.objects.get(path, {}).items()}


def read_executions(path: Path) -> tuple[Executions, ...]:
    """Return the processes recorded at ``path``, an output of callgrind or a directory of them, by rank.

    Ranks are what the files' names end in where these are 0, 1, 2 …, else the order of the process ids. Raises
    ``InputError`` for what was not recorded by instruction, and for what is damaged.
    """
    files = [file for file in ([path] if path.is_file() else _list_files(path)) if _is_callgrind_output(file)]
    if not files:
        raise InputError(path, f"has no output of callgrind; {_HOW}")
    found = {file: _read_output(file) for file in files}
    busiest = max(found.values(), key=lambda one: sum(len(each) for each in one.objects.values())).program
    mine = {file: one for file, one in found.items() if one.program == busiest}
    names = {file: int(match[0]) for file in mine if (match := _NUMBER.search(file.name))}
    if sorted(names.values()) == list(range(len(mine))):
        ranked = [replace(one, rank=names[file]) for file, one in mine.items()]
    else:
        order = sorted(mine.values(), key=lambda one: one.pid)
        ranked = [replace(one, rank=rank) for rank, one in enumerate(order)]
    return tuple(sorted(ranked, key=lambda one: one.rank))


def is_computing_object(path: str) -> bool:
    """Return whether an object file is the program's own or a library that computes."""
    return path.startswith("/") and (not _SYSTEM.match(path) or bool(_COMPUTING.match(PurePath(path).name)))


def _list_files(folder: Path) -> list[Path]:
    try:
        return [file for _, file in zip(range(_FILES), sorted(folder.iterdir()), strict=False) if file.is_file()]
    except OSError as error:
        raise InputError(folder, error.strerror or "may not be read") from error


def _is_callgrind_output(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return _MAGIC.match(stream.read(200)) is not None
    except OSError as error:
        raise InputError(path, error.strerror or "may not be read") from error


def _read_output(path: Path) -> Executions:
    if path.stat().st_size > _LARGEST:
        raise InputError(path, "is larger than 1 GiB")
    with path.open(encoding="utf-8", errors="surrogateescape") as stream:
        return _CallgrindReader(path).read_lines(stream)


class _CallgrindReader:
    """Reads one output line by line: addresses are written as differences to the line before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names: dict[str, str] = {}
        self._header: dict[str, str] = {}
        self._address = 0
        self._objects: dict[str, Counts] = {}
        self._object: Counts = {}
        self._width = 0

    def read_lines(self, lines: Iterator[str]) -> Executions:
        """Return what the file holds."""
        inclusive = False
        for number, line in enumerate(lines, 1):
            try:
                inclusive = self._parse_line(line.rstrip("\n"), inclusive)
            except (ValueError, IndexError, KeyError) as error:
                raise InputError(self._path, f"is damaged ({error})", str(number)) from error
        if "totals" not in self._header:
            raise InputError(self._path, "is cut off: its end with the totals is missing")
        words = self._header.get("cmd", "").split(maxsplit=1)
        program = PurePath(words[0]).name if words else ""
        events = tuple(self._header["events"].split())
        pid, last = int(self._header.get("pid", "0")), _SIMULATED.match(self._header.get("LL cache", ""))
        return Executions(program, pid, 0, events, self._objects, float(last[1]) if last else None)

    def _parse_line(self, line: str, inclusive: bool) -> bool:
        """Read one line; returns whether the next one holds the cost of a call, which is counted where it is spent."""
        if line[:1] in "0123456789+-*" and line:
            self._add_cost(line, inclusive)
            return False
        key, equals, value = line.partition("=")
        if equals and key == "ob":
            self._object = self._objects.setdefault(self._resolve_name(value), {})
        elif equals and key == "cob":
            self._resolve_name(value)
        elif equals and key == "calls":
            return True
        name, colon, rest = line.partition(": ")
        if colon and not equals:
            self._store_header(name, rest.strip())
        return inclusive

    def _store_header(self, name: str, value: str) -> None:
        if name == "desc":
            name, _, value = value.partition(": ")
        self._header.setdefault(name, value)
        if name == "positions" and value.split()[0] != "instr":
            raise InputError(self._path, f"has no counts by instruction; {_HOW}")
        if name == "events":
            self._width = len(value.split())
            if "Ir" not in value.split():
                raise InputError(self._path, "has no number of executed instructions (Ir)")

    def _add_cost(self, line: str, inclusive: bool) -> None:
        if "positions" not in self._header:
            raise InputError(self._path, f"has no counts by instruction; {_HOW}")
        words = line.split()
        skip = len(self._header["positions"].split())
        first = words[0]
        if first[0] in "+-":
            self._address += int(first, 0)
        elif first != "*":
            self._address = int(first, 0)
        if inclusive:
            return
        row = self._object.setdefault(self._address, [0.0] * self._width)
        for column, word in enumerate(words[skip:]):
            row[column] += int(word)

    def _resolve_name(self, value: str) -> str:
        match = _NAMED.fullmatch(value)
        if match is None:
            return value
        if match[2] is not None:
            self._names[match[1]] = match[2]
        return self._names[match[1]]
