"""timemory's two kinds of JSON (``serialization.hpp``, ``node.hpp``): lists of regions with a depth, and trees.

Both hold, for each metric and rank, what passed in each call path with everything below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.plain_text import read_content
from advisor.model.errors import InputError
from advisor.support import strict_json

if TYPE_CHECKING:
    from advisor.support.strict_json import JsonNode

#: Metrics that are read, by timemory's names of them.
WALL: Final = "wall_clock"
CPU: Final = "cpu_clock"
_UNITS: Final = {
    "sec": 1.0, "s": 1.0, "msec": 1e-3, "ms": 1e-3, "usec": 1e-6, "us": 1e-6, "nsec": 1e-9, "ns": 1e-9, "min": 60.0,
}  # fmt: skip
#: What stands before a region's name in a list: rank and thread, and the branches of the tree.
_LABEL: Final = re.compile(r"(?:\|(\d+))?(?:\|(\d+))?(?:@[^|>]*)?>>> *(?:\|_)?")
_DEEPEST: Final = 1000

#: A call path: the names of the regions from the outermost on.
CallPath = tuple[str, ...]


class Place(NamedTuple):
    """A rank and a thread of it; the thread is 0 where timemory added the threads up."""

    rank: int
    thread: int


@dataclass(slots=True)
class Metric:
    """Seconds and calls of each call path at each place, everything below included.

    ``threads`` is the most threads that were added up in one number, of which the mean is kept.
    """

    seconds: dict[CallPath, dict[Place, float]] = field(default_factory=dict)
    calls: dict[CallPath, dict[Place, float]] = field(default_factory=dict)
    ranks: int = 1
    threads: int = 1


def read_metrics(path: Path) -> dict[str, Metric]:
    """Return wall and CPU time in the document at ``path``; raises ``InputError`` where there is neither."""
    root = strict_json.parse_json(path, read_content(path)).require_fields()
    if "timemory" not in root:
        raise InputError(path, "holds no measurements of timemory")
    metrics = root["timemory"].require_fields()
    found = {name.lower(): _read_metric(node) for name, node in metrics.items() if name.lower() in (WALL, CPU)}
    if not any(metric.seconds for metric in found.values()):
        raise InputError(path, f"holds neither {WALL} nor {CPU}, but {', '.join(metrics)[:200]}")
    return found


def _read_metric(node: JsonNode) -> Metric:
    fields = node.require_fields()
    unit = fields["unit_repr"].require_text() if "unit_repr" in fields else "sec"
    if unit not in _UNITS:
        raise node.make_error(f"{unit!r} is not a unit of time")
    metric = Metric()
    stated = [fields[name].require_whole() for name in ("mpi_size", "num_ranks") if name in fields]
    for rank, graph in _iterate_graphs(node, fields):
        metric.ranks = max(metric.ranks, rank + 1)
        if "graph" in graph:
            _add_list(metric, rank, graph["graph"], _UNITS[unit])
        else:
            _add_trees(metric, rank, graph["trees"], _UNITS[unit])
    metric.ranks = max(metric.ranks, *stated, 1)
    return metric


def _iterate_graphs(node: JsonNode, fields: dict[str, JsonNode]) -> Iterator[tuple[int, dict[str, JsonNode]]]:
    """Yield each rank with its list of regions (``graph``) or its trees (``trees``)."""
    if "ranks" in fields:
        for number, rank in enumerate(fields["ranks"].require_items()):
            inside = rank.require_fields()
            if "graph" not in inside:
                raise rank.make_error("'graph' is missing")
            yield inside["rank"].require_whole() if "rank" in inside else number, {"graph": inside["graph"]}
        return
    name = next((name for name in ("mpi", "upcxx", "graph") if name in fields), None)
    if name is None:
        raise node.make_error("holds no regions")
    for number, trees in enumerate(fields[name].require_items()):
        yield number if name != "graph" or isinstance(trees.value, list) else 0, {"trees": trees}


def _add_list(metric: Metric, rank: int, graph: JsonNode, unit_s: float) -> None:
    """Add regions that say how deep they are, each behind the one that calls it."""
    path: list[str] = []
    for entry in graph.require_items():
        region = entry.require_members("prefix", "depth", "entry")
        depth = region["depth"].require_whole()
        if depth > len(path) or depth > _DEEPEST:
            raise entry.make_error(f"a region of depth {depth} below one of depth {len(path) - 1}")
        label = region["prefix"].require_text()
        found = _LABEL.match(label)
        numbers = [int(number) for number in found.groups() if number is not None] if found else []
        name = label[found.end() :].strip() if found else label.strip()
        path = [*path[:depth], name or "not named"]
        thread = numbers[-1] if numbers else _find_thread(region)
        _add_entry(metric, tuple(path), Place(rank, thread), region["entry"], unit_s, 1)


def _find_thread(region: dict[str, JsonNode]) -> int:
    return region["tid"].require_whole() if "tid" in region else 0


def _add_trees(metric: Metric, rank: int, trees: JsonNode, unit_s: float) -> None:
    """Add regions that hold those that they call; what has no name joins threads and is left out."""
    roots = trees.require_items() if isinstance(trees.value, list) else (trees,)
    waiting: list[tuple[JsonNode, CallPath]] = [(root, ()) for root in reversed(roots)]
    while waiting:
        tree, path = waiting.pop()
        fields = tree.require_members("node")
        region = fields["node"].require_members("hash", "prefix", "inclusive")
        below = path
        if region["hash"].value != 0:
            below = (*path, region["prefix"].require_text())
            threads = len(region["tid"].require_items()) if "tid" in region else 1
            inclusive = region["inclusive"].require_members("entry")
            _add_entry(metric, below, Place(rank, 0), inclusive["entry"], unit_s, max(threads, 1))
        if len(below) > _DEEPEST:
            raise tree.make_error("regions nested too deeply")
        waiting += [(child, below) for child in reversed(fields["children"].require_items())] if "children" in fields \
            else []  # fmt: skip


def _add_entry(metric: Metric, path: CallPath, place: Place, entry: JsonNode, unit_s: float, threads: int) -> None:
    """Add what passed in a region; of several threads together the mean."""
    fields = entry.require_members("laps", "repr_data")
    seconds = fields["repr_data"].require_number(0.0) * unit_s / threads
    metric.threads = max(metric.threads, threads)
    at = metric.seconds.setdefault(path, {})
    at[place] = at.get(place, 0.0) + seconds
    counted = metric.calls.setdefault(path, {})
    counted[place] = counted.get(place, 0.0) + fields["laps"].require_whole()
