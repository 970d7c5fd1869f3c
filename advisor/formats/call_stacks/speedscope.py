"""Speedscope's JSON (``file-format-schema.json``), which py-spy, rbspy and many converters write: samples or events."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_content
from advisor.support import strict_json
from advisor.support.strict_json import JsonNode, optional_text

_UNITS: Final = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
#: What others call units that are none of time.
_COUNTS: Final = ("none", "bytes", "samples")
#: Samplers that leave out threads that do not run.
_RUNNING_ONLY: Final = ("py-spy", "rbspy")


def parse(path: Path) -> StackProfile:
    """Return the threads in the document; raises ``InputError`` with the place of what is wrong."""
    document = strict_json.parse_json(path, read_content(path))
    root = document.require_members("shared", "profiles")
    frames = [_parse_frame(node) for node in root["shared"].require_members("frames")["frames"].require_items()]
    members = ("type", "unit", "startValue", "endValue")
    threads = [node.require_members(*members) for node in root["profiles"].require_items()]
    units = {each["unit"].require_choice((*_UNITS, *_COUNTS)) for each in threads}
    seconds = units <= _UNITS.keys() and bool(units)
    exporter = optional_text(root, "exporter") or ""
    running = exporter.startswith(_RUNNING_ONLY)
    spans = [each["endValue"].require_number() - each["startValue"].require_number() for each in threads]
    factors = [_UNITS.get(each["unit"].require_text(), 1.0) for each in threads]
    wall_s = max((span * factor for span, factor in zip(spans, factors, strict=True)), default=0.0)
    found = StackProfile(
        tool=exporter or "speedscope",
        unit="samples" if not seconds else "cpu_s" if running else "wall_s",
        spent={},
        wall_s=wall_s if seconds and not running else math.nan,
        threads=max(len(threads), 1),
        sampled=any(each["type"].require_text() == "sampled" for each in threads),
        language="python" if exporter.startswith("py-spy") else None,
    )
    for number, (each, factor) in enumerate(zip(threads, factors, strict=True)):
        if each["type"].require_choice(("sampled", "evented")) == "sampled":
            _add_samples(found, each, frames, number, factor)
        else:
            _add_events(found, each, frames, number, factor)
    return found


def _parse_frame(node: JsonNode) -> Frame:
    fields = node.require_members("name")
    file = optional_text(fields, "file")
    return Frame(
        fields["name"].require_text(), file, fields["line"].require_whole() or None if "line" in fields else None
    )


def _add_samples(
    found: StackProfile, each: dict[str, JsonNode], frames: list[Frame], thread: int, factor: float
) -> None:
    samples, weights = (each[name].require_items() if name in each else [] for name in ("samples", "weights"))
    if len(samples) != len(weights):
        raise each["type"].make_error(f"{len(weights)} weights of {len(samples)} samples")
    for sample, weight in zip(samples, weights, strict=True):
        stack = tuple(_find_frame(node, frames) for node in sample.require_items())
        if stack:
            found.add_spent(stack, thread, weight.require_number(0.0) * factor)


def _add_events(
    found: StackProfile, each: dict[str, JsonNode], frames: list[Frame], thread: int, factor: float
) -> None:
    """Add what passes between events with the functions that are open."""
    stack: list[Frame] = []
    last = each["startValue"].require_number()
    for node in each["events"].require_items() if "events" in each else ():
        event = node.require_members("type", "at", "frame")
        now = event["at"].require_number()
        if now < last:
            raise node.make_error("time runs backwards here")
        if stack:
            found.add_spent(tuple(stack), thread, (now - last) * factor)
        last, frame = now, _find_frame(event["frame"], frames)
        if event["type"].require_choice(("O", "C")) == "O":
            stack.append(frame)
        elif not stack or stack.pop() != frame:
            raise node.make_error(f"{frame.name} is left without having been entered last")
    if stack:
        raise each["type"].make_error(f"{stack[-1].name} is never left: the document is cut off")


def _find_frame(node: JsonNode, frames: list[Frame]) -> Frame:
    number = node.require_whole()
    if number >= len(frames):
        raise node.make_error(f"there is no frame {number}")
    return frames[number]
