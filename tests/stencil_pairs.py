"""Small parallel programs in virtual time, written as traces: pairs that differ in the cause of the same waiting.

Each program is a list of moves for each rank; ``run`` plays them with blocking messages of a constant latency and
meetings of all, and writes what a tracer would have recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trace_builder import NUMBER, Line, build

from advisor.trace.events import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.trace.events import Trace

LATENCY_S = 5e-6
CALL_S = 1e-6
START_S = 0.002


@dataclass(frozen=True)
class Move:
    """What a rank does next: ``work`` for so many seconds, ``send``, ``recv``, ``exchange``, ``swap``, ``meet``."""

    kind: str
    seconds: float = 0.0
    partners: tuple[int, ...] = ()
    region: str = "work"


def work(seconds: float, region: str = "work") -> Move:
    return Move("work", seconds, region=region)


def send(to: int) -> Move:
    return Move("send", partners=(to,))


def receive(source: int) -> Move:
    return Move("recv", partners=(source,))


def exchange(*partners: int) -> Move:
    """Isend and Irecv with all partners, then wait for all."""
    return Move("exchange", partners=partners)


def swap(partner: int) -> Move:
    return Move("swap", partners=(partner,))


def meet(call: str = "MPI_Allreduce") -> Move:
    return Move("meet", region=call)


@dataclass
class _Rank:
    line: Line
    moves: Sequence[Move]
    now: float = 0.0
    at: int = 0
    begun: bool = False
    sent: dict[int, list[float]] = field(default_factory=dict)
    got: dict[int, int] = field(default_factory=dict)


def run(programs: Sequence[Sequence[Move]]) -> Trace:
    """Return the trace of a program: the moves of each rank, after MPI_Init, before MPI_Finalize."""
    ranks = [_Rank(Line(number), moves) for number, moves in enumerate(programs)]
    for rank in ranks:
        rank.line.enter(0.0, "main").call(0.0, START_S, "MPI_Init")
        rank.now = START_S
    while any(rank.at < len(rank.moves) for rank in ranks):
        moved = [_advance(number, ranks) for number in range(len(ranks))]
        assert any(moved) or _meeting(ranks), "the program hangs"
    end = max(rank.now for rank in ranks) + CALL_S
    for rank in ranks:
        rank.line.call(rank.now, end, "MPI_Finalize").leave(end, "main")
    return build(*(rank.line for rank in ranks))


def _advance(number: int, ranks: list[_Rank]) -> bool:
    """Let a rank go on until it has to wait; return whether it did anything."""
    me, done = ranks[number], False
    while me.at < len(me.moves):
        move = me.moves[me.at]
        if move.kind == "work":
            me.line.call(me.now, me.now + move.seconds, move.region)
            me.now += move.seconds
        elif move.kind == "send":
            me.line.send(me.now, me.now + CALL_S, move.partners[0])
            me.sent.setdefault(move.partners[0], []).append(me.now)
            me.now += CALL_S
        elif move.kind == "meet" or not _received(number, ranks, move):
            return done
        me.at, me.begun, done = me.at + 1, False, True
    return done


def _received(number: int, ranks: list[_Rank], move: Move) -> bool:
    """Receive what a move waits for, if all of it was sent; a move that also sends does so first."""
    me = ranks[number]
    if move.kind != "recv" and not me.begun:
        me.begun = True
        _post(me, move)
    known = []
    for partner in move.partners:
        sent, count = ranks[partner].sent.get(number, []), me.got.get(partner, 0)
        if count >= len(sent):
            return False
        known.append(sent[count] + LATENCY_S)
    end = max(*known, me.now + CALL_S)
    for partner in move.partners:
        me.got[partner] = me.got.get(partner, 0) + 1
    if move.kind == "recv":
        me.line.receive(me.now, end, move.partners[0])
    elif move.kind == "swap":
        me.line.add(end, Kind.RECV, NUMBER["MPI_Sendrecv"], 0, move.partners[0], size=8)
        me.line.leave(end, "MPI_Sendrecv")
    else:
        for place, partner in enumerate(move.partners):
            me.line.add(end, Kind.ISEND_DONE, -1, 0, partner, request=2 * place + 2)
            me.line.add(end, Kind.IRECV, -1, 0, partner, size=8, request=2 * place + 1)
        me.line.leave(end, "MPI_Wait")
    me.now = end
    return True


def _post(me: _Rank, move: Move) -> None:
    for place, partner in enumerate(move.partners):
        me.sent.setdefault(partner, []).append(me.now)
        if move.kind == "swap":
            me.line.enter(me.now, "MPI_Sendrecv")
            me.line.add(me.now, Kind.SEND, NUMBER["MPI_Sendrecv"], 0, partner, size=8)
            continue
        for name, kind, request in (
            ("MPI_Irecv", Kind.IRECV_POST, 2 * place + 1),
            ("MPI_Isend", Kind.ISEND, 2 * place + 2),
        ):
            me.line.enter(me.now, name)
            me.line.add(me.now, kind, NUMBER[name], 0, partner, size=8, request=request)
            me.now += CALL_S
            me.line.leave(me.now, name)
    if move.kind == "exchange":
        me.line.enter(me.now, "MPI_Wait")


def _meeting(ranks: list[_Rank]) -> bool:
    """Let all ranks meet, if all wait for it."""
    if any(rank.at == len(rank.moves) or rank.moves[rank.at].kind != "meet" for rank in ranks):
        return False
    end = max(rank.now for rank in ranks) + LATENCY_S
    for rank in ranks:
        rank.line.collective(rank.now, end, rank.moves[rank.at].region)
        rank.now, rank.at = end, rank.at + 1
    return True


def stencil(ranks: int, imbalance: float, style: str, *, reduces: bool, heavy: int = 2, steps: int = 12) -> Trace:
    """Return a one-dimensional stencil in which one rank has ``imbalance`` more work than the others."""
    return run(
        [_stencil_rank(rank, ranks, imbalance * (rank == heavy), style, reduces, steps) for rank in range(ranks)]
    )


def _stencil_rank(rank: int, ranks: int, more: float, style: str, reduces: bool, steps: int) -> list[Move]:
    beside = (rank + 1, rank - 1) if rank % 2 == 0 else (rank - 1, rank + 1)
    near = [other for other in beside if 0 <= other < ranks]
    moves: list[Move] = []
    for _ in range(steps):
        moves.append(work(0.01 * (1.0 + more)))
        if style == "nonblocking":
            moves.append(exchange(*near))
        elif style == "sendrecv":
            moves += [swap(other) for other in near]
        else:
            moves += [move for other in near for move in _in_turn(rank, other)]
        moves += [meet()] if reduces else []
    return moves


def _in_turn(rank: int, other: int) -> list[Move]:
    return [send(other), receive(other)] if rank < other else [receive(other), send(other)]


def late_senders(ranks: int, steps: int = 12) -> Trace:
    """Return a program in which even ranks do independent work before they exchange, odd ones afterwards."""
    programs = []
    for rank in range(ranks):
        near = [other for other in (rank - 1, rank + 1) if 0 <= other < ranks]
        inner = work(0.004)
        step = [inner, exchange(*near), work(0.006)] if rank % 2 == 0 else [exchange(*near), inner, work(0.006)]
        programs.append([work(0.001), *([*step, meet()] * steps)])
    return run(programs)


def pipeline(ranks: int, blocks: int, seconds: float, sweeps: int = 6) -> Trace:
    """Return a pipeline: each block needs what the rank before computed of it; a sweep takes each rank ``seconds``."""
    programs = []
    for rank in range(ranks):
        block = [work(seconds / blocks)]
        before = [receive(rank - 1)] if rank else []
        behind = [send(rank + 1)] if rank < ranks - 1 else []
        programs.append([*([*before, *block, *behind] * blocks), meet()] * sweeps)
    return run(programs)


def idle_master(ranks: int, steps: int = 12) -> Trace:
    """Return a program in which the first rank only waits for the others, which have equal work."""
    return run([[*([work(0.01)] if rank else []), meet()] * steps for rank in range(ranks)])


def wandering(ranks: int, barrier: bool, steps: int = 24) -> Trace:
    """Return a program in which another rank is slow in each step; a barrier ends each, or nothing does."""
    closing = [meet("MPI_Barrier")] if barrier else []
    programs = []
    for rank in range(ranks):
        works = [work(0.015 if step % ranks == rank else 0.01) for step in range(steps)]
        programs.append([move for each in works for move in (each, *closing)])
    return run(programs)
