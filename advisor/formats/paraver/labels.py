"""What the numbers of a Paraver trace are called: its ``.pcf`` and ``.row`` files.

Values of events are ids that are valid only inside their own ``.pcf``: the same function has another one in the
next run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from advisor.formats.number_lines import convert_read_errors

#: Bytes of a file of names that are read.
MOST_BYTES: Final = 1 << 28
_PAIR: Final = re.compile(r"(-?\d{1,20})\s+(.*)")
_TYPE: Final = re.compile(r"(-?\d+)\s+(\d{1,18})\s+(.*)")
_SECTION: Final = re.compile(r"[A-Z][A-Z_]+")


@dataclass(frozen=True, slots=True)
class Labels:
    """``types`` maps an event type to its name, ``values`` a type to the names of its values.

    ``complete`` tells whether the file was there and ends as it should.
    """

    types: dict[int, str] = field(default_factory=dict)
    values: dict[int, dict[int, str]] = field(default_factory=dict)
    complete: bool = False


def sibling_path(trace: Path, suffix: str) -> Path:
    """Return the path of the file with names that belongs to a trace: ``run.prv.gz`` has ``run.pcf``."""
    name = trace.name.removesuffix(".gz")
    return trace.with_name(Path(name).stem + suffix)


def read_labels(path: Path) -> Labels:
    """Return the names that the ``.pcf`` file at ``path`` defines, none where there is no such file."""
    text = _read_text(path)
    types: dict[int, str] = {}
    values: dict[int, dict[int, str]] = {}
    section = ""
    group: list[int] = []
    for line in (text or "").split("\n"):
        if _SECTION.fullmatch(line.split(" ", 1)[0].strip()) and not _PAIR.match(line):
            section = line.strip()
            group = [] if section == "EVENT_TYPE" else group
        elif section == "EVENT_TYPE" and (found := _TYPE.match(line.strip())):
            group.append(int(found[2]))
            types[int(found[2])] = replace_unprintable(found[3].strip())
        elif section == "VALUES" and (found := _PAIR.match(line.strip())):
            for identity in group:
                values.setdefault(identity, {})[_to_signed(int(found[1]))] = replace_unprintable(found[2].strip())
    return Labels(types, values, complete=text is not None and text.endswith("\n"))


def read_nodes(path: Path) -> tuple[str, ...]:
    """Return the names of the nodes that the ``.row`` file at ``path`` lists."""
    lines = (_read_text(path) or "").splitlines()
    for place, line in enumerate(lines):
        found = re.fullmatch(r"LEVEL NODE SIZE (\d{1,9})", line.strip())
        if found:
            return tuple(replace_unprintable(name.strip()) for name in lines[place + 1 : place + 1 + int(found[1])])
    return ()


def _read_text(path: Path) -> str | None:
    if not path.is_file():
        return None
    with convert_read_errors(path), path.open("rb") as file:
        return file.read(MOST_BYTES).decode("utf-8", "surrogateescape")


def _to_signed(value: int) -> int:
    """Return a value as 64 bits with a sign hold it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def replace_unprintable(text: str) -> str:
    """Return ``text`` with control characters replaced by U+FFFD."""
    if text.isprintable():
        return text
    kept = (c if c.isprintable() or "\udc80" <= c <= "\udcff" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return "".join(kept)
