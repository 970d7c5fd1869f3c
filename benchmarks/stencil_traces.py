"""Traces of a stencil code on any number of ranks, in virtual time, with clocks that are known to be wrong.

Each step computes, exchanges halos with the four neighbours of a torus and reduces a residual; every fourth step ends
with an all-to-all. A quarter of the ranks computes ``IMBALANCE`` more than the others. Every node has a clock of its
own, and what it is off by is returned beside the trace.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.trace.events import COLUMNS, Kind, Location, Role, Trace, TraceRegion

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import otf2_archives as archives
from otf2_writer import EVENTS, NONE_32

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

REGIONS: Final = (
    TraceRegion("main", Role.USER, "stencil.c", 10),
    TraceRegion("compute", Role.USER, "stencil.c", 40),
    TraceRegion("MPI_Init", Role.INIT),
    TraceRegion("MPI_Isend", Role.POST),
    TraceRegion("MPI_Irecv", Role.POST),
    TraceRegion("MPI_Waitall", Role.WAIT),
    TraceRegion("MPI_Allreduce", Role.ALL_TO_ALL),
    TraceRegion("MPI_Alltoall", Role.ALL_TO_ALL),
    TraceRegion("MPI_Finalize", Role.FINALIZE),
)
MAIN, COMPUTE, INIT, ISEND, IRECV, WAITALL, ALLREDUCE, ALLTOALL, FINALIZE = range(len(REGIONS))
#: Seconds of computation in a run, its deviation in a step, and how much more a quarter of the ranks computes.
WORK_S, NOISE, IMBALANCE = 1.0, 0.02, 0.3
LATENCY_S, CALL_S, HALO_BYTES = 2e-6, 1e-6, 8192
#: Events of a rank in a step, and after how many steps an all-to-all follows.
STEP_EVENTS: Final = 2 + 4 * 3 + 4 * 3 + 10 + 3
STEPS_TO_ALL: Final = 4


@dataclass(frozen=True, slots=True)
class NodeClocks:
    """How far the clock of each rank is off, (ranks,) each.

    Recorded time = time x (1 + ``drift``) + ``offset_s`` + ``origin_s``, which is the same for all.
    """

    offset_s: FloatArray
    drift: FloatArray
    origin_s: float


@dataclass(slots=True)
class _Events:
    """Rows of all ranks at once: each list entry is a column over the ranks."""

    time_s: list[FloatArray]
    rows: list[tuple[int, int, int, int, int, int]]
    partners: list[npt.NDArray[np.int32]]

    def add(self, time_s: FloatArray, kind: Kind, region: int = -1, partner: object = -1, **more: int) -> None:
        comm = 0 if kind in (Kind.ISEND, Kind.IRECV, Kind.COLLECTIVE) else -1
        self.time_s.append(time_s)
        self.rows.append((kind, region, comm, more.get("tag", 0), more.get("size", -1), more.get("request", 0)))
        self.partners.append(np.broadcast_to(np.asarray(partner, dtype=np.int32), time_s.shape))


def write_stencil(path: Path, trace: Trace, ranks_per_node: int = 64) -> None:
    """Write a trace of ``stencil`` as an OTF2 archive into the directory ``path``."""
    kinds = {
        Kind.ENTER: "enter", Kind.LEAVE: "leave", Kind.ISEND: "mpi_isend", Kind.ISEND_DONE: "mpi_isend_complete",
        Kind.IRECV_POST: "mpi_irecv_request", Kind.IRECV: "mpi_irecv", Kind.COLLECTIVE: "mpi_collective_end",
    }  # fmt: skip
    number = np.zeros(256, dtype=np.uint8)
    number[list(kinds)] = [EVENTS[name][0] for name in kinds.values()]
    with archives.Archive(path, ranks=trace.ranks, ranks_per_node=ranks_per_node) as archive:
        regions = [
            archive.region(r.name, archives.MPI if r.name.startswith("MPI") else archives.USER) for r in trace.regions
        ]
        for rank in range(trace.ranks):
            mine = slice(int(trace.first[rank]), int(trace.first[rank + 1]))
            ticks = np.rint(trace.time_s[mine] * 1e9).astype(np.uint64)
            columns = _fields(trace, mine, np.array(regions))
            archive.events(rank).given = archives.Columns(ticks, number[trace.kind[mine]], columns)


def _fields(trace: Trace, mine: slice[int, int, None], regions: IntArray) -> npt.NDArray[np.uint64]:
    """Return the fields of some events (events, 6), in the order of their kinds."""
    kinds, size = trace.kind[mine], trace.size[mine]
    nobody = np.full(len(kinds), NONE_32)
    moved = np.maximum(size, 0) // 2
    region, comm, request = regions[np.maximum(trace.region[mine], 0)], trace.comm[mine], trace.request[mine]
    message = (trace.partner[mine], comm, trace.tag[mine], size, request)
    by_kind: dict[Kind, tuple[npt.NDArray[Any], ...]] = {
        Kind.ENTER: (region,), Kind.LEAVE: (region,), Kind.ISEND: message, Kind.IRECV: message,
        Kind.ISEND_DONE: (request,), Kind.IRECV_POST: (request,),
        Kind.COLLECTIVE: (np.full(len(kinds), archives.ALLREDUCE), comm, nobody, moved, moved),
    }  # fmt: skip
    fields = np.zeros((len(kinds), 6), dtype=np.uint64)
    for kind, columns in by_kind.items():
        chosen = np.flatnonzero(kinds == kind)
        for place, column in enumerate(columns):
            fields[chosen, place] = column[chosen]
    return fields


def stencil(
    ranks: int, events: int, *, ranks_per_node: int = 64, offset_s: float = 1e-4, drift: float = 2e-6, seed: int = 1
) -> tuple[Trace, NodeClocks]:
    """Return a trace of about ``events`` events on ``ranks`` ranks, and how far the clocks in it are off.

    The nodes' clocks differ from that of the first node by up to ``offset_s`` seconds and ``drift``.
    """
    generator = np.random.default_rng(seed)
    steps = max(round(events / ranks / STEP_EVENTS), 1)
    side = max(each for each in range(1, math.isqrt(ranks) + 1) if ranks % each == 0)
    place = np.arange(ranks).reshape(side, -1)
    neighbours = [np.roll(place, shift, axis).ravel() for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1))]
    opposite = (1, 0, 3, 2)
    work_s = WORK_S / steps * np.where(np.arange(ranks) >= ranks - ranks // 4, 1 + IMBALANCE, 1.0)
    log = _Events([], [], [])
    now = np.zeros(ranks)
    log.add(now, Kind.ENTER, MAIN)
    log.add(now + CALL_S, Kind.ENTER, INIT)
    now = np.full(ranks, 0.01) + CALL_S * generator.random(ranks)
    log.add(now, Kind.LEAVE, INIT)
    for step in range(steps):
        log.add(now + CALL_S, Kind.ENTER, COMPUTE)
        now = now + work_s * (1 + NOISE * generator.standard_normal(ranks))
        log.add(now, Kind.LEAVE, COMPUTE)
        sent = []
        for direction, partner in enumerate(neighbours):
            log.add(now + 0.1 * CALL_S, Kind.ENTER, ISEND)
            sent.append(now + 0.1 * CALL_S)
            log.add(now + 0.5 * CALL_S, Kind.ISEND, ISEND, partner, tag=direction, size=HALO_BYTES, request=direction)
            now = now + CALL_S
            log.add(now, Kind.LEAVE, ISEND)
        for direction in range(4):
            log.add(now + 0.1 * CALL_S, Kind.ENTER, IRECV)
            log.add(now + 0.5 * CALL_S, Kind.IRECV_POST, IRECV, request=4 + direction)
            now = now + CALL_S
            log.add(now, Kind.LEAVE, IRECV)
        log.add(now + 0.1 * CALL_S, Kind.ENTER, WAITALL)
        arrived = [sent[opposite[d]][partner] + LATENCY_S for d, partner in enumerate(neighbours)]
        end = np.maximum.reduce([now + CALL_S, *arrived])
        for direction, partner in enumerate(neighbours):
            log.add(end, Kind.ISEND_DONE, request=direction)
            tag = opposite[direction]
            log.add(end, Kind.IRECV, -1, partner, tag=tag, size=HALO_BYTES, request=4 + direction)
        now = end + 0.1 * CALL_S
        log.add(now, Kind.LEAVE, WAITALL)
        now = _collective(log, now, ALLREDUCE, 16, 5e-6, generator)
        if step % STEPS_TO_ALL == STEPS_TO_ALL - 1:
            now = _collective(log, now, ALLTOALL, 64 * ranks, 20e-6, generator)
    log.add(now + CALL_S, Kind.ENTER, FINALIZE)
    now = np.full(ranks, now.max() + 1e-4)
    log.add(now, Kind.LEAVE, FINALIZE)
    log.add(now + CALL_S, Kind.LEAVE, MAIN)
    return _trace(log, ranks, ranks_per_node, offset_s, drift, generator)


def _collective(
    log: _Events, now: FloatArray, region: int, size: int, cost_s: float, generator: np.random.Generator
) -> FloatArray:
    """Let all ranks enter a collective at ``now`` and return when they leave it."""
    log.add(now + 0.1 * CALL_S, Kind.ENTER, region)
    end = now.max() + cost_s * (1 + 0.2 * generator.random(len(now)))
    log.add(end, Kind.COLLECTIVE, region, size=size)
    log.add(end + 0.1 * CALL_S, Kind.LEAVE, region)
    return end + 0.1 * CALL_S


def _trace(
    log: _Events, ranks: int, ranks_per_node: int, offset_s: float, drift: float, generator: np.random.Generator
) -> tuple[Trace, NodeClocks]:
    node = np.arange(ranks) // ranks_per_node
    offsets, drifts = (generator.uniform(-size, size, int(node[-1]) + 1) for size in (offset_s, drift))
    offsets[0] = drifts[0] = 0.0
    clock = NodeClocks(offsets[node], drifts[node], max(offset_s, 0.0))
    time_s = np.stack(log.time_s, axis=1)
    time_s = time_s * (1 + clock.drift[:, None]) + clock.offset_s[:, None] + clock.origin_s
    count = len(log.rows)
    names = ("kind", "region", "comm", "tag", "size", "request")
    columns: dict[str, Any] = {
        name: np.tile(np.array(column, dtype=COLUMNS[name]), ranks)
        for name, column in zip(names, zip(*log.rows, strict=True), strict=True)
    }
    return Trace(
        program="stencil",
        tool="benchmark",
        locations=tuple(Location(f"rank {rank}", rank, 0, f"node{node[rank]}") for rank in range(ranks)),
        regions=REGIONS,
        communicators=(tuple(range(ranks)),),
        files=(),
        first=np.arange(ranks + 1, dtype=np.int64) * count,
        time_s=np.rint(time_s.ravel() * 1e9) / 1e9,
        partner=np.stack(log.partners, axis=1).ravel(),
        **columns,
    ), clock
