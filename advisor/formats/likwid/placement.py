"""Which processor a column of a file is: rank, thread and node, from the names of files and columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.formats import rank_numbers
from advisor.model.records import Processor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.formats.likwid.tables import GroupTable

#: As ``-o out_%r_%h.csv`` names files: rank, then node.
_RANK_AND_NODE: Final = re.compile(r".*?[-_.](\d{1,7})[-_.]([A-Za-z][\w-]*)(?:\.\w{1,5})?")
#: As likwid-mpirun names columns: node, rank, hardware thread.
_COLUMN: Final = re.compile(r"(.+):(\d{1,7}):(\d{1,7})")


@dataclass(frozen=True, slots=True)
class Placement:
    """The processors of a run, and for each file the number of each column in them; whether ranks were told."""

    processors: tuple[Processor, ...]
    columns: tuple[dict[str, int], ...]
    ranks_known: bool


def place_columns(files: Sequence[Path], tables: Sequence[Sequence[GroupTable]]) -> Placement:
    """Return the processors of files; the hardware threads of a file are threads of one rank unless they say more."""
    ranks, hosts, told = _find_file_ranks(files)
    found: dict[tuple[int, int], Processor] = {}
    numbers: list[dict[str, tuple[int, int]]] = []
    threads: dict[int, int] = {}
    for file, mine in enumerate(tables):
        names: dict[str, tuple[int, int]] = {}
        for column in dict.fromkeys(column for table in mine if not table.sums for column in table.columns):
            match = _COLUMN.fullmatch(column)
            rank, host = (int(match[2]), match[1]) if match else (ranks[file], hosts[file])
            key = (rank, threads.get(rank, 0))
            threads[rank] = key[1] + 1
            found[key] = Processor(*key, host)
            names[column] = key
        numbers.append(names)
    order = {key: n for n, key in enumerate(sorted(found))}
    return Placement(
        tuple(found[key] for key in sorted(found)),
        tuple({column: order[key] for column, key in names.items()} for names in numbers),
        told,
    )


def _find_file_ranks(files: Sequence[Path]) -> tuple[list[int], list[str | None], bool]:
    matches = [_RANK_AND_NODE.fullmatch(file.name) for file in files]
    ranks = [int(match[1]) for match in matches if match]
    if len(ranks) == len(files) == len(set(ranks)):
        return ranks, [match[2] for match in matches if match], True
    named = rank_numbers.find_ranks_by_name([file.name for file in files], [None] * len(files))
    return named or list(range(len(files))), [None] * len(files), named is not None or len(files) == 1
