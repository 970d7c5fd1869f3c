"""Call stacks as call paths: a node for each function below those that called it, a column for each thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.call_stacks.frame_roles import classify_frame
from advisor.model.errors import InputError
from advisor.model.records import Note, Processor
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from advisor.formats.call_stacks.stacks import Frame, StackProfile

_MOST_NODES: Final = 100_000
_MOST_CELLS: Final = 20_000_000
_OTHER: Final = "other functions"
_UNIT: Final = {
    "samples": Note(
        "samples without time",
        "the file counts samples and does not tell how long one is: shares are known, seconds are not",
        0.0,
        "gapwatch run -- CMD",
    ),
    "cpu_s": Note(
        "CPU time only",
        "only running functions were sampled: waiting and the time of the run are not in it",
        0.0,
        "gapwatch run -- CMD",
    ),
}


def build_call_paths(found: StackProfile, path: Path) -> CallPaths:
    """Return the call paths of the stacks; raises ``InputError`` for ``path`` where nothing was spent in them."""
    if not any(any(amounts) for amounts in found.spent.values()):
        raise InputError(path, "the profile holds no samples and no times")
    if found.threads * min(len(found.spent), _MOST_NODES) > _MOST_CELLS:
        raise InputError(path, f"{found.threads:,} threads are more than a profile of call stacks holds")
    nodes, spent, calls = _build_tree(found)
    times = {found.unit: spent} if found.unit != "samples" else {}
    return CallPaths(
        program=found.program,
        run=path.name,
        reader="call_stacks",
        processors=tuple(Processor(0, thread) for thread in range(found.threads)),
        nodes=nodes,
        wall_s=times.get("wall_s"),
        cpu_s=times.get("cpu_s"),
        visits=calls,
        counts={"samples": spent} if found.unit == "samples" else {},
        actual_s=found.wall_s,
        status="estimated" if found.sampled else "measured",
        started=found.started,
        language=found.language,
        notes=(*found.notes, *_describe_unit(found), *_describe_cut(nodes)),
    )


def _build_tree(found: StackProfile) -> tuple[tuple[CallPathNode, ...], np.ndarray, np.ndarray | None]:
    """Return the nodes, what was spent in each itself (nodes, threads), and calls (nodes, threads) if counted."""
    numbers: dict[tuple[int, Frame], int] = {}
    nodes: list[CallPathNode] = []
    places: list[tuple[tuple[Frame, ...], int]] = []
    for stack in found.spent:
        parent = -1
        for frame in stack:
            key = (parent, frame)
            if key not in numbers:
                if len(nodes) >= _MOST_NODES:
                    break
                numbers[key] = len(nodes)
                nodes.append(CallPathNode(frame.name, classify_frame(frame), frame.file, frame.line, parent))
            parent = numbers[key]
        places.append((stack, parent))
    if any(parent < 0 for _, parent in places):
        nodes.append(CallPathNode(_OTHER, Role.USER))
    spent = np.zeros((len(nodes), found.threads))
    calls = np.zeros((len(nodes), found.threads)) if found.calls else None
    for stack, place in places:
        spent[place] += found.spent[stack]
        if calls is not None:
            calls[place, 0] += found.calls.get(stack, 0.0)
    return tuple(nodes), spent, calls


def _describe_unit(found: StackProfile) -> Iterator[Note]:
    if found.unit in _UNIT and np.isnan(found.wall_s):
        yield _UNIT[found.unit]


def _describe_cut(nodes: tuple[CallPathNode, ...]) -> Iterator[Note]:
    if len(nodes) >= _MOST_NODES:
        yield Note("too many call paths", f"beyond {_MOST_NODES:,} call paths, functions go with their callers", 0.1)
