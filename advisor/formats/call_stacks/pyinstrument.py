"""Pyinstrument's JSON: the seconds that passed in each Python function.

A tree (``-r json``, or the data of an HTML report) or a list of samples (``-r session``, ``.pyisession``).
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_content
from advisor.model.errors import InputError
from advisor.support import strict_json

if TYPE_CHECKING:
    from advisor.support.strict_json import JsonNode

#: What stands for the file of a thread.
_THREAD: Final = "<thread>"
_PROGRAM: Final = "Program: "
#: What the times of functions may exceed those of what contains them by, seconds.
_SLACK_S: Final = 1e-4


def parse(path: Path) -> StackProfile:
    """Return the tree of the session; raises ``InputError`` with the place of what is wrong."""
    document = strict_json.parse_json(path, read_content(path)).require_fields()
    root = document["session"].require_fields() if "session" in document else document
    missing = {"start_time", "duration"} - root.keys()
    if missing:
        raise InputError(path, f"the session lacks {min(missing)!r}")
    told = root.get("target_description") or root.get("program")
    program = told.require_text().removeprefix(_PROGRAM) if told else ""
    start = root["start_time"].require_number(0.0)
    if start > 1e11:
        raise root["start_time"].make_error(f"{start:g} is not a time")
    found = StackProfile(
        tool="pyinstrument",
        unit="wall_s",
        spent={},
        wall_s=root["duration"].require_number(0.0),
        program=program.split(" ")[0].rsplit("/", 1)[-1],
        started=datetime.datetime.fromtimestamp(start, datetime.UTC).isoformat(timespec="seconds"),
        language="python",
    )
    tree = document.get("root_frame", document.get("frame_tree"))
    if tree is not None:
        _add_frames(found, tree)
    elif "frame_records" in root:
        _add_records(found, root["frame_records"])
    else:
        raise InputError(path, "the session holds no frames")
    return found


def _add_records(found: StackProfile, records: JsonNode) -> None:
    """Add samples: the frames of a stack, outermost first, and the seconds that it stands for."""
    for record in records.require_items():
        parts = record.require_items()
        if len(parts) != 2:
            raise record.make_error("a stack and its seconds are expected")
        stack = tuple(_parse_identifier(node.require_text()) for node in parts[0].require_items())
        found.add_spent(tuple(frame for frame in stack if frame is not None), 0, parts[1].require_number(0.0))


def _parse_identifier(text: str) -> Frame | None:
    """Return the frame of ``name\\0file\\0line``, with attributes behind ``\\1``; None for a thread."""
    name, _, place = text.split("\1")[0].partition("\0")
    file, _, line = place.partition("\0")
    return None if file == _THREAD else Frame(name, file or None, int(line) if line.isdecimal() else None)


def _add_frames(found: StackProfile, root: JsonNode) -> None:
    """Add the seconds that each function takes itself: its own less those of what it calls."""
    waiting: list[tuple[JsonNode, tuple[Frame, ...]]] = [(root, ())]
    while waiting:
        node, above = waiting.pop()
        fields = node.require_fields()
        name = fields["function"].require_text() if "function" in fields else ""
        file = fields["file_path"].require_text() if "file_path" in fields else None
        line = fields["line_no"].require_whole() if "line_no" in fields else 0
        if "identifier" in fields:
            frame = _parse_identifier(fields["identifier"].require_text()) or Frame("[thread]")
            name, file, line = frame.name, frame.file, frame.line or 0
        seconds = fields["time"].require_number(0.0) if "time" in fields else 0.0
        children = fields["children"].require_items() if "children" in fields else []
        inside = sum(
            each["time"].require_number(0.0) for child in children if "time" in (each := child.require_fields())
        )
        if inside > seconds + _SLACK_S:
            raise node.make_error(f"what {name} calls takes {inside:g} s, itself {seconds:g} s")
        if name.startswith("["):  # [self], [await]: time of the function above
            found.add_spent(above or (Frame(name),), 0, seconds)
            continue
        stack = (*above, Frame(name, file, line or None))
        found.add_spent(stack, 0, max(seconds - inside, 0.0))
        waiting += [(child, stack) for child in children]
