"""What the addresses of a recording stand for: functions and lines, resolved where it was made.

The file ``places`` has a line for each address that occurs: the path of the object, the place in its file, function,
source file and line, divided by tabs; control characters and backslashes in the path are ``\\xHH``. A second line for
the same address is the function that it is inlined into.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from advisor.support.system_sources import is_system_source

PLACES_FILE: Final = "places"
_HEAD: Final = "gapwatch/trace/1 places"
#: Control characters and backslashes in paths, which may hold anything, are written as in process files.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_ESCAPE: Final = re.compile(r"\\x([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A function and a place in its source, as far as they are known.

    ``inlined`` are functions of the headers of compiler and system that are inlined there, the innermost first.
    """

    function: str
    file: str | None = None
    line: int | None = None
    inlined: tuple[str, ...] = ()


#: Frames of each (object, place in its file), innermost first.
Places = Mapping[tuple[str, int], tuple[CodePlace, ...]]


def read_places(folder: Path) -> Places:
    """Return the places of a recording; nothing where they were never resolved."""
    try:
        text = (folder / PLACES_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found: dict[tuple[str, int], list[CodePlace]] = {}
    for line in text.split("\n"):
        parts = line.split("\t")
        if len(parts) != 5 or not parts[1].isascii() or not parts[1].isdigit():
            continue
        path, offset, function, file, number = parts
        place = CodePlace(function, file or None, int(number) if number.isascii() and number.isdigit() else None)
        path = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), path)
        found.setdefault((path, int(offset)), []).append(place)
    return {key: select_own_frames(tuple(frames)) for key, frames in found.items()}


def select_own_frames(frames: tuple[CodePlace, ...]) -> tuple[CodePlace, ...]:
    """Return the frames without inlined functions of the headers of compiler and system, which users can't change.

    What such a function takes is time of the one that it is inlined into, which names it as ``inlined``. All frames
    where none is the user's.
    """
    own: list[CodePlace] = []
    names: list[str] = []
    for frame in frames:
        if is_system_source(frame.file or ""):
            names.append(frame.function)
        else:
            own.append(replace(frame, inlined=tuple(names)) if names else frame)
            names = []
    return tuple(own) or frames


def write_places(folder: Path, places: Places) -> None:
    """Write the places into a recording, which is complete with them: never an empty file, since nobody reads those."""
    lines = [
        "\t".join((_escape(path), str(offset), _clean(place.function), _clean(place.file or ""), str(place.line or "")))
        for (path, offset), frames in sorted(places.items())
        for place in frames
    ]
    (folder / PLACES_FILE).write_text(
        "".join(f"{line}\n" for line in (_HEAD, *lines)), encoding="utf-8", errors="replace"
    )


def _escape(path: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", path)


def _clean(text: str) -> str:
    return " ".join(text.split())
