"""Which rank a file belongs to whose format does not say so: by its name, else by the order of process ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_NAMED: Final = re.compile(r"(?:rank|task)[-_.=]?(\d{1,7})(?!\d)", re.IGNORECASE)
#: Linux gives the ids below to its own first processes only (RESERVED_PIDS, ``kernel/pid.c``).
_FIRST_ID: Final = 300
_LAST: Final = re.compile(r"(?:^|[-._])(\d{1,9})(?:\.(?:txt|csv|json|out|log))?$")


def find_ranks_by_name(names: Sequence[str], pids: Sequence[int | None]) -> list[int] | None:
    """Return the ranks that the ``names`` of files of one run state, None unless each states one of its own.

    A name states a rank behind the word (``stat.rank3.csv``), or at its end: there it must not be the process id
    (``pids``, where the files tell), and without process ids the numbers must be 0, 1, 2 and so on.
    """
    for pattern in (_NAMED, _LAST):
        found = [pattern.search(name) for name in names]
        ranks = [int(match[1]) for match in found if match]
        if len(ranks) < len(names) or len(set(ranks)) < len(ranks):
            continue
        if pattern is _NAMED:
            return ranks
        told = all(pid is not None and pid != rank for pid, rank in zip(pids, ranks, strict=True))
        if max(ranks) < 10_000_000 and (told or sorted(ranks) == list(range(len(ranks)))):
            return ranks
    return None


def parse_trailing_number(name: str) -> int | None:
    """Return the number at the end of a file's name, which is the process id where it is no rank."""
    found = _LAST.search(name)
    return int(found[1]) if found else None


def tell_processes(names: Sequence[str]) -> bool:
    """Return whether the names of several files tell processes of one run: their ranks, or else their ids.

    Small numbers that are no ranks are of something else, such as the threads of several runs (``omp_1``, ``omp_2``,
    ``omp_4``). A single file is one run.
    """
    numbers = [parse_trailing_number(name) for name in names]
    ids = [number for number in numbers if number is not None and number >= _FIRST_ID]
    return len(names) == 1 or find_ranks_by_name(names, [None] * len(names)) is not None or len(ids) == len(names) > 0
