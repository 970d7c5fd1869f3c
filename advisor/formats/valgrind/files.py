"""Outputs of callgrind and cachegrind as files: telling them, finding those of one run, reading one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from advisor.formats.valgrind.detection import find_outputs
from advisor.formats.valgrind.dump import CodePlace, HotLines, ValgrindDump
from advisor.formats.valgrind.line_errors import MistakeError
from advisor.formats.valgrind.scan import DumpScanner, LineError
from advisor.model.errors import InputError

#: What is read at a time, and how long what belongs together may be at most.
_PIECE: Final = 4 << 20
_LONGEST: Final = 64 << 20
_NUMBERS: Final = re.compile(r"\d+")
#: Lines of counts, behind which a text may be cut: what is called stands on three lines and one of counts.
_COUNTS: Final = frozenset(b"0123456789+-*\n")


def find_files(path: Path, pattern: re.Pattern[bytes]) -> list[Path]:
    """Return the file at ``path``, or the files of a directory that begin so; raises ``InputError`` without any."""
    if not path.is_dir():
        return [path]
    try:
        found = _add_damaged_files(path, list(find_outputs(path, pattern)))
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
    if not found:
        raise InputError(path, "no output of valgrind here")
    return found


def _add_damaged_files(directory: Path, found: list[Path]) -> list[Path]:
    """Return the files and those that are called alike, but for the numbers in them: what they hold may be lost."""
    alike = {_NUMBERS.sub("0", file.name) for file in found}
    others = (file for file in directory.iterdir() if _NUMBERS.sub("0", file.name) in alike and file.is_file())
    return sorted({*found, *others})


def read_dump(path: Path, numbered: bool) -> ValgrindDump:
    """Return what the file at ``path`` says; raises ``InputError`` with the line of what is damaged.

    ``numbered`` tells whether names are given numbers, as callgrind does.
    """
    scanner = DumpScanner(numbered)
    done = 0
    try:
        for piece in _read_pieces(path):
            done += scanner.feed_text(piece)
        scanner.check_end()
    except LineError as mistake:
        raise InputError(path, str(mistake), f"line {done + mistake.line + 1}") from mistake
    except MistakeError as mistake:
        raise InputError(path, str(mistake), f"line {done + 1}") from mistake
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
    return _build_dump(path, scanner)


def _read_pieces(path: Path) -> Iterator[bytes]:
    """Yield the text in pieces of whole lines that end behind counts."""
    rest = b""
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            text = rest + piece
            cut = _find_cut(text)
            if cut:
                yield text[:cut]
            rest = text[cut:]
            if len(rest) > _LONGEST:
                raise MistakeError(f"{_LONGEST:,} bytes without a line of counts")
    if rest and not rest.endswith(b"\n"):
        raise LineError(rest.count(b"\n"), "the last line is cut off")
    if rest:
        yield rest


def _find_cut(text: bytes) -> int:
    """Return where to cut: behind the last whole line of counts, or 0."""
    end = text.rfind(b"\n")
    while end > 0:
        start = text.rfind(b"\n", 0, end) + 1
        if text[start] in _COUNTS:
            return end + 1
        end = start - 1
    return 0


def _build_dump(path: Path, scanner: DumpScanner) -> ValgrindDump:
    header, sums = scanner.header, scanner.sums
    if sums is None:
        raise InputError(path, "nothing was counted")
    cells, counts, line = sums.list_places()
    files, file, number, by_line = sums.list_lines()
    called = scanner.names.sum_calls()
    calls = np.array([called.pop((cell[0], cell[3], cell[2]), 0) for cell in cells], dtype=np.int64)
    return ValgrindDump(
        path=path,
        command=header.command,
        pid=header.pid,
        thread=header.thread,
        part=header.part,
        caches=tuple(header.caches),
        events=header.events,
        places=tuple(CodePlace(*map(decode_name, cell)) for cell in cells),
        counts=counts,
        calls=calls if calls.any() else None,
        line=line,
        lines=HotLines(tuple(map(decode_name, files)), file, number, by_line),
        totals_deviation=scanner.off,
    )


def decode_name(name: bytes) -> str:
    """Return a name of whatever bytes as text that keeps them."""
    return name.decode("utf-8", "surrogateescape")
