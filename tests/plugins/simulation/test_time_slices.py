"""Ranks that take turns in slices of time on too few cores, told by when equal computations end."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
from lab.archive import write_archive
from lab.engine import Machine
from lab.exchanges import Exchange
from lab.loads import Load
from lab.world import Code, Noise, run

from advisor import pipeline
from advisor.extension import host
from advisor_simulation.whatif.traced.time_slices import compute_ends

if TYPE_CHECKING:
    from advisor.model.records import Advice


def take_turns(ranks: int, cores: int, slice_s: float, work_s: float) -> list[float]:
    """The slow way: who is free takes the next of the queue for a slice, and who is not done queues again."""
    queue = deque((0.0, work_s) for _ in range(ranks))
    free, ends = [0.0] * cores, list[float]()
    while queue:
        ready, left = queue.popleft()
        core = int(np.argmin(free))
        free[core] = max(free[core], ready) + min(left, slice_s)
        if left > slice_s + 1e-12:
            queue.append((free[core], left - slice_s))
        else:
            ends.append(free[core])
    return sorted(ends)


@settings(deadline=None)
@given(ranks=st.integers(2, 24), cores=st.integers(1, 12), work_s=st.floats(0.0005, 0.06))
def test_ends_are_those_of_turns_one_after_the_other(ranks: int, cores: int, work_s: float) -> None:
    if cores >= ranks:
        return
    found = compute_ends(ranks, np.array([cores]), np.array([0.004]), np.array([work_s]))[:, 0]
    assert found == pytest.approx(take_turns(ranks, cores, 0.004, work_s), abs=1e-9)
    assert found[-1] >= ranks * work_s / cores - 1e-9


def advise(code: Code, folder: Path) -> Advice:
    """The advice on a program."""
    each = code.machine.ranks_per_host
    log = run(code, record=True).log
    trace = write_archive(folder / "run", log, ranks=code.ranks, threads=1, ranks_per_host=each, sources=code.sources())
    return pipeline.advise([trace], pipeline.Options(), host.load_plugins())


SWEEP = Exchange(name="update_cells", work_s=0.02007, close="MPI_Allreduce", boundary=1.0, dimensions=1)
ON_TWO = Code(1, "stencil", 5, 20, (SWEEP,), machine=Machine(ranks_per_host=5, cores=2), noise=Noise(jitter=0.0005))


def test_turns_are_no_uneven_work(tmp_path: Path) -> None:
    """One rank ends a slice behind the others, another one in each step: as if work wandered."""
    advice = advise(ON_TWO, tmp_path)
    shared = next(one for one in advice.findings if one.kind == "shared cores")
    assert shared.measures == {"cores": 2, "ranks": 5}
    assert [one.action for one in advice.recommendations] == ["G-24"]
    fewer = run(replace(ON_TWO, ranks=2, machine=Machine(ranks_per_host=2), phases=(replace(SWEEP, work_s=0.050175),)))
    won_s = run(ON_TWO).wall_s - fewer.wall_s
    assert advice.recommendations[0].expected_s == pytest.approx(won_s, rel=0.1)


def test_one_rank_too_many_is_no_uneven_work(tmp_path: Path) -> None:
    """Only one rank is queued at a time, too few ends for a queue to be told: the last slices tell the four cores."""
    phase = replace(SWEEP, work_s=0.0304)
    advice = advise(
        replace(ON_TWO, iterations=30, machine=Machine(ranks_per_host=5, cores=4), phases=(phase,)), tmp_path
    )
    shared = next(one for one in advice.findings if one.kind == "shared cores")
    assert shared.measures == {"cores": 4, "ranks": 5}
    assert not advice.recommendations


@pytest.mark.parametrize("kind", ["heavy", "linear", "wandering"])
def test_uneven_work_on_cores_enough_is_no_turns(kind: str, tmp_path: Path) -> None:
    uneven = replace(SWEEP, load=Load(kind, 0.2, 3))
    advice = advise(replace(ON_TWO, machine=Machine(ranks_per_host=5), phases=(uneven,)), tmp_path)
    assert not [one for one in advice.findings if one.kind == "shared cores"]
    assert advice.recommendations[0].action in ("A-28", "A-29", "A-38")
