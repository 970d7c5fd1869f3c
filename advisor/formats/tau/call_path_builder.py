"""From the files of a run to its call paths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from advisor.formats.rank_files import Origin, compare_origins
from advisor.formats.tau import checks, layout, metadata, notes
from advisor.formats.tau.function_names import COLLECTIVE_SYNC
from advisor.formats.tau.run_files import TauRun, read_run
from advisor.formats.tau.sheet import CALLS, EXCL
from advisor.formats.tau.table import MetricTable, select_names
from advisor.formats.tau.tree import CallTree, build_tree
from advisor.model.records import FloatArray, IntArray, Note, Processor
from advisor.trace.callpaths.records import CallPaths
from advisor.trace.events import Role

#: All times are in microseconds.
MICROSECOND: Final = 1e-6
_WALL: Final = frozenset({
    "TIME", "GET_TIME_OF_DAY", "WALL_CLOCK_TIME", "P_WALL_CLOCK_TIME", "LINUX_TIMERS", "LINUXTIMERS", "CRAY_TIMERS",
    "CRAYTIMERS", "BGL_TIMERS", "BGLTIMERS", "BGP_TIMERS", "BGPTIMERS", "SGI_TIMERS", "SGITIMERS", "TAU_MPI_WTIME",
    "CLOCK_GETTIME",
})  # fmt: skip
_CPU: Final = frozenset({"CPU_TIME", "CPUTIME", "P_VIRTUAL_TIME", "USER_TIME"})
#: PAPI's presets by the names of ``Profile.counts``.
_COUNTS: Final = {
    "PAPI_TOT_INS": "instructions",
    "PAPI_TOT_CYC": "cycles",
    "PAPI_LD_INS": "compiled_ops.load",
    "PAPI_SR_INS": "compiled_ops.store",
    "PAPI_FAD_INS": "compiled_ops.fp_add",
    "PAPI_FML_INS": "compiled_ops.fp_mul",
    "PAPI_FMA_INS": "compiled_ops.fp_fma",
    "PAPI_FDV_INS": "compiled_ops.fp_div",
    "PAPI_L1_DCM": "misses.L1",
    "PAPI_L2_DCM": "misses.L2",
    "PAPI_L2_TCM": "misses.L2",
    "PAPI_L3_DCM": "misses.L3",
    "PAPI_L3_TCM": "misses.L3",
}

#: CPU times may run ahead of wall times by some ticks of the system's clock.
_TICK_US: Final = 20_000
#: What rounding leaves of a function whose call paths hold all of it.
_NOTHING: Final = 1e-12
_COLLECTIVES: Final = (Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN)


def build_call_paths(path: Path, compiled: bool | None = None) -> CallPaths:
    """Return the call paths of the run at ``path``; raises ``InputError`` when none of its files can be read."""
    run = read_run(path, compiled)
    rows, place, folded = select_names(run.names, run.metrics, len(run.places))
    tables = [metric.build_table(place, len(rows), len(run.places)) for metric in run.metrics]
    texts = [name.decode("utf-8", "surrogateescape") for name in rows]
    groups = [
        _split_groups(run.names.groups[run.names.numbers[name]] if name in run.names.numbers else b"") for name in rows
    ]
    tree = build_tree(texts, groups)
    found = _find_contradictions(run, rows, tables, tree)
    kept = run.complete_processors
    if run.damage:
        tables = [MetricTable(table.metric, table.values[:, :, kept]) for table in tables]
    about = metadata.read_metadata(run.headers[kept[0]])
    told = [
        *notes.note_files(run),
        *notes.note_contradictions(run, found),
        *compare_origins([_origin(run, n) for n in kept if run.places[n][1:] == (0, 0)]),
        *notes.note_names(groups, texts, folded),
        *notes.note_others(
            samples=float(tables[0].values[CALLS][tree.sampled[:, 0]].sum()),
            silent=_find_silent_files(run, tree, tables[0]),
            mixed=layout.has_mixed_metrics(path),
            sound=about.sound,
            wall=any(is_wall(table.metric) for table in tables),
            shared_cpu=any(is_cpu(table.metric) for table in tables) and _find_cpu_table(tree, tables) is None,
        ),
    ]
    return prune_nodes(_assemble_call_paths(path, run, tree, tables, about, told), tree.sampled[:, 1])


def _origin(run: TauRun, number: int) -> Origin:
    name = f"profile.{'.'.join(map(str, run.places[number]))}"
    return metadata.read_origin(run.headers[number], name)


def _split_groups(text: bytes) -> frozenset[str]:
    return frozenset(word.strip() for word in text.decode("utf-8", "surrogateescape").split("|"))


def _find_contradictions(
    run: TauRun, rows: list[bytes], tables: Sequence[MetricTable], tree: CallTree
) -> list[tuple[int, str]]:
    whole = checks.find_whole_functions(rows)
    found = list(run.doubts)
    for table in tables:
        found += checks.check_table(table, whole)
        found += checks.check_paths(tree, table)
        found += checks.check_calls(tables[0], table)
    return found


def _find_silent_files(run: TauRun, tree: CallTree, table: MetricTable) -> list[str]:
    """Return the files of processors without user events that call collectives, of which TAU records the sizes."""
    if not run.without_events:
        return []
    sized = np.array([node.role in _COLLECTIVES for node in tree.nodes])
    called = tree.sum_timers(table.values[CALLS])[sized].any(axis=0)
    numbers = [
        number
        for number, calls in zip(run.complete_processors, called.tolist(), strict=True)
        if calls and number in run.without_events
    ]
    return [f"profile.{'.'.join(map(str, run.places[number]))}" for number in numbers]


def prune_nodes(paths: CallPaths, sampled: IntArray) -> CallPaths:
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

    def select_used(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else values[used]

    return replace(
        paths,
        nodes=nodes,
        wall_s=select_used(paths.wall_s),
        cpu_s=select_used(paths.cpu_s),
        visits=select_used(paths.visits),
        bytes=select_used(paths.bytes),
        counts={name: values[used] for name, values in paths.counts.items()},
    )


def _find_cpu_table(tree: CallTree, tables: Sequence[MetricTable]) -> MetricTable | None:
    """Return the CPU times, None where a thread has more of them than wall time: then they are of all its process."""
    cpu = next((table for table in tables if is_cpu(table.metric)), None)
    wall = next((table for table in tables if is_wall(table.metric)), None)
    return None if cpu is None or (wall is not None and _cpu_exceeds_wall(tree, cpu, wall)) else cpu


def _cpu_exceeds_wall(tree: CallTree, cpu: MetricTable, wall: MetricTable) -> bool:
    taken, passed = (tree.spread_values(table.values[EXCL]).sum(axis=0) for table in (cpu, wall))
    return bool((taken > 1.02 * passed + _TICK_US).any())


def _assemble_call_paths(
    path: Path,
    run: TauRun,
    tree: CallTree,
    tables: Sequence[MetricTable],
    about: metadata.RunMetadata,
    told: list[Note],
) -> CallPaths:
    """Return the call paths with what each metric measured."""
    wall = next((table for table in tables if is_wall(table.metric)), None)
    cpu = _find_cpu_table(tree, tables)
    visits = tree.sum_timers((wall or tables[0]).values[CALLS])
    counts = {
        count_name(table.metric): tree.spread_values(table.values[EXCL])
        for table in tables
        if not is_wall(table.metric) and not is_cpu(table.metric)
    }
    if any(node.name == COLLECTIVE_SYNC for node in tree.nodes):
        real = np.array([node.role in _COLLECTIVES and node.name != COLLECTIVE_SYNC for node in tree.nodes])
        counts["collectives"] = np.where(real[:, None], visits, 0.0)
    kept = run.complete_processors
    ranks = {run.places[n][0] for n in kept}
    expected = max(node for node, _, _ in run.places) + 1
    return CallPaths(
        program=about.program,
        run=about.started or path.name,
        reader="tau",
        processors=_build_processors(run),
        nodes=tree.nodes,
        wall_s=None if wall is None else _to_seconds(tree, wall),
        cpu_s=None if cpu is None else _to_seconds(tree, cpu),
        visits=visits,
        bytes=run.moved_bytes.share_by_node(tree.nodes, visits, kept),
        counts=counts,
        actual_s=None if wall is not None else math.nan,
        status="estimated" if len(tree.sampled) else "measured",
        started=about.started,
        cores=metadata.count_cores([run.headers[n] for n in kept if run.places[n][2] == 0]),
        ranks_expected=expected if len(ranks) < expected else None,
        notes=tuple(told),
    )


def _to_seconds(tree: CallTree, table: MetricTable) -> FloatArray:
    return tree.spread_values(table.values[EXCL]) * MICROSECOND


def _build_processors(run: TauRun) -> tuple[Processor, ...]:
    """Return the processors that were read; threads of a node in several contexts are counted through."""
    found: list[Processor] = []
    hosts = {
        run.places[n][0]: host
        for n in reversed(run.complete_processors)
        if (host := metadata.find_host(run.headers[n]))
    }
    several = {node for node, context, _ in run.places if context}
    counted: dict[int, int] = {}
    for n in run.complete_processors:
        node, _, thread = run.places[n]
        if node in several:
            thread = counted.get(node, 0)
            counted[node] = thread + 1
        found.append(Processor(node, thread, hosts.get(node)))
    return tuple(found)


def is_wall(metric: str) -> bool:
    """Return whether a metric is wall time."""
    return metric.upper() in _WALL


def is_cpu(metric: str) -> bool:
    """Return whether a metric is CPU time."""
    return metric.upper() in _CPU


def count_name(metric: str) -> str:
    """Return the name among ``Profile.counts`` of a metric that is no time; its own where there is none."""
    return _COUNTS.get(metric.upper(), metric)
