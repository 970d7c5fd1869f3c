"""How many ranks make progress at a time, told from computations that last longer the more ranks compute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from advisor_simulation.whatif.traced.core_limit import CoreLimit, find_core_limit

RANKS, PIECES = 6, 40


def run_pieces(cores: int, work_s: np.ndarray, gap_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return start and end (ranks, pieces) of pieces of work with gaps before them, on cores that all share evenly."""
    ranks, pieces = work_s.shape
    left, waits, at = work_s[:, 0].copy(), gap_s[:, 0].copy(), np.zeros(ranks, dtype=int)
    start, end, now = np.zeros_like(work_s), np.zeros_like(work_s), 0.0
    start[:, 0] = gap_s[:, 0]
    while (at < pieces).any():
        computing = (waits <= 0) & (at < pieces)
        rate = min(1.0, cores / max(computing.sum(), 1))
        steps = [*(left[computing] / rate), *waits[(waits > 0) & (at < pieces)]]
        step = min(steps)
        now += step
        waits = np.where(waits > 0, waits - step, waits)
        left = np.where(computing, left - step * rate, left)
        begun = (waits <= 1e-12) & ~computing & (at < pieces)
        waits[begun] = 0.0
        start[begun, at[begun]] = now
        for rank in np.flatnonzero(computing & (left <= 1e-12)):
            end[rank, at[rank]] = now
            at[rank] += 1
            if at[rank] < pieces:
                left[rank], waits[rank] = work_s[rank, at[rank]], gap_s[rank, at[rank]]
    return start, end


def limit_of(start: np.ndarray, end: np.ndarray) -> CoreLimit | None:
    ranks, pieces = start.shape
    order = np.arange(ranks * pieces)
    program: Any = SimpleNamespace(end_s=end.ravel())
    made: Any = SimpleNamespace(
        program=program,
        line=np.repeat(np.arange(ranks), pieces),
        seconds=(end - start).ravel(),
        key=order.astype(float),
    )
    unit: Any = SimpleNamespace(at=order, turn=order % pieces)
    return find_core_limit(made, [unit], np.zeros(ranks, dtype=np.int64))


@pytest.mark.parametrize("cores", [2, 3])
def test_equal_work_on_too_few_cores_tells_how_many_there_are(cores: int) -> None:
    random = np.random.default_rng(1)
    work = 0.01 * random.normal(1.0, 0.005, (RANKS, PIECES))
    start, end = run_pieces(cores, work, random.uniform(0.001, 0.02, (RANKS, PIECES)))
    found = limit_of(start, end)
    assert found is not None
    assert (found.cores, found.ranks) == (cores, RANKS)
    assert found.busy_s == pytest.approx(work.sum() / cores, rel=0.1)


@pytest.mark.parametrize("scatter", [0.005, 0.2, 0.5])
def test_work_on_cores_of_its_own_has_no_limit(scatter: float) -> None:
    random = np.random.default_rng(2)
    work = 0.01 * np.maximum(random.normal(1.0, scatter, (RANKS, PIECES)), 0.1)
    assert limit_of(*run_pieces(RANKS, work, random.uniform(0.001, 0.02, (RANKS, PIECES)))) is None


def test_few_ranks_tell_nothing() -> None:
    random = np.random.default_rng(3)
    work = 0.01 * random.normal(1.0, 0.005, (2, PIECES))
    assert limit_of(*run_pieces(1, work, random.uniform(0.001, 0.02, (2, PIECES)))) is None
