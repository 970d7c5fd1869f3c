"""The measures give the paper's own tables, and are what a distance has to be."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from yaml_files import read_yaml

from advisor_similarity.measures import (
    build_parallelism_matrix,
    compute_distance,
    matrix_distances,
    select_most_frequent,
    shape_distance,
    tanimoto_distance,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

PAPER: dict[str, Any] = read_yaml(Path(__file__).parents[2] / "reference" / "similarity.yaml")
WORKLOADS = {name: np.array(rows) for name, rows in PAPER["table3"].items()}
PAIRS = tuple(PAPER["table5"])

vectors = arrays(np.float64, 5, elements=st.floats(0, 1e6, allow_subnormal=False).filter(lambda x: x == 0 or x > 1e-6))


def compute_centroid(instructions: npt.ArrayLike, instances: npt.ArrayLike | None = None) -> np.ndarray:
    """The mean parallel instruction (k,) of rows (n, k), each so often; the paper's expressions (5) and (6)."""
    return np.average(np.asarray(instructions, dtype=float), axis=0, weights=instances)


def matrix_distance(first: Mapping[tuple[int, ...], float], second: Mapping[tuple[int, ...], float]) -> float:
    """The parallelism-matrix distance of one pair, cell by cell."""
    cells = first.keys() | second.keys()
    return float(np.sqrt(sum((first.get(cell, 0.0) - second.get(cell, 0.0)) ** 2 for cell in cells) / 2))


def of(workload: str) -> np.ndarray:
    return compute_centroid(WORKLOADS[workload][:, :3], WORKLOADS[workload][:, 3])


def matrix_of(workload: str) -> dict[tuple[int, ...], float]:
    return build_parallelism_matrix(WORKLOADS[workload][:, :3], WORKLOADS[workload][:, 3])


def test_table_2_the_centroid_of_three_parallel_instructions() -> None:
    expected = [float(Fraction(value)) for value in PAPER["table2"]["centroid"]]
    np.testing.assert_allclose(compute_centroid(PAPER["table2"]["instructions"]), expected, rtol=1e-15)


def test_table_4_the_parallelism_matrix() -> None:
    printed = {(memory, fp, integer): share for memory, fp, integer, share in PAPER["table4"]}
    matrix = matrix_of("WL3")
    assert matrix.keys() == printed.keys()
    assert {cell: round(share, 3) for cell, share in matrix.items()} == printed
    assert sum(matrix.values()) == pytest.approx(1)


@pytest.mark.parametrize("pair", PAIRS)
def test_table_5_the_frobenius_norm(pair: str) -> None:
    first, second = pair.split("-")
    assert round(matrix_distance(matrix_of(first), matrix_of(second)), 3) == PAPER["table5"][pair]


@pytest.mark.parametrize("name", WORKLOADS)
def test_table_6_the_centroids(name: str) -> None:
    for found, printed in zip(of(name), PAPER["table6"][name], strict=True):
        last_digit = 10.0 ** -len(str(printed).split(".")[1])
        assert abs(found - printed) < last_digit  # some were cut, some rounded


@pytest.mark.parametrize("pair", PAIRS)
def test_table_7_expression_9(pair: str) -> None:
    first, second = pair.split("-")
    found = float(compute_distance(of(first), of(second)))
    assert round(found, 5) == PAPER["table7"]["recomputed"][pair]
    agrees = abs(found - PAPER["table7"]["printed"][pair]) < 1e-4
    assert agrees is (pair not in PAPER["table7"]["misprints"])


def test_table_7_one_misprint_is_the_square() -> None:
    assert round(float(compute_distance(of("WL1"), of("WL5"))) ** 2, 4) == PAPER["table7"]["printed"]["WL1-WL5"]


@pytest.mark.parametrize(("measure", "name"), [(compute_distance, "expression9"), (tanimoto_distance, "tanimoto")])
def test_table_12_all_pairs_at_once(measure: Callable[[np.ndarray, np.ndarray], np.ndarray], name: str) -> None:
    library = np.array([PAPER["table11"][program] for program in PAPER["table12"]["order"]])
    for row, expected in enumerate(PAPER["table12"][name]):
        np.testing.assert_array_equal(np.round(measure(library[row], library[: row + 1]), 5), expected)


def test_table_12_was_printed_from_the_tanimoto_distance() -> None:
    library = np.array([PAPER["table11"][program] for program in PAPER["table12"]["order"]])
    worst = {"tanimoto": 0.0, "expression9": 0.0}
    for row, printed in enumerate(PAPER["table12"]["printed"]):
        for name, measure in (("tanimoto", tanimoto_distance), ("expression9", compute_distance)):
            apart = np.abs(measure(library[row], library[: row + 1]) - printed).max()
            worst[name] = max(worst[name], float(apart))
    assert worst["tanimoto"] < 0.0015
    assert worst["expression9"] > 0.17


@given(vectors, vectors)
def test_from_identical_to_orthogonal(first: np.ndarray, second: np.ndarray) -> None:
    for measure in (compute_distance, tanimoto_distance, shape_distance):
        assert float(measure(first, first)) == pytest.approx(0, abs=1e-12)
        assert 0 <= float(measure(first, second)) <= 1 + 1e-12
        assert float(measure(first, second)) == pytest.approx(float(measure(second, first)), abs=1e-12)


@given(vectors, st.floats(0.01, 100))
def test_the_shape_does_not_know_the_size(vector: np.ndarray, factor: float) -> None:
    assert float(shape_distance(vector, vector * factor)) == pytest.approx(0, abs=1e-9)


cells = st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.floats(0.01, 1), min_size=1, max_size=9)


@given(cells, st.lists(cells, min_size=1, max_size=5))
def test_a_matrix_against_a_library_is_each_pair(
    first: dict[tuple[int, ...], float], others: list[dict[tuple[int, ...], float]]
) -> None:
    found = matrix_distances(tuple(first.items()), [tuple(other.items()) for other in others])
    np.testing.assert_allclose(found, [matrix_distance(first, other) for other in others], atol=1e-7)
    assert float(matrix_distances(tuple(first.items()), [tuple(first.items())])[0]) == pytest.approx(0, abs=1e-7)


def test_the_rare_cells_of_a_matrix_hardly_count() -> None:
    rng = np.random.default_rng(1)
    shares = [rng.pareto(1.2, 500) for _ in range(2)]
    full = [{(number,): share for number, share in enumerate(one / one.sum())} for one in shares]
    kept = [dict(select_most_frequent(one, 64)) for one in full]
    lost = [sorted(one.values())[-65] * (1 - sum(part.values())) for one, part in zip(full, kept, strict=True)]
    assert abs(matrix_distance(*full) ** 2 - matrix_distance(*kept) ** 2) <= sum(lost)


def test_orthogonal_workloads_are_at_distance_one() -> None:
    first, second = np.array([3.0, 0, 0]), np.array([0, 1.0, 2.0])
    assert [float(measure(first, second)) for measure in (compute_distance, tanimoto_distance, shape_distance)] == [
        1,
        1,
        1,
    ]
    assert matrix_distance({(1, 0): 1.0}, {(0, 1): 1.0}) == pytest.approx(1)
