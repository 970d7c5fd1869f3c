"""Ranks that take turns on too few cores, and loads that look like it and are none."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from advisor_simulation.whatif.traced import core_sharing
from advisor_simulation.whatif.traced.work import Unit

PASSES = 30


def take_turns(work: npt.NDArray[np.float64], cores: int, slice_s: float) -> npt.NDArray[np.float64]:
    """When each rank has done its work, where the ranks take turns of a slice on so many cores."""
    ends = np.zeros(len(work))
    queue = deque(enumerate(work.tolist()))
    free = [0.0] * cores
    while queue:
        rank, left = queue.popleft()
        core = int(np.argmin(free))
        free[core] += min(left, slice_s)
        ends[rank] = free[core]
        if left > slice_s:
            queue.append((rank, left - slice_s))
    return ends


def unit(seconds: npt.NDArray[np.float64]) -> Unit:
    nothing = np.zeros(0, dtype=np.int64)
    codes = np.full(len(seconds), -1)
    return Unit(0, nothing, nothing, seconds, seconds, 0.0, np.zeros(len(seconds)), 0, seconds.shape[1], codes)


def shares(columns: list[npt.NDArray[np.float64]]) -> bool:
    seconds = np.stack(columns, axis=1)
    return core_sharing.are_cores_shared([unit(seconds)], np.zeros(len(seconds), dtype=np.int64))


@pytest.mark.parametrize(("ranks", "cores"), [(5, 2), (7, 3), (8, 4), (9, 2)])
@pytest.mark.parametrize("work_s", [0.001, 0.010])
def test_ranks_that_take_turns_are_seen(ranks: int, cores: int, work_s: float) -> None:
    random = np.random.default_rng(1)
    columns = []
    for _ in range(PASSES):
        order = random.permutation(ranks)
        ends = take_turns(work_s * random.normal(1.0, 0.003, ranks), cores, 0.004)
        columns.append(ends[order])
    assert shares(columns)


@pytest.mark.parametrize("noise", [0.001, 0.02])
def test_uneven_work_is_not_taken_for_turns(noise: float) -> None:
    random = np.random.default_rng(2)
    steady = np.linspace(1.0, 2.0, 8)
    for load in (
        lambda _: steady,
        lambda _: random.uniform(0.5, 1.5, 8),
        lambda number: np.where(np.arange(8) == number % 8, 1.5, 1.0),
        lambda _: np.ones(8),
    ):
        assert not shares([load(number) * random.normal(1.0, noise, 8) for number in range(PASSES)])


def test_ranks_that_write_for_the_others_hide_no_turns() -> None:
    """The last rank of the host computes nothing."""
    random = np.random.default_rng(3)
    columns = [np.r_[take_turns(np.full(8, 0.01), 3, 0.004)[random.permutation(8)], 0.0] for _ in range(PASSES)]
    assert shares(columns)


def test_steps_of_little_work_are_no_turns_where_the_rest_takes_as_long_each_time() -> None:
    """Work that wanders in equal steps: most of the computation shows that nobody waits for a core."""
    random = np.random.default_rng(4)
    ranks = np.arange(6)
    steps = [1.0 + 0.1 * (ranks == number % 6) + 0.2 * (ranks == (number + 2) % 6) for number in range(PASSES)]
    wandering = np.stack(steps, axis=1)
    steady = replace(unit(10.0 * np.ones((6, 1)) * random.normal(1.0, 0.0005, (6, PASSES))), noise=0.0005)
    hosts = np.zeros(6, dtype=np.int64)
    assert core_sharing.are_cores_shared([unit(wandering)], hosts)
    assert not core_sharing.are_cores_shared([unit(wandering), steady], hosts)


@pytest.mark.parametrize("more", [0.1, 0.2])
def test_a_slow_core_beside_wandering_work_is_no_queue(more: float) -> None:
    """One rank is always late by 0.1; another one has more to do in each pass."""
    ranks = np.arange(6)
    assert not shares([1.0 + 0.1 * (ranks == 5) + more * (ranks == number % 5) for number in range(PASSES)])
