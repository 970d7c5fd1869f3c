"""Misses by instruction as valgrind's cache simulation counts them: what a model's misses are compared with.

callgrind and cachegrind share the simulation of the caches; callgrind tells the counts by instruction as well.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.model.errors import UsageError
from advisor.support.child_process import run_child
from advisor_simulation.program.address_trace import find_program_word

LIMIT_S: Final = 3600.0
_POSITION: Final = re.compile(r"(0x[0-9a-f]+|\+\d+|-\d+|\*)\s*(.*)")
_FILE: Final = re.compile(r"ob=(?:\(\d+\))?\s*(.*)")


@dataclass(frozen=True, slots=True)
class CacheGeometry:
    """A cache: bytes, ways, bytes of a line."""

    size: int = 32768
    ways: int = 8
    line: int = 64


@dataclass(frozen=True, slots=True)
class InstructionCounts:
    """What an instruction did: executions, data read and written, misses of the first cache in either."""

    executed: int
    reads: int
    writes: int
    read_misses: int
    write_misses: int


def count_misses(
    command: Sequence[str],
    program: Path,
    cache: CacheGeometry,
    folder: Path,
    variables: Mapping[str, str],
    copying: frozenset[int] = frozenset(),
) -> dict[int, InstructionCounts]:
    """Return the counts of a program's instructions by address as linked, of a run with these ``variables``.

    Calls at the addresses ``copying`` count with all that is done in them.

    Raises ``UsageError`` where valgrind is not installed or leaves nothing.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise UsageError("valgrind is not installed: apt-get install valgrind")
    geometry = f"{cache.size},{cache.ways},{cache.line}"
    words = [
        valgrind, "--tool=callgrind", "--cache-sim=yes", "--dump-instr=yes", "--dump-line=no", "--compress-pos=no",
        "--compress-strings=no", f"--D1={geometry}", f"--callgrind-out-file={folder / 'callgrind.%p'}",
    ]  # fmt: skip
    place = find_program_word(command, program)
    run_child([*command[:place], *words, *command[place:]], LIMIT_S, extra=variables)
    files = sorted(folder.glob("callgrind.*"))
    if not files:
        raise UsageError(f"{program.name} left nothing under valgrind")
    total: Counter[tuple[int, int]] = Counter()
    for file in files:
        _add_counts(total, file, str(program.resolve()), copying)
    rows: dict[int, list[int]] = {}
    for (address, column), count in total.items():
        rows.setdefault(address, [0] * 9)[column] += count
    return {at: InstructionCounts(one[0], one[1], one[2], one[4], one[5]) for at, one in rows.items()}


def _add_counts(total: Counter[tuple[int, int]], file: Path, program: str, copying: frozenset[int]) -> None:
    ours, skip = False, False
    address = 0
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("ob="):
            found = _FILE.match(line)
            ours = found is not None and found[1] == program
        elif line.startswith("calls="):
            skip = True
        elif (found := _POSITION.match(line)) is not None:
            word = found[1]
            address = address if word == "*" else int(word, 16) if word.startswith("0x") else address + int(word)
            if ours and (not skip or address in copying):
                for column, count in enumerate(found[2].split()):
                    if count.isdigit():
                        total[address, column] += int(count)
            skip = False
