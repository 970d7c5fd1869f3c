"""A program that is changed before it is replayed: other computation, and operations that are gone.

With ``outcome.replay`` (on a network) and ``outcome.recorded`` (the recorded times of calls) this says what a change
of the program would do to its run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import UsageError
from advisor_simulation.replay import engine, recording
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Op, Program

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray


def scale_computation(program: Program, factors: FloatArray) -> Program:
    """Return the program whose computation takes ``factors`` times as long.

    ``factors`` are those of the operations (operations,), or of ranks and regions (ranks, names + 1), the last column
    for computation in no region. What is no computation keeps its time, but for fixed times under factors of
    operations. Raises ``UsageError`` for another shape, and for factors that are negative or not finite.
    """
    if not np.isfinite(factors).all() or (factors < 0).any():
        raise UsageError("factors on computation must be numbers from 0 on")
    if factors.shape == program.op.shape:
        return replace(program, value=np.where(program.op <= Op.FIXED, program.value * factors, program.value))
    if factors.shape != (program.ranks, len(program.names) + 1):
        raise UsageError("factors on computation are needed per operation, or per rank and region")
    bursts = np.flatnonzero(program.op == Op.BURST)
    value = program.value.copy()
    value[bursts] *= factors[program.rank[bursts], program.region[bursts]]
    return replace(program, value=value)


def drop_operations(program: Program, gone: npt.NDArray[np.bool_]) -> Program:
    """Return the program without some operations (operations,), which then take no time and wait for nobody.

    With an operation its whole message or collective operation goes: a message is not sent where it is not received.
    """
    op, link, value = program.op.copy(), program.link.copy(), program.value.copy()
    for joint, count in ((True, len(program.collectives)), (False, len(program.source))):
        of_kind = ((op == Op.JOIN) == joint) & (link >= 0)
        lost = np.zeros(count, dtype=bool)
        lost[link[of_kind & gone]] = True
        of_kind[of_kind] = lost[link[of_kind]]
        gone = gone | of_kind
    op[gone], link[gone], value[gone] = Op.FIXED, -1, 0.0
    return replace(program, op=op, link=link, value=value)


def replay_time_s(program: Program, network: Network | None = None) -> float:
    """Return how long the program takes on ``network``, with the recorded times of calls where that is None, seconds.

    The quick way where nothing but the run time is wanted; raises ``DeadlockError``, and ``UsageError`` where no times
    were recorded.
    """
    if network is None:
        return engine.replay_steps(
            engine.order_steps(recording.build_recorded_steps(program), program), Network(), keep=False
        ).time_s
    return engine.replay_steps(engine.prepare_program(program, network), network, keep=False).time_s
