"""CPU profiles of V8 (``.cpuprofile``): Node.js, Deno, Chrome, and whatever else speaks DevTools' protocol.

Samples name the function on top, with the time since the sample before; a tree says who called whom.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_content
from advisor.model.errors import InputError
from advisor.support import strict_json

if TYPE_CHECKING:
    from advisor.support.strict_json import JsonNode

_US: Final = 1e-6
#: What V8 calls the time in which nothing runs.
_IDLE: Final = "(idle)"
#: A function whose name says that it sleeps.
_ASLEEP: Final = Frame("sleep", "")
#: What stands for the script of functions that are in none.
_NATIVE: Final = "V8"
_DEEPEST: Final = 2000
#: Functions on all stacks together: a small file can describe very many deep ones.
_MOST_FRAMES: Final = 10_000_000
_MOST_LINES: Final = 1 << 31
#: The samples last as long as the recording, but for the time before the first and behind the last one.
_ROUNDING: Final = 1.05


def parse(path: Path) -> StackProfile:
    """Return the stacks in the profile; raises ``InputError`` with the place of what is damaged."""
    members = ("nodes", "startTime", "endTime", "samples", "timeDeltas")
    root = strict_json.parse_json(path, read_content(path)).require_members(*members)
    nodes = {node["id"].require_whole(): node for node in _list_nodes(root["nodes"])}
    wall_s = (root["endTime"].require_number() - root["startTime"].require_number()) * _US
    samples, deltas = (root[name].require_items() for name in ("samples", "timeDeltas"))
    if len(samples) != len(deltas) or not samples:
        raise InputError(path, f"damaged: {len(samples):,} samples and {len(deltas):,} times between them")
    seconds: dict[int, float] = {}
    # A sample stands for the time to the next one, the last for as long as the one before.
    for sample, passed in zip(samples, [*deltas[1:], deltas[-1]], strict=True):
        number = sample.require_whole()
        if number not in nodes:
            raise InputError(path, f"damaged: no node {number}")
        seconds[number] = seconds.get(number, 0.0) + max(passed.require_number(), 0.0) * _US
    found = StackProfile("V8", "wall_s", {}, wall_s, program=_find_program(nodes), language="javascript")
    left = _MOST_FRAMES
    for number, stack in _iterate_stacks(nodes, seconds):
        found.add_spent(stack, 0, seconds[number])
        left -= len(stack)
        if left < 0:
            raise InputError(path, f"its stacks hold more than {_MOST_FRAMES:,} functions")
    total = sum(sum(seconds) for seconds in found.spent.values())
    if not 0 < total <= _ROUNDING * wall_s + _US:
        raise InputError(path, f"damaged: samples of {total:g} s in a recording of {wall_s:g} s")
    return replace(found, wall_s=max(wall_s, total))


def _list_nodes(nodes: JsonNode) -> Iterator[Mapping[str, JsonNode]]:
    """Yield the nodes of the tree."""
    return (node.require_members("id", "callFrame") for node in nodes.require_items())


def _iterate_stacks(
    nodes: dict[int, Mapping[str, JsonNode]], sampled: Iterable[int]
) -> Iterator[tuple[int, tuple[Frame, ...]]]:
    """Yield the ``sampled`` nodes with their stacks, outermost function first; the root is in none."""
    parents: dict[int, int] = {}
    for number, node in nodes.items():
        for child in node["children"].require_items() if "children" in node else ():
            parents[child.require_whole()] = number
    frames = {number: _name_frame(node["callFrame"].require_members("functionName")) for number, node in nodes.items()}
    for number in sampled:
        stack: list[Frame] = []
        place = number
        while place in parents and len(stack) < _DEEPEST:
            stack.append(frames[place])
            place = parents[place]
        yield number, _place_native(stack[::-1]) or (Frame("(program)", _NATIVE),)


def _place_native(stack: list[Frame]) -> tuple[Frame, ...]:
    """Return the stack with functions of no script in the library that calls them."""
    for place in range(1, len(stack)):
        caller = stack[place - 1].file or ""
        if stack[place].file == _NATIVE and caller.startswith("node:"):
            stack[place] = stack[place]._replace(file=caller)
    return tuple(stack)


def _name_frame(call: Mapping[str, JsonNode]) -> Frame:
    name = call["functionName"].require_text() or "(anonymous)"
    if name == _IDLE:
        return _ASLEEP
    line = call["lineNumber"].require_number() + 1 if "lineNumber" in call else 0
    return Frame(name, strict_json.optional_text(call, "url") or _NATIVE, int(line) if 0 < line < _MOST_LINES else None)


def _find_program(nodes: dict[int, Mapping[str, JsonNode]]) -> str:
    """Return the first script that is a file of the program's own."""
    calls = (node["callFrame"].require_fields() for node in nodes.values())
    urls = (strict_json.optional_text(call, "url") or "" for call in calls)
    own = (url for url in urls if url and not url.startswith("node:") and "node_modules" not in url)
    return next(own, "").rsplit("/", 1)[-1]
