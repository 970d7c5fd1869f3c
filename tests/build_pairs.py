"""Pairs of builds whose runs vary by several per cent: one of the two may send more, which no time shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from replay_programs import halo

from advisor.analysis import bounds, gaps
from advisor.model.recommendations import Total
from advisor.model.records import Advice, Grade
from advisor.trace.profile import from_trace
from advisor_simulation.replay import conversion, engine, rebuilding
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.network_demand import build_finding, compute_network_demand
from advisor_simulation.replay.program import Collectives, Op, Program

#: The machine on which the builds run: fast, so that more messages take next to no time.
MACHINE: Final = Network(latency_s=2e-6, bandwidth=1e10)
#: Run times vary by about so much.
NOISE: Final = 0.05
_STEPS: Final = 8
#: What the builds of a pair differ in; nothing for the first two.
KINDS: Final = ("nothing", "work", "reductions", "bytes")


def make_pair(number: int, repeats: int = 2) -> tuple[tuple[Advice, ...], tuple[Advice, ...], bool]:
    """Return the runs of two builds, and whether the second sends more; half of all numbers do."""
    draw = np.random.default_rng(number)
    ranks, size = int(draw.choice([4, 6, 8])), float(draw.choice([512, 4096, 12288]))
    kind = KINDS[number % 4]
    before = [_record(_build_program(draw, ranks, size, "nothing"), f"base-{number}", draw) for _ in range(repeats)]
    after = [_record(_build_program(draw, ranks, size, kind), f"next-{number}", draw) for _ in range(repeats)]
    return tuple(before), tuple(after), kind in ("reductions", "bytes")


def _build_program(draw: np.random.Generator, ranks: int, size: float, kind: str) -> Program:
    """Return a halo exchange: with another reduction in each step, a quarter more bytes, or other work."""
    wider = 1.25 if kind == "bytes" else 1.0
    made = halo(ranks, _STEPS, seed=int(draw.integers(1 << 30)), size=size * wider, work_s=2e-2)
    slower = 1.0 + NOISE * draw.uniform(-1, 1) + (0.01 if kind == "work" else 0.0)
    made = replace(made, value=np.where(made.op == Op.BURST, made.value * slower, made.value))
    return _add_reductions(made) if kind == "reductions" else made


def _add_reductions(some: Program) -> Program:
    """Return the program with a second reduction of 8 bytes behind each."""
    joins = np.flatnonzero(some.op == Op.JOIN)
    again = np.insert(np.arange(len(some.op)), joins + 1, joins)
    second = np.zeros(len(again), dtype=bool)
    second[joins + 1 + np.arange(len(joins))] = True
    joint = len(some.collectives)
    link = some.link[again].copy()
    link[second] += joint
    known = some.collectives
    twice = Collectives(
        np.tile(known.comm, 2), np.tile(known.role, 2), np.tile(known.root, 2), np.tile(known.size, 2), known.name * 2
    )
    return replace(
        some, op=some.op[again], value=some.value[again], link=link, call=some.call[again], region=some.region[again],
        first=some.first + np.searchsorted(joins, some.first), collectives=twice,
    )  # fmt: skip


def _record(some: Program, build: str, draw: np.random.Generator) -> Advice:
    """Return the advice on a run, with no more in it than comparisons look at."""
    plan = engine.prepare_program(some, MACHINE)
    trace = rebuilding.rebuild_trace(some, engine.operation_ends(plan, engine.replay_steps(plan, MACHINE), some))
    profile = replace(from_trace(trace), program="halo", build=build, run=f"{draw.integers(1 << 30)}")
    levels = bounds.compute_bounds(profile, None)
    found = build_finding(profile, compute_network_demand(conversion.convert_trace(trace)))
    return Advice(
        profile, Grade("A", 1.0, ()), levels, gaps.attribute_gaps(profile, levels), (), (found,), (), Total(0.0), (),
        (), "nothing significant",
    )  # fmt: skip
