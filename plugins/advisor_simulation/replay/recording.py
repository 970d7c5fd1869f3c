"""The steps of a program with the recorded times of its calls: replayed as they are, they give the recorded run.

A receive that began before its send lasts until so long after the send as recorded; one whose message was there takes
its own time. A collective operation ends as long after the last arrival (of a broadcast: after the root's) as
recorded; who left earlier took its own time. So computation can be changed while the network stays the recorded one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import UsageError
from advisor.trace.events import Role
from advisor_simulation.replay.program import POSTING, RECEIVED, SENDING, Op, Program
from advisor_simulation.replay.steps import Step, StepLayout, Steps, computation_ratios

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.network import Network

#: Every operation has this many steps: what it tells others, its own time, what it waits for.
_PARTS = 3


def build_recorded_steps(program: Program, network: Network | None = None) -> Steps:
    """Return the steps of the recorded run; raises ``UsageError`` where the recording holds no times."""
    if program.end_s is None or program.start_s is None:
        raise UsageError("the recording holds no times of calls; name a latency and a bandwidth")
    ends = program.end_s
    starts = np.r_[0.0, ends[:-1]]
    starts[program.first[:-1][np.diff(program.first) > 0]] = program.start_s[np.diff(program.first) > 0]
    lowering = StepLayout.from_counts(program, np.full(len(program.op), _PARTS, dtype=np.int64))
    kind, value, condition = lowering.empty_columns()
    kind[:] = Step.FIXED
    tell, own, wait = (np.arange(len(program.op)) * _PARTS + part for part in range(_PARTS))
    value[own] = np.where(program.op <= Op.FIXED, program.value, ends - starts)
    bursts = np.flatnonzero(program.op == Op.BURST)
    value[own[bursts]] *= 1.0 if network is None else computation_ratios(program, network, bursts)
    kind[own[program.op == Op.BURST]] = Step.BURST
    told, awaited = _find_conditions(program)
    noting = np.flatnonzero(told >= 0)
    kind[tell[noting]] = np.where(program.op[noting] == Op.JOIN, Step.ARRIVE, Step.NOTE)
    condition[tell[noting]] = told[noting]
    begun = _fulfilment_times(program, starts, told)
    waits = np.flatnonzero(awaited >= 0)
    waits = waits[(begun[awaited[waits]] > starts[waits]) & (begun[awaited[waits]] <= ends[waits])]
    value[own[waits]] = 0.0
    kind[wait[waits]], condition[wait[waits]] = Step.AFTER, awaited[waits]
    value[wait[waits]] = ends[waits] - begun[awaited[waits]]
    members = np.array([len(group) for group in program.communicators] or [0])
    needed = members[program.collectives.comm]
    needed[(program.collectives.role == Role.ONE_TO_ALL) & (program.collectives.root >= 0)] = 1
    return Steps(
        lowering.rank_starts(), kind, value, condition, lowering.last_steps(), len(program.source),
        needed.astype(np.int32),
        np.zeros((0, 2)), np.zeros(0, dtype=bool), program.start_s,
    )  # fmt: skip


def _find_conditions(program: Program) -> tuple[IntArray, IntArray]:
    """Return of each operation the condition that it fulfils when it begins, and the one it may wait for; -1 none."""
    op, link = program.op, program.link.astype(np.int64)
    told, awaited = np.full(len(op), -1, dtype=np.int64), np.full(len(op), -1, dtype=np.int64)
    joins = np.flatnonzero(op == Op.JOIN)
    told[np.isin(op, SENDING)] = 2 * link[np.isin(op, SENDING)]
    told[np.isin(op, POSTING)] = 2 * link[np.isin(op, POSTING)] + 1
    awaited[np.isin(op, RECEIVED)] = 2 * link[np.isin(op, RECEIVED)]
    awaited[op == Op.SEND] = 2 * link[op == Op.SEND] + 1
    root, role = program.collectives.root[link[joins]], program.collectives.role[link[joins]]
    is_root = program.rank[joins] == root
    number = 2 * len(program.source) + link[joins]
    told[joins] = np.where((role == Role.ONE_TO_ALL) & (root >= 0) & ~is_root, -1, number)
    awaited[joins] = np.where((role == Role.ALL_TO_ONE) & (root >= 0) & ~is_root, -1, number)
    return told, awaited


def _fulfilment_times(program: Program, starts: FloatArray, told: IntArray) -> FloatArray:
    """Return when each condition was fulfilled."""
    count = 2 * len(program.source) + len(program.collectives)
    found = np.full(count, -np.inf)
    known = told >= 0
    np.maximum.at(found, told[known], starts[known])
    return found
