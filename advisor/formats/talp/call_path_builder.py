"""TALP's regions as call paths: the program, its regions, and below each the time in MPI and of OpenMP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from advisor.formats.talp.division import RegionDivision, divide_regions
from advisor.formats.talp.notes import build_notes
from advisor.formats.talp.rank_sums import spread_means
from advisor.formats.talp.recording import VALUES, TalpRecording
from advisor.model.records import FloatArray, Processor
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role

#: Time that is not useful: its names in TALP, the node's name and role, and what counts how often it came to that.
_LOST: Final = (
    (("mpiTime", "mpiWorkerIdleTime"), "MPI", Role.COMM_OTHER, "numMpiCalls"),
    (("ompLoadImbalanceTime",), "OpenMP load imbalance", Role.OMP_BARRIER, "numOmpParallels"),
    (("ompSchedulingTime",), "OpenMP scheduling", Role.THREAD, "numOmpParallels"),
    (("ompSerializationTime",), "OpenMP serialization", Role.OMP_BARRIER, "numOmpParallels"),
)
_COUNTED: Final = ("instructions", "cycles")


@dataclass(slots=True)
class _GrowingNodes:
    """Nodes as they are added, with own nanoseconds, visits and counts of each, per rank."""

    nodes: list[CallPathNode] = field(default_factory=list)
    wall_ns: list[FloatArray] = field(default_factory=list)
    visits: list[FloatArray] = field(default_factory=list)
    counts: dict[str, list[FloatArray]] = field(default_factory=lambda: {name: [] for name in _COUNTED})

    def add_node(
        self, node: CallPathNode, wall_ns: FloatArray, visits: FloatArray, counts: Mapping[str, FloatArray]
    ) -> int:
        self.nodes.append(node)
        self.wall_ns.append(wall_ns)
        self.visits.append(visits)
        for name, values in self.counts.items():
            values.append(counts.get(name, np.zeros_like(wall_ns)))
        return len(self.nodes) - 1


def build_call_paths(recording: TalpRecording) -> CallPaths:
    """Return the call paths of ``recording``; a rank stands for the mean of its threads, which TALP adds up."""
    division = divide_regions(recording)
    threads = count_threads(recording, division)
    found = _GrowingNodes()
    root = -1
    if division.whole >= 0:
        name = recording.regions[division.whole]
        root = _add_region(found, CallPathNode(name, Role.ROOT), _compute_remainder(recording, division), threads)
    for region in division.parts:
        own = {name: recording.values_of(name)[region] for name in VALUES}
        _add_region(found, CallPathNode(recording.regions[region], Role.USER, parent=root), own, threads)
    paths = CallPaths(
        program="",
        run=recording.timestamp or recording.file.name,
        reader="talp",
        processors=tuple(Processor(rank, 0, host) for rank, host in zip(recording.ranks, recording.hosts, strict=True)),
        nodes=tuple(found.nodes),
        wall_s=np.array(found.wall_ns) / 1e9,
        visits=np.array(found.visits) if "numMpiCalls" in recording.values else None,
        counts={name: np.array(values) for name, values in found.counts.items() if np.any(values)},
        actual_s=_find_elapsed(recording, division),
        ranks_expected=_find_expected_ranks(recording),
        notes=build_notes(recording, division, int(threads.max())),
    )
    return paths if recording.sums is None else spread_means(paths, recording.sums)


def _add_region(found: _GrowingNodes, node: CallPathNode, own: Mapping[str, FloatArray], threads: FloatArray) -> int:
    """Add a region with its own times, and below it the time that is not useful."""
    working = (own["usefulTime"] + own["gpuRuntimeTime"]) / threads
    place = found.add_node(node, working, own["numMeasurements"], own)
    for names, title, role, count in _LOST:
        lost = sum((own[name] for name in names), np.zeros_like(working)) / threads
        if lost.any():
            found.add_node(CallPathNode(f"{title} in {node.name}", role, parent=place), lost, own[count], {})
    return place


def _compute_remainder(recording: TalpRecording, division: RegionDivision) -> dict[str, FloatArray]:
    """Return what the regions that are told apart leave of the whole, by TALP's names."""
    parts = list(division.parts)
    left = {
        name: recording.values_of(name)[division.whole] - recording.values_of(name)[parts].sum(axis=0)
        for name in VALUES
    }
    left["numMeasurements"] = recording.values_of("numMeasurements")[division.whole]
    return {name: np.maximum(values, 0.0) for name, values in left.items()}


def count_threads(recording: TalpRecording, division: RegionDivision) -> FloatArray:
    """Return how many threads each rank's times are added up over: 1 unless OpenMP was watched."""
    parallel = ("numOmpParallels", "ompLoadImbalanceTime", "ompSchedulingTime", "ompSerializationTime")
    counted = np.maximum(recording.values_of("numOmpThreads"), recording.values_of("numCpus"))
    most = counted[division.whole] if division.whole >= 0 else counted.max(axis=0)
    watched = any(recording.values_of(name).any() for name in parallel)
    return np.maximum(most, 1.0) if watched else np.ones(len(recording.ranks))


def _find_elapsed(recording: TalpRecording, division: RegionDivision) -> float:
    elapsed = recording.values_of("elapsedTime")
    rows = [division.whole] if division.whole >= 0 else list(division.parts)
    return float(elapsed[rows].sum(axis=0).max()) / 1e9


def _find_expected_ranks(recording: TalpRecording) -> int:
    announced = [int(total.values.get("numMpiRanks", 0)) for total in recording.totals]
    return max(recording.ranks_expected or 0, len(recording.ranks), max(recording.ranks) + 1, *announced)
