"""Small traces written by hand: one list of moves per location, times in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from advisor.trace.events import Kind, Location, Role, Trace, TraceRegion

REGIONS = (
    TraceRegion("main", Role.USER),
    TraceRegion("work", Role.USER, "solver.c", 10),
    TraceRegion("more", Role.USER, "solver.c", 20),
    TraceRegion("MPI_Init", Role.INIT),
    TraceRegion("MPI_Finalize", Role.FINALIZE),
    TraceRegion("MPI_Barrier", Role.BARRIER),
    TraceRegion("MPI_Allreduce", Role.ALL_TO_ALL),
    TraceRegion("MPI_Bcast", Role.ONE_TO_ALL),
    TraceRegion("MPI_Reduce", Role.ALL_TO_ONE),
    TraceRegion("MPI_Scan", Role.SCAN),
    TraceRegion("MPI_Send", Role.SEND),
    TraceRegion("MPI_Recv", Role.RECV),
    TraceRegion("MPI_Sendrecv", Role.SENDRECV),
    TraceRegion("MPI_Isend", Role.POST),
    TraceRegion("MPI_Irecv", Role.POST),
    TraceRegion("MPI_Wait", Role.WAIT),
    TraceRegion("write", Role.IO),
    TraceRegion("parallel", Role.OMP_PARALLEL),
    TraceRegion("implicit barrier", Role.OMP_BARRIER),
    TraceRegion("flush", Role.TOOL),
    TraceRegion("thread", Role.ROOT),
    TraceRegion("MPI_Probe", Role.WAIT),
    TraceRegion("MPI_Iprobe", Role.WAIT),
)
NUMBER = {region.name: number for number, region in enumerate(REGIONS)}


@dataclass
class Line:
    """The events of one location, written in the order of time."""

    rank: int
    thread: int = 0
    rows: list[tuple[float, int, int, int, int, int, int, int]] = field(default_factory=list)

    def add(self, time: float, kind: Kind, region: int = -1, comm: int = -1, partner: int = -1, **more: int) -> Line:
        row = (time, kind, region, comm, partner, more.get("tag", 0), more.get("size", -1), more.get("request", 0))
        self.rows.append(row)
        return self

    def enter(self, time: float, name: str) -> Line:
        return self.add(time, Kind.ENTER, NUMBER[name])

    def leave(self, time: float, name: str) -> Line:
        return self.add(time, Kind.LEAVE, NUMBER[name])

    def call(self, start: float, end: float, name: str) -> Line:
        return self.enter(start, name).leave(end, name)

    def collective(self, start: float, end: float, name: str, root: int = -1, comm: int = 0) -> Line:
        self.enter(start, name).add(end, Kind.COLLECTIVE, NUMBER[name], comm, root, size=8)
        return self.leave(end, name)

    def send(self, start: float, end: float, to: int, size: int = 8, tag: int = 0) -> Line:
        self.enter(start, "MPI_Send").add(start, Kind.SEND, NUMBER["MPI_Send"], 0, to, tag=tag, size=size)
        return self.leave(end, "MPI_Send")

    def receive(self, start: float, end: float, source: int, size: int = 8, tag: int = 0) -> Line:
        self.enter(start, "MPI_Recv").add(end, Kind.RECV, NUMBER["MPI_Recv"], 0, source, tag=tag, size=size)
        return self.leave(end, "MPI_Recv")


def build(*lines: Line, communicators: tuple[tuple[int, ...], ...] | None = None, files: tuple[str, ...] = ()) -> Trace:
    rows = [row for line in lines for row in line.rows]
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in range(8)]
    ranks = tuple(sorted({line.rank for line in lines}))
    return Trace(
        program="sample",
        tool="by hand",
        locations=tuple(Location(f"{line.rank}.{line.thread}", line.rank, line.thread) for line in lines),
        regions=REGIONS,
        communicators=communicators or (ranks,),
        files=files,
        first=np.cumsum([0, *(len(line.rows) for line in lines)]),
        time_s=np.array(columns[0], dtype=np.float64),
        kind=np.array(columns[1], dtype=np.uint8),
        region=np.array(columns[2], dtype=np.int32),
        comm=np.array(columns[3], dtype=np.int32),
        partner=np.array(columns[4], dtype=np.int32),
        tag=np.array(columns[5], dtype=np.int32),
        size=np.array(columns[6], dtype=np.int64),
        request=np.array(columns[7], dtype=np.uint64),
    )
