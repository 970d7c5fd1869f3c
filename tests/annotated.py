"""Reports of callgrind_annotate and cg_annotate: what each function counted, to compare with."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.valgrind.dump import ValgrindDump

_SHARE = re.compile(r"\(\s*[\d.]+%\)")
#: The object file behind a function's name; long lines are cut off in it.
_OBJECT = re.compile(r" \[[^\]]*\]?$")


def functions(report: Path) -> dict[str, list[int]]:
    """Return the counts of each ``file:function`` that the report lists, in the order of its events."""
    lines = report.read_text().splitlines()
    events = next(line for line in lines if line.startswith("Events recorded")).split(":")[1].split()
    begin = next(n for n, line in enumerate(lines) if line.rstrip().endswith("file:function"))
    found: dict[str, list[int]] = {}
    for line in lines[begin + 2 :]:
        words = _SHARE.sub(" ", line).split(None, len(events))
        if len(words) <= len(events):
            break
        name = _OBJECT.sub("", words[-1])
        found[name] = [0 if word == "." else int(word.replace(",", "")) for word in words[:-1]]
    assert found
    return found


def counted(dump: ValgrindDump, folder: str = "") -> dict[str, list[int]]:
    """Return the counts of each ``file:function`` of an output; ``folder`` is what the report strips from files."""
    found: dict[str, list[int]] = defaultdict(lambda: [0] * len(dump.events))
    for place, row in zip(dump.places, dump.counts.astype(int).tolist(), strict=True):
        key = f"{place.file.removeprefix(folder)}:{place.function}"
        found[key] = [one + more for one, more in zip(found[key], row, strict=True)]
    return dict(found)
