"""What the source calls the memory that a program allocates: what the line that allocates it names or assigns to."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.support.system_sources import is_system_source

if TYPE_CHECKING:
    from advisor.collect.binaries.addresses import Frame

_ASSIGNED: Final = re.compile(r"(\w+)\s*\)?\s*(?:\[[^\]]*\]\s*)*=(?!=)")
_ALIGNED: Final = re.compile(r"posix_memalign\s*\(\s*(?:\([\w\s*]+\)\s*)?&?\s*(\w+)")
_CONSTRUCTED: Final = re.compile(r"(?:>|\bauto)\s*&?\s*(\w+)\s*[({]|,\s*(\w+)\s*[({]")
_ALLOCATED: Final = re.compile(r"\ballocate\s*\((.*)\)", re.IGNORECASE)
_FORTRAN_NAME: Final = re.compile(r"(?:^|,)\s*([\w%]+)\s*\(")
#: What stands before a call: an object whose method it is, what its value is assigned to, or a type that it makes.
_OBJECT: Final = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:\.|->)\s*$")
_TARGET: Final = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*=\s*(?:\([^()]*\)\s*|\w+_cast\s*<[^>]*>\s*\(\s*)*$")
_MADE: Final = re.compile(r"\bnew\s+(?:\w+::)*(\w+)\s*[({;]|\bmake_(?:unique|shared)\s*<\s*(?:\w+::)*(\w+)\s*>")
_NEW: Final = re.compile(r"\bnew\s+(?:\([^()]*\)\s*)?(?:\w+::)*$")
_MAKER: Final = re.compile(r"make_(?:unique|shared)\w*")
_CONSTRUCTOR: Final = re.compile(r"(\w+)(?:<.*>)?::~?\1\(")
_OPENING: Final = {")": "(", "]": "[", "}": "{", ">": "<"}


def choose_frames(frames: Sequence[Frame], source: Path | None) -> tuple[Frame, ...]:
    """Return the innermost caller that is the program's own and allocates for itself, and behind it those around it."""
    own = [frame for frame in frames if frame.file is not None and not is_system_source(frame.file)]
    while len(own) > 1 and _hands_on(own[0], source):
        own = own[1:]
    return tuple(own) or tuple(frames[:1])


def name_allocation(frames: Sequence[Frame], turn: int, source: Path | None) -> str:
    """Return what the source calls an allocation, the ``turn``-th that is made there; ``frames`` are the chosen ones.

    What the constructor of an object allocates has the name of the object in front.
    """
    chosen = frames[0] if frames else None
    if chosen is None:
        return "unnamed"
    name = _name_in_line(chosen, turn, source)
    constructor = _CONSTRUCTOR.search(chosen.function or "")
    if name is not None and constructor is not None:
        around = next((one for one in frames[1:] if not _CONSTRUCTOR.search(one.function or "")), None)
        owner = _name_in_line(around, turn, source) if around is not None and around.column else None
        return f"{owner.strip('_')}_{name.strip('_')}" if owner and owner != constructor[1] else name
    plain = re.sub(r"\W+", "_", (chosen.function or "").partition("(")[0]).strip("_")
    return name or (f"{plain}_{chosen.line}" if chosen.line else plain) or "unnamed"


def _name_in_line(frame: Frame, turn: int, source: Path | None) -> str | None:
    """Return what the line of a caller names: at its column, else the ``turn``-th of the line."""
    file = _find_source(frame.file, source)
    text = _read_line(file, frame.line) if file and frame.line else ""
    allocated = _ALLOCATED.search(text)
    if allocated is not None:
        names = [name.rpartition("%")[2] for name in _FORTRAN_NAME.findall(allocated[1])]
    else:
        at_column = find_name_at(text, frame.column) if frame.column else None
        if at_column is not None:
            return at_column
        names = [one[0] or one[1] for one in _CONSTRUCTED.findall(text) if one[0] or one[1]] if "<" in text else []
        names = _ALIGNED.findall(text) or _ASSIGNED.findall(text) or names
    return str(names[turn % len(names)]) if names else None


