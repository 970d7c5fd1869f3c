"""A replayed run as a trace again: for its profile, its bounds and gaps, and its time line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Kind, Location, Role, Trace, TraceRegion
from advisor.trace.regions import classify_region
from advisor_simulation.replay.program import Op, Program
from advisor_simulation.replay.waits import operation_starts

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

_KINDS: Final = {
    Op.SEND: Kind.SEND, Op.ISEND: Kind.ISEND, Op.SENT: Kind.ISEND_DONE, Op.RECV: Kind.RECV, Op.IRECV: Kind.IRECV_POST,
    Op.DONE: Kind.IRECV, Op.JOIN: Kind.COLLECTIVE,
}  # fmt: skip
#: What an operation is called whose recording names no call.
_NAMES: Final = {
    Op.BURST: "computation", Op.FIXED: "fixed time", Op.SEND: "MPI_Send", Op.ISEND: "MPI_Isend", Op.SENT: "MPI_Wait",
    Op.RECV: "MPI_Recv", Op.IRECV: "MPI_Irecv", Op.DONE: "MPI_Wait", Op.JOIN: "MPI_Allreduce",
}  # fmt: skip
_ROOT: Final = "PROGRAM"


def rebuild_trace(program: Program, end_s: FloatArray) -> Trace:
    """Return the events of the run in which each operation ends at ``end_s``: enter, what happened, leave.

    Operations of one call of waiting or exchanging follow each other in one call. Times begin at 0.
    """
    begin = operation_starts(program, end_s)
    regions, number = _build_regions(program)
    merged = _find_continued(program, number, regions)
    happens = np.array([_KINDS.get(op, 0) for op in Op])[program.op]
    opening, closing = ~merged, np.r_[~merged[1:], True][: len(merged)]
    times = np.stack([begin, end_s, end_s], axis=1).ravel()
    kinds = np.stack([np.full(len(begin), Kind.ENTER), happens, np.full(len(begin), Kind.LEAVE)], axis=1).ravel()
    kept = np.stack([opening, happens > 0, closing], axis=1).ravel()
    sent = np.isin(kinds, (Kind.SEND, Kind.ISEND))
    times[sent] = times[np.flatnonzero(sent) - 1]
    at = np.repeat(np.arange(len(begin)), 3)[kept]
    columns = _event_columns(program, at, kinds[kept], number)
    return _add_roots(program, regions, at, times[kept], columns, (begin, end_s))


def _build_regions(program: Program) -> tuple[list[TraceRegion], IntArray]:
    """Return the regions, and the one of each operation: its call, or the region of the program it computes in."""
    names = list(program.names)
    plain = {op: len(names) + at for at, op in enumerate(Op)}
    names += [_NAMES[op] for op in Op]
    known = np.where(program.call >= 0, program.call, program.region)
    number = np.where(known >= 0, known, np.array([plain[op] for op in Op])[program.op])
    regions = [TraceRegion(*classify_region(name)) for name in names]
    return [*regions, TraceRegion(_ROOT, Role.ROOT)], number.astype(np.int64)


def _find_continued(program: Program, number: IntArray, regions: list[TraceRegion]) -> npt.NDArray[np.bool_]:
    """Return whether an operation belongs to the same call as the one before it."""
    role = np.array([region.role for region in regions])[number]
    several = np.isin(role, (Role.WAIT, Role.SENDRECV)) & (program.op >= Op.SEND)
    same: npt.NDArray[np.bool_] = np.r_[False, (number[1:] == number[:-1]) & several[:-1]][: len(number)] & several
    same[program.first[:-1][np.diff(program.first) > 0]] = False
    return same


def _event_columns(program: Program, at: IntArray, kinds: IntArray, number: IntArray) -> dict[str, IntArray]:
    """Return what events say beside their times."""
    link = program.link[at].astype(np.int64)
    nothing = np.full(len(at), -1, dtype=np.int64)
    messages = ~np.isin(kinds, (Kind.ENTER, Kind.LEAVE, Kind.COLLECTIVE))
    joint = kinds == Kind.COLLECTIVE
    region = np.where(np.isin(kinds, (Kind.ENTER, Kind.LEAVE)), number[at], -1)
    partner, size, comm, request = nothing.copy(), nothing.copy(), nothing.copy(), np.zeros(len(at), dtype=np.int64)
    sending = np.isin(kinds, (Kind.SEND, Kind.ISEND))
    of = link[messages]
    partner[messages] = np.where(sending[messages], program.target[of], program.source[of])
    size[messages] = program.sizes[of].astype(np.int64)
    request[messages] = of + 1
    partner[joint] = program.collectives.root[link[joint]]
    comm[joint] = program.collectives.comm[link[joint]]
    size[joint] = (2 * program.collectives.size[link[joint]]).astype(np.int64)
    tag = np.where(messages, link % (1 << 30), -1)
    return {
        "kind": kinds, "region": region, "comm": comm, "partner": partner, "tag": tag, "size": size, "request": request,
    }  # fmt: skip


def _add_roots(
    program: Program,
    regions: list[TraceRegion],
    at: IntArray,
    times: FloatArray,
    columns: dict[str, IntArray],
    edges: tuple[FloatArray, FloatArray],
) -> Trace:
    """Put everything of a rank into one region that begins and ends with it."""
    rank = program.rank[at]
    filled = np.flatnonzero(np.diff(program.first) > 0)
    low, high = program.first[filled], program.first[filled + 1] - 1
    owner = np.r_[filled, rank, filled]
    order = np.argsort(owner, kind="stable")

    def wrap_column(column: IntArray, value: int, after: int) -> IntArray:
        found: IntArray = np.r_[np.full(len(filled), value), column, np.full(len(filled), after)][order]
        return found

    root = len(regions) - 1
    filled_in = {
        name: wrap_column(column, -1, -1) for name, column in columns.items() if name not in ("kind", "region")
    }
    return Trace(
        program=program.title,
        tool="replay",
        locations=tuple(
            Location(f"rank {each}", each, host=_rank_host(program, each)) for each in range(program.ranks)
        ),
        regions=tuple(regions),
        communicators=program.communicators,
        files=(),
        first=np.r_[0, np.cumsum(np.bincount(owner, minlength=program.ranks))].astype(np.int64),
        time_s=np.r_[edges[0][low], times, edges[1][high]][order],
        kind=wrap_column(columns["kind"], Kind.ENTER, Kind.LEAVE).astype(np.uint8),
        region=wrap_column(columns["region"], root, root).astype(np.int32),
        comm=filled_in["comm"].astype(np.int32),
        partner=filled_in["partner"].astype(np.int32),
        tag=filled_in["tag"].astype(np.int32),
        size=filled_in["size"],
        request=np.maximum(filled_in["request"], 0).astype(np.uint64),
    )


def _rank_host(program: Program, rank: int) -> str | None:
    return program.hosts[rank] if rank < len(program.hosts) else None
