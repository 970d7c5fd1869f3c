"""Who gets which index of a loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_simulation.mds.scheduling import assign_indices, migrate_subdomains
from advisor_simulation.model.decompose import compute_owners

POLICIES = ("static", "chunk", "dynamic", "guided", "self", "affinity")


@pytest.mark.parametrize("policy", POLICIES)
@given(
    weights=st.lists(st.floats(0, 100), min_size=1, max_size=60), processors=st.integers(1, 7), chunk=st.integers(1, 9)
)
def test_every_index_has_one_processor(policy: str, weights: list[float], processors: int, chunk: int) -> None:
    owner = compute_owners("block", len(weights), processors)
    done = assign_indices(policy, np.array(weights), owner, np.zeros(processors), chunk)
    assert done.owner.shape == (len(weights),)
    assert done.owner.min() >= 0
    assert done.owner.max() < processors


@given(weights=st.lists(st.floats(0.1, 100), min_size=1, max_size=60), processors=st.integers(1, 7))
def test_self_scheduling_is_within_the_bound_of_list_scheduling(weights: list[float], processors: int) -> None:
    """Graham (1969): whoever is free first takes the next: at most mean + the largest one."""
    weight = np.array(weights)
    done = assign_indices("self", weight, compute_owners("block", len(weight), processors), np.zeros(processors))
    load = np.bincount(done.owner, weight, minlength=processors)
    assert load.max() <= weight.sum() / processors + weight.max() + 1e-9


def test_pieces() -> None:
    weight, start = np.ones(16), np.zeros(4)
    owner = compute_owners("block", 16, 4)
    assert assign_indices("chunk", weight, owner, start, 2).owner.tolist() == [0, 0, 1, 1, 2, 2, 3, 3] * 2
    assert assign_indices("dynamic", weight, owner, start, 4).pieces.tolist() == [1, 1, 1, 1]
    assert assign_indices("guided", weight, owner, start).pieces.sum() == 8  # 4 3 3 2 1 1 1 1
    assert assign_indices("affinity", weight, owner, start).owner.tolist() == owner.tolist()


def test_affinity_helps_who_has_most_left() -> None:
    weight = np.r_[np.full(8, 10.0), np.ones(8)]
    owner = compute_owners("block", 16, 2)
    done = assign_indices("affinity", weight, owner, np.zeros(2))
    load = np.bincount(done.owner, weight)
    assert load.max() < 60
    assert (done.owner[8:] == 1).all()


def test_blocks_follow_the_formula_of_the_source() -> None:
    owner = compute_owners("block", 10, 4)
    assert [int((owner == k).sum()) for k in range(4)] == [(k + 1) * 10 // 4 - k * 10 // 4 for k in range(4)]


@given(count=st.integers(1, 30), share=st.floats(0, 1))
def test_migration_is_a_permutation(count: int, share: float) -> None:
    place = migrate_subdomains(count, share, np.random.default_rng(1))
    assert sorted(place) == list(range(count))
