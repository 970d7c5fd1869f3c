"""Scalene's JSON: of each line the time in the interpreter, in compiled code, and in which nothing was computed."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.call_stacks.call_path_builder import NOT_COMPUTING
from advisor.formats.call_stacks.known_code import INTERPRETED, NATIVE
from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_content
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.support import strict_json

if TYPE_CHECKING:
    from advisor.support.strict_json import JsonNode

#: Shares of the run in percent, by what they are counted as.
_SHARES: Final = (("n_cpu_percent_python", INTERPRETED), ("n_cpu_percent_c", NATIVE), ("n_sys_percent", ""))
_COMPILED: Final = "compiled code"
_LEAST: Final = 0.95
_MOST: Final = 1.01
_LATEST: Final = 1e11
_LONGEST_S: Final = 1e10


def parse(path: Path) -> StackProfile:
    """Return the lines with their seconds; raises ``InputError`` with the place of what is wrong."""
    document = strict_json.parse_json(path, read_content(path)).require_fields()
    missing = {"elapsed_time_sec", "files"} - document.keys()
    if missing:
        raise InputError(path, f"the profile lacks {min(missing)!r}")
    wall_s = document["elapsed_time_sec"].require_number(0.0)
    if wall_s > _LONGEST_S:
        raise document["elapsed_time_sec"].make_error(f"{wall_s:g} s is not the length of a run")
    start = document.get("start_time_absolute")
    begun = start.require_number(0.0) if start is not None else 0.0
    if start is not None and begun > _LATEST:
        raise start.make_error(f"{begun:g} is not a time")
    spent: dict[tuple[Frame, ...], list[float]] = {}
    kinds: dict[tuple[str, str | None, int | None], str] = {}
    for file, node in document["files"].require_fields().items():
        fields = node.require_fields()
        for line in fields["lines"].require_items() if "lines" in fields else ():
            _add_line(spent, kinds, file, line, wall_s)
    shown = sum(sum(each) for each in spent.values())
    if wall_s <= 0 or not spent:
        raise InputError(path, "the profile holds no times")
    if shown > _MOST * wall_s:
        raise InputError(path, f"its lines take {shown:g} s, the run {wall_s:g} s")
    notes: tuple[Note, ...] = ()
    if shown < _LEAST * wall_s:
        spent[(Frame("code that is not shown", "~"),)] = [wall_s - shown]
        text = "Scalene leaves out lines that take little, and libraries unless told otherwise"
        notes = (Note("lines left out", text, 0.05, "scalene run --profile-all PROGRAM.py"),)
    program = document["program"].require_text() if "program" in document else ""
    return StackProfile(
        "Scalene", "wall_s", spent, wall_s, program=program.replace("\\", "/").rsplit("/", 1)[-1],
        started=datetime.datetime.fromtimestamp(begun, datetime.UTC).isoformat(timespec="seconds") if begun else None,
        language="python", kinds=kinds, notes=notes,
    )  # fmt: skip


def _add_line(
    spent: dict[tuple[Frame, ...], list[float]],
    kinds: dict[tuple[str, str | None, int | None], str],
    file: str,
    node: JsonNode,
    wall_s: float,
) -> None:
    """Add what a line takes: in the interpreter, in what it calls that is compiled, and not on a core."""
    fields = node.require_fields()
    number = fields["lineno"].require_whole() if "lineno" in fields else 0
    frame = Frame(f"{file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{number}", file, number or None)
    for name, kind in _SHARES:
        percent = fields[name].require_number(0.0) if name in fields else 0.0
        if percent > 100 * _MOST:
            raise node.make_error(f"{percent:g} % are more than the run")
        if percent <= 0:
            continue
        below = {INTERPRETED: None, NATIVE: Frame(_COMPILED, file, frame.line)}.get(kind, Frame(NOT_COMPUTING, "~"))
        stack = (frame,) if below is None else (frame, below)
        spent.setdefault(stack, [0.0])[0] += percent / 100 * wall_s
        if kind:
            kinds[stack[-1].name, stack[-1].file, stack[-1].line] = kind
