"""The call tree of a profile, and how much of each function belongs to which of its nodes.

TAU states a function as a whole and again for each path of calls to it. The paths are the tree; of the function as a
whole only what no path explains is left, which without call paths is all of it. Samples lie inside a timer and repeat
its time: they divide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.tau import function_names as naming
from advisor.trace.callpaths.tree import WORKING

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.callpaths.records import CallPathNode

DEPTH_LIMIT: Final = 1000
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallTree:
    """The nodes, parents first, and where the values of each name go.

    ``own`` (names,) is the node of each name that is no sample (-1: none), ``whole`` (names,) for a path of calls the
    node of its last function as a whole (-1: none). ``sampled`` (samples, 3) holds a name, the node of the sampled
    function and that of the timer around it.
    """

    nodes: tuple[CallPathNode, ...]
    own: IntArray
    whole: IntArray
    sampled: IntArray

    def spread_values(self, values: FloatArray) -> FloatArray:
        """Return exclusive ``values`` (names, processors) by node, samples taken from their timers' values."""
        found = self.sum_timers(values)
        if len(self.sampled):
            name, node, timer = self.sampled.T
            told = np.zeros_like(found)
            np.add.at(told, timer, values[name])
            scale = np.divide(np.minimum(told, found), told, out=np.zeros_like(told), where=told > 0)
            inside = values[name] * scale[timer]
            np.subtract.at(found, timer, inside)
            np.add.at(found, node, inside)
        return np.maximum(found, 0.0)

    def sum_timers(self, values: FloatArray) -> FloatArray:
        """Return ``values`` (names, processors) of timers by node."""
        return np.maximum(self.subtract_paths(values), 0.0)

    def subtract_paths(self, values: FloatArray) -> FloatArray:
        """Return ``values`` of timers by node; below zero where paths hold more than their function as a whole."""
        if np.array_equal(self.own, np.arange(len(self.nodes))) and not (self.whole >= 0).any():
            return values
        found = np.zeros((len(self.nodes), values.shape[1]))
        mine, path = self.own >= 0, self.whole >= 0
        np.add.at(found, self.own[mine], values[mine])
        np.subtract.at(found, self.whole[path], values[path])
        return found


def build_tree(texts: Sequence[str], groups: Sequence[Iterable[str]]) -> CallTree:
    """Return the tree of the names of a run; ``groups`` are those that TAU puts each in."""
    builder = _TreeBuilder()
    paths = [naming.split_path(text)[-DEPTH_LIMIT:] for text in texts]
    timers = [n for n, path in enumerate(paths) if not any(map(naming.is_sampling, path))]
    builder.plan_nodes({paths[n]: groups[n] for n in timers})
    own, whole = np.full(len(texts), -1), np.full(len(texts), -1)
    for n in timers:
        own[n] = builder.require_node(paths[n])
        if len(paths[n]) > 1:
            whole[n] = builder.node_of_path.get(paths[n][-1:], -1)
    samples = [builder.add_sample(n, path) for n, path in enumerate(paths) if path[-1].startswith(naming.SAMPLE)]
    sampled = np.array([found for found in samples if found], dtype=np.int64).reshape(-1, 3)
    return CallTree(tuple(builder.nodes), own, whole, sampled)


class _TreeBuilder:
    """Makes nodes, the parent before its children."""

    def __init__(self) -> None:
        self.nodes: list[CallPathNode] = []
        self.node_of_path: dict[Path, int] = {}
        self._groups: dict[Path, Iterable[str]] = {}
        self._cut: dict[Path, Path] = {}

    def plan_nodes(self, groups: dict[Path, Iterable[str]]) -> None:
        """Take the paths of timers; flat ones become nodes at once, since each is the whole of its function."""
        self._groups = groups
        longest = max(map(len, groups), default=0)
        for path in groups:
            if len(path) == longest > 1:
                # Of deeper calls TAU keeps the last functions only: they hang below a path that ends as they begin.
                self._cut.setdefault(path[1:], path)
        for path in groups:
            if len(path) == 1:
                self._make_node(path, -1)

    def require_node(self, path: Path) -> int:
        """Return the node of a timer's path, made with those above it."""
        chain: list[Path] = []
        seen = set()
        above: Path | None = path
        while above is not None and above not in self.node_of_path and above not in seen:
            chain.append(above)
            seen.add(above)
            above = self._find_caller(above)
        parent = self.node_of_path.get(above, -1) if above else -1
        for link in reversed(chain):
            parent = self._make_node(link, parent)
        return self.node_of_path[path]

    def _find_caller(self, path: Path) -> Path | None:
        """Return the path that calls ``path``; None where nothing is above it."""
        begin = path[:-1]
        if not begin or begin in self._groups:
            return begin or None
        return self._cut.get(begin, begin)

    def _make_node(self, path: Path, parent: int) -> int:
        self.node_of_path[path] = len(self.nodes)
        groups = self._groups.get(path) or self._groups.get(path[-1:], ())
        self.nodes.append(naming.build_node(path[-1], groups, parent))
        return self.node_of_path[path]

    def add_sample(self, name: int, path: Path) -> tuple[int, int, int] | None:
        """Return a sample's name, node and timer; None where no working timer is around it."""
        begin = next((n for n, part in enumerate(path) if part.startswith(naming.CONTEXT)), 0)
        if not begin:
            return None
        timer = self.require_node(path[:begin])
        if self.nodes[timer].role not in WORKING:
            return None
        node, here = timer, path[: begin + 1]
        for part in path[begin + 1 :]:
            place = naming.build_node(part, (), node)
            here = (*here, f"{place.name}\0{place.file}")
            # A function that is sampled at several of its lines, or found by unwinding and sampling, is one node.
            if (place.name, place.file) == (self.nodes[node].name, self.nodes[node].file):
                continue
            if here not in self.node_of_path:
                self.node_of_path[here] = len(self.nodes)
                self.nodes.append(place)
            node = self.node_of_path[here]
        return name, node, timer
