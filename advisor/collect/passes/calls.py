"""How often functions of MPI were called under callgrind, to see that it ran the same work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

_NAMED: Final = re.compile(r"c?fn=\((\d+)\)(?: (.*))?")
#: How often these are called depends on time.
_POLLING: Final = re.compile(r"MPI_(Test\w*|Iprobe|Improbe|Wtime|Wtick|Request_get_status)")
#: Fewer differ where a library calls itself, or a program asks for the time.
_TOLERANCE: Final = 0.02


def count_calls(path: Path) -> Counter[str]:
    """Return the calls of functions of MPI in an output of callgrind, by name without the P of PMPI."""
    names: dict[str, str] = {}
    found: Counter[str] = Counter()
    callee = ""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith(("fn=", "cfn=")):
                match = _NAMED.match(line.rstrip("\n"))
                if match is None:
                    continue
                if match[2] is not None:
                    names[match[1]] = match[2].partition("'")[0]
                if line.startswith("c"):
                    callee = names.get(match[1], "")
            elif line.startswith("calls=") and callee.startswith(("MPI_", "PMPI_")):
                found[callee.removeprefix("P")] += int(line[6:].split(maxsplit=1)[0])
    return found


def find_difference(recorded: Mapping[str, float], counted: Mapping[str, int], functions: Iterable[str]) -> str | None:
    """Return in which calls two runs of a program differ, in words; None where they did the same.

    ``functions`` are those that the recorder sees; what calls each other inside of a library is not compared.
    """
    for name in sorted(functions):
        if _POLLING.fullmatch(name) or name.startswith(("MPI_Init", "MPI_Finalize")):
            continue
        before, now = recorded.get(name, 0.0), counted.get(name, 0)
        if now and abs(now - before) > _TOLERANCE * max(before, now) + 1:
            return f"{name} was called {before:,.0f} times in the ordinary run and {now:,} times in this one"
    return None
