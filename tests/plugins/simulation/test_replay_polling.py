"""Processes that ask again and again whether a message is there wait for it, however early it comes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import program_changes
import pytest
from trace_builder import Line, build

from advisor_simulation.replay.conversion import convert_trace
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Op

if TYPE_CHECKING:
    from advisor_simulation.replay.program import Program

#: The worker computes for two seconds before it sends; the master looks for the message from the first one on.
WORKER = Line(1).enter(0.0, "main").call(0.0, 2.0, "work").send(2.0, 2.1, to=0).leave(2.1, "main")


def answer(*polls: tuple[float, float]) -> Program:
    """Return the program of a master that polls at these times, and of its worker."""
    master = Line(0).enter(0.0, "main").call(0.0, 1.0, "work")
    for begin, end in polls:
        master.call(begin, end, "MPI_Probe")
    return convert_trace(build(master.receive(2.2, 2.3, source=1).leave(2.3, "main"), WORKER))


def hurry(program: Program) -> float:
    """Return the seconds of the recorded run in which the worker computes half as long."""
    factor = np.where((program.op == Op.BURST) & (program.rank == 1), 0.5, 1.0)
    return program_changes.replay_time_s(program_changes.scale_computation(program, factor), None)


@pytest.mark.parametrize("polls", [((1.0, 2.2),), ((1.0, 1.4), (1.41, 1.8), (1.82, 2.2))])
def test_who_polls_waits_as_who_receives(polls: tuple[tuple[float, float], ...]) -> None:
    program = answer(*polls)
    assert program_changes.replay_time_s(program, None) == pytest.approx(2.3)
    between = sum(later[0] - before[1] for before, later in pairwise(polls))
    assert hurry(program) == pytest.approx(1.3 + between, abs=0.1)


def test_work_between_polls_is_done_whenever_the_message_comes() -> None:
    program = answer((1.0, 1.01), (1.6, 1.61), (2.19, 2.2))
    assert hurry(program) == pytest.approx(2.3, abs=0.1)


def test_polls_that_are_followed_by_no_receive_take_their_time() -> None:
    lonely = convert_trace(build(Line(0).enter(0.0, "main").call(0.0, 1.0, "MPI_Probe").leave(1.0, "main"), WORKER))
    assert lonely.value[(lonely.rank == 0) & (lonely.op == Op.FIXED)].sum() == pytest.approx(1.0)
    assert program_changes.replay_time_s(lonely, Network(1e-5, 1e9)) >= 2.0