def find_name_at(text: str, column: int) -> str | None:
    """Return what a call at a column (from 1 on) names, None where that can't be told.

    Compilers give the place of the name that is constructed, of its closing bracket, or of the function that is called.
    """
    place = column - 1
    if place >= len(text):
        return None
    indexed = False
    if text[place] in ")]}":
        place = _find_opening(text, place)
        indexed = text[place] == "["
        begin, end = _word_before(text, place)
    elif text[place] in "({":
        begin, end = _word_before(text, place)
    else:
        begin = end = place
        while begin > 0 and re.match(r"\w", text[begin - 1]):
            begin -= 1
        while end < len(text) and re.match(r"\w", text[end]):
            end += 1
    if (new := _NEW.search(text[:begin])) is not None:  # the column is that of the type
        begin, end = new.start(), new.start() + len("new")
    elif indexed:
        return text[begin:end] or None
    word, before = text[begin:end], text[:begin]
    if word.isdigit() or not word:
        return None
    made = _MADE.search(text[begin:])
    if word == "new" or _MAKER.fullmatch(word):
        if made is not None and (word != "new" or made.start() == 0):
            return made[1] or made[2]
    elif (found := _OBJECT.search(before)) is not None:
        return found[1]
    if (found := _TARGET.search(before.removesuffix("std::"))) is not None:
        return found[1]
    declared = re.search(r"[\w>*&:,]\s*$", before) is not None and re.match(r"\s*[({;,=]", text[end:] + ";") is not None
    called = re.search(r"(?:^|[=(!]|\breturn)\s*$", before) is not None
    return word if declared and not called else None


def _find_opening(text: str, place: int) -> int:
    """Return where the bracket that closes at a place is opened, that place itself where it is not."""
    closing, depth = text[place], 0
    for at in range(place, -1, -1):
        depth += (text[at] == closing) - (text[at] == _OPENING[closing])
        if not depth:
            return at
    return place


def _word_before(text: str, place: int) -> tuple[int, int]:
    """Return where the word in front of a place begins and ends, template arguments between left out."""
    end = len(text[:place].rstrip(" *"))
    if end and text[end - 1] == ">":
        end = len(text[: _find_opening(text, end - 1)].rstrip())
    begin = end
    while begin > 0 and re.match(r"\w", text[begin - 1]):
        begin -= 1
    return begin, end


def _hands_on(frame: Frame, source: Path | None) -> bool:
    """Return whether what a line allocates is returned, there or below: its function only wraps ``malloc``."""
    file = _find_source(frame.file, source)
    if file is None or not frame.line:
        return False
    text = _read_line(file, frame.line)
    if re.search(r"\breturn\b", text):
        return True
    names = _ALIGNED.findall(text) or _ASSIGNED.findall(text)
    below = itertools.takewhile(lambda line: not line.startswith("}"), _read_lines(file)[frame.line :])
    returned = [re.search(r"\breturn\s*\(?\s*(?:\([\w\s*]+\)\s*)?(\w+)\s*\)?\s*;", line) for line in below]
    return any(one is not None and one[1] in names for one in returned)


def _find_source(file: str | None, folder: Path | None) -> Path | None:
    """Return a file of the source, from the folder of sources where it is not at its own place."""
    if file is None or Path(file).is_file() or folder is None:
        return Path(file) if file else None
    return next((path for path in sorted(folder.rglob(Path(file).name)) if path.is_file()), None)


def _read_lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _read_line(file: Path, line: int) -> str:
    lines = _read_lines(file)
    text = lines[line - 1] if line <= len(lines) else ""
    while text.rstrip().endswith("&") and line < len(lines):  # a statement of Fortran goes on
        text, line = text.rstrip()[:-1] + lines[line].lstrip(" &"), line + 1
    return text
