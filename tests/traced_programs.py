"""Strategies for traces of programs that synchronize now and then, with messages or threads in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from trace_builder import Line, build

from advisor.trace.events import Kind

if TYPE_CHECKING:
    from advisor.trace.events import Trace


@st.composite
def programs(draw: st.DrawFn) -> Trace:
    """Return a loop of work, messages around a ring of which some arrive an iteration later, and synchronizations."""
    ranks = draw(st.integers(2, 4))
    lines = [Line(rank).enter(0.0, "main").call(0.1, 0.5, "MPI_Init") for rank in range(ranks)]
    now, sizes = 1.0, []
    for turn in range(draw(st.integers(1, 12))):
        late = draw(st.booleans())
        sizes.append(draw(st.sampled_from((8, 100_000))))
        closing = draw(st.sampled_from(("MPI_Barrier", "MPI_Allreduce", "MPI_Bcast", "")))
        name = draw(st.sampled_from(("work", "more")))
        for rank, line in enumerate(lines):
            line.call(now, now + draw(st.floats(0.1, 1.0)), name)
            line.send(now + 1.1, now + 1.2, (rank + 1) % ranks, size=sizes[-1])
            for number, size in enumerate([] if late else sizes):
                begin = now + 1.3 + 0.01 * number
                line.receive(begin, begin + 0.005, (rank - 1) % ranks, size=size)
            if closing:
                line.collective(now + 1.5 + 0.1 * draw(st.floats(0, 1)), now + 1.7, closing, root=0)
        sizes = sizes if late else []
        now += 2.0 + 0.25 * (turn % 2)
    for rank, line in enumerate(lines):
        for number, size in enumerate(sizes):
            line.receive(now + 0.01 * number, now + 0.01 * number + 0.005, (rank - 1) % ranks, size=size)
        line.call(now + 1.0, now + 1.5, "MPI_Finalize").leave(now + 2.0, "main")
    return build(*lines)


@st.composite
def threaded_programs(draw: st.DrawFn) -> Trace:
    """Return processes with two threads: teams that work, some of whose threads end late, and synchronizations."""
    processes = [(Line(rank), Line(rank, 1)) for rank in range(draw(st.integers(1, 3)))]
    for line, worker in processes:
        line.enter(0.0, "main").call(0.1, 0.5, "MPI_Init")
        worker.enter(0.2, "thread")
    for turn in range(draw(st.integers(1, 10))):
        closing = draw(st.sampled_from(("MPI_Barrier", "MPI_Allreduce", "MPI_Bcast", "")))
        late = draw(st.booleans())
        for line, worker in processes:
            now = 1.0 + turn + 0.1 * draw(st.floats(0, 1))
            end, other = now + draw(st.floats(0.1, 0.3)), now + draw(st.floats(0.1, 0.3))
            for each, until in ((line, end), (worker, other)):
                if each is line:
                    each.add(now, Kind.FORK, size=2)
                each.enter(now + 0.01, "parallel").call(now + 0.02, until, "work")
                each.call(until, now + 0.4, "implicit barrier")
                each.leave(now + (0.85 if late and each is worker else 0.4), "parallel")
            line.add(now + 0.41, Kind.JOIN)
            if closing:
                line.collective(now + 0.5 + 0.1 * draw(st.floats(0, 1)), turn + 1.8, closing, root=0)
    for line, worker in processes:
        line.call(20.0, 20.5, "MPI_Finalize").leave(21.0, "main")
        worker.leave(20.9, "thread")
    return build(*(line for each in processes for line in each))
