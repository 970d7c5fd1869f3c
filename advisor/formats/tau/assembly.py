"""From the files of a run to its call paths."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.tau import checks, layout, metadata, metrics, notes
from advisor.formats.tau.metrics import MICROSECOND
from advisor.formats.tau.names import COLLECTIVE_SYNC
from advisor.formats.tau.run import Run, read
from advisor.formats.tau.sheet import CALLS, EXCL
from advisor.formats.tau.table import Table, choose
from advisor.formats.tau.tree import Tree, build
from advisor.model.records import Processor
from advisor.trace.callpaths.records import CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.model.records import FloatArray, IntArray, Note

#: CPU times may run ahead of wall times by some ticks of the system's clock.
_TICK_US: Final = 20_000
#: What rounding leaves of a function whose call paths hold all of it.
_NOTHING: Final = 1e-12
_COLLECTIVES: Final = (Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN)


def call_paths(path: Path, compiled: bool | None = None) -> CallPaths:
    """Return the call paths of the run at ``path``; raises ``InputError`` when none of its files can be read."""
    run = read(path, compiled)
    rows, place, folded = choose(run.names, run.metrics, len(run.places))
    tables = [metric.table(place, len(rows), len(run.places)) for metric in run.metrics]
    texts = [name.decode("utf-8", "surrogateescape") for name in rows]
    groups = [_groups(run.names.groups[run.names.known[name]] if name in run.names.known else b"") for name in rows]
    tree = build(texts, groups)
    found = _contradictions(run, rows, tables, tree)
    kept = run.kept
    if run.broken:
        tables = [Table(table.metric, table.values[:, :, kept]) for table in tables]
    about = metadata.of_run(run.headers[kept[0]])
    told = [
        *notes.of_files(run),
        *notes.contradictions(run, found),
        *notes.of_names(groups, texts, folded),
        *notes.other(
            samples=float(tables[0].values[CALLS][tree.sampled[:, 0]].sum()),
            silent=_silent(run, tree, tables[0]),
            mixed=layout.mixed(path),
            sound=about.sound,
            wall=any(metrics.is_wall(table.metric) for table in tables),
            shared_cpu=any(metrics.is_cpu(table.metric) for table in tables) and _cpu(tree, tables) is None,
        ),
    ]
    return pruned(_filled(path, run, tree, tables, about, told), tree.sampled[:, 1])


def _groups(text: bytes) -> frozenset[str]:
    return frozenset(word.strip() for word in text.decode("utf-8", "surrogateescape").split("|"))


def _contradictions(run: Run, rows: list[bytes], tables: Sequence[Table], tree: Tree) -> list[tuple[int, str]]:
    whole = checks.flat(rows)
    found = list(run.doubts)
    for table in tables:
        found += checks.of_table(table, whole)
        found += checks.of_paths(tree, table)
        found += checks.between(tables[0], table)
    return found


def _silent(run: Run, tree: Tree, table: Table) -> list[str]:
    """Return the files of processors without user events that call collectives, of which TAU records the sizes."""
    if not run.bare:
        return []
    sized = np.array([node.role in _COLLECTIVES for node in tree.nodes])
    called = tree.counted(table.values[CALLS])[sized].any(axis=0)
    numbers = [number for number, calls in zip(run.kept, called.tolist(), strict=True) if calls and number in run.bare]
    return [f"profile.{'.'.join(map(str, run.places[number]))}" for number in numbers]


def pruned(paths: CallPaths, sampled: IntArray) -> CallPaths:
    """Return the call paths without nodes that nothing is left for; ``sampled`` are nodes that samples made."""
    used = np.zeros(len(paths.nodes), dtype=bool)
    used[sampled] = True
    for values in (paths.visits, paths.wall_s):
        if values is not None:
            used |= (values > _NOTHING * values.sum(axis=0)).any(axis=1)
    for n in range(len(used) - 1, -1, -1):
        if used[n] and paths.nodes[n].parent >= 0:
            used[paths.nodes[n].parent] = True
    if used.all():
        return paths
    place = np.append(np.cumsum(used) - 1, -1)
    nodes = tuple(
        replace(node, parent=int(place[node.parent]))
        for node, kept in zip(paths.nodes, used.tolist(), strict=True)
        if kept
    )

    def left(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else values[used]

    return replace(
        paths,
        nodes=nodes,
        wall_s=left(paths.wall_s),
        cpu_s=left(paths.cpu_s),
        visits=left(paths.visits),
        bytes=left(paths.bytes),
        counts={name: values[used] for name, values in paths.counts.items()},
    )


def _cpu(tree: Tree, tables: Sequence[Table]) -> Table | None:
    """Return the CPU times, None where a thread has more of them than wall time: then they are of all its process."""
    cpu = next((table for table in tables if metrics.is_cpu(table.metric)), None)
    wall = next((table for table in tables if metrics.is_wall(table.metric)), None)
    return None if cpu is None or (wall is not None and _exceeds(tree, cpu, wall)) else cpu


def _exceeds(tree: Tree, cpu: Table, wall: Table) -> bool:
    taken, passed = (tree.spread(table.values[EXCL]).sum(axis=0) for table in (cpu, wall))
    return bool((taken > 1.02 * passed + _TICK_US).any())


def _filled(
    path: Path, run: Run, tree: Tree, tables: Sequence[Table], about: metadata.Metadata, told: list[Note]
) -> CallPaths:
    """Return the call paths with what each metric measured."""
    wall = next((table for table in tables if metrics.is_wall(table.metric)), None)
    cpu = _cpu(tree, tables)
    visits = tree.counted((wall or tables[0]).values[CALLS])
    counts = {
        metrics.count(table.metric): tree.spread(table.values[EXCL])
        for table in tables
        if not metrics.is_wall(table.metric) and not metrics.is_cpu(table.metric)
    }
    if any(node.name == COLLECTIVE_SYNC for node in tree.nodes):
        real = np.array([node.role in _COLLECTIVES and node.name != COLLECTIVE_SYNC for node in tree.nodes])
        counts["collectives"] = np.where(real[:, None], visits, 0.0)
    kept = run.kept
    ranks = {run.places[n][0] for n in kept}
    expected = max(node for node, _, _ in run.places) + 1
    return CallPaths(
        program=about.program,
        run=about.started or path.name,
        reader="tau",
        processors=_processors(run),
        nodes=tree.nodes,
        wall_s=None if wall is None else _seconds(tree, wall),
        cpu_s=None if cpu is None else _seconds(tree, cpu),
        visits=visits,
        bytes=run.moved.by_node(tree.nodes, visits, kept),
        counts=counts,
        actual_s=None if wall is not None else math.nan,
        status="estimated" if len(tree.sampled) else "measured",
        started=about.started,
        cores=metadata.cores([run.headers[n] for n in kept if run.places[n][2] == 0]),
        ranks_expected=expected if len(ranks) < expected else None,
        notes=tuple(told),
    )


def _seconds(tree: Tree, table: Table) -> FloatArray:
    return tree.spread(table.values[EXCL]) * MICROSECOND


def _processors(run: Run) -> tuple[Processor, ...]:
    """Return the processors that were read; threads of a node in several contexts are counted through."""
    found: list[Processor] = []
    hosts = {run.places[n][0]: host for n in reversed(run.kept) if (host := metadata.host(run.headers[n]))}
    several = {node for node, context, _ in run.places if context}
    counted: dict[int, int] = {}
    for n in run.kept:
        node, _, thread = run.places[n]
        if node in several:
            thread = counted.get(node, 0)
            counted[node] = thread + 1
        found.append(Processor(node, thread, hosts.get(node)))
    return tuple(found)
