"""How far two workloads are from each other: 0 identical, 1 orthogonal.

Everything works on one pair and, by broadcasting, on one workload against a library of thousands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray

Matrix = dict[tuple[int, ...], float]
#: Cells of a parallelism matrix and their shares.
Cells = tuple[tuple[tuple[int, ...], float], ...]


def compute_distance(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the paper's expression (9) along the last axis: ``d(u, v) / d(Cmax, 0)``.

    The paper calls it similarity; it is 0 for equal centroids and 1 for orthogonal ones. Two that are both zero are
    equal. The arguments broadcast: (k,) against (n, k) gives (n,).
    """
    apart = np.sqrt(((first - second) ** 2).sum(axis=-1))
    largest = np.sqrt((np.maximum(first, second) ** 2).sum(axis=-1))
    return _divide_safely(apart, largest)


def tanimoto_distance(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the Tanimoto distance along the last axis: ``|u-v|^2 / (u.u + v.v - u.v)``.

    It is what the paper's Table 12 really holds, in all of its 28 cells, although the text names expression (9).
    """
    apart = ((first - second) ** 2).sum(axis=-1)
    common = (first**2).sum(axis=-1) + (second**2).sum(axis=-1) - (first * second).sum(axis=-1)
    return _divide_safely(apart, common)


def shape_distance(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return expression (9) of the mixes: each centroid divided by its length, so that only proportions count.

    Own: average parallelism grows with the problem in some programs (matrix multiplication), their mix does not.
    """
    return compute_distance(unit_vectors(first), unit_vectors(second))


def build_parallelism_matrix(instructions: npt.ArrayLike, instances: npt.ArrayLike) -> Matrix:
    """Return the share of each distinct parallel instruction; the shares sum to 1 (Bradley and Larson)."""
    rows = np.asarray(instructions, dtype=np.int64)
    counts = np.asarray(instances, dtype=np.float64)
    matrix: Matrix = {}
    for row, share in zip(rows.tolist(), (counts / counts.sum()).tolist(), strict=True):
        matrix[tuple(row)] = matrix.get(tuple(row), 0.0) + share
    return matrix


def select_most_frequent(matrix: Mapping[tuple[int, ...], float], count: int) -> Cells:
    """Return the ``count`` cells with the largest shares, the largest first.

    Leaving out the others changes the square of a distance by at most their largest share times their sum.
    """
    return tuple(sorted(matrix.items(), key=lambda cell: (-cell[1], cell[0]))[:count])


def matrix_distances(first: Cells, others: Sequence[Cells]) -> FloatArray:
    """Return the parallelism-matrix distances (n,) of one workload to others.

    Expression (3) divided by the square root of 2, its largest value; by ``|a - b|^2 = a.a + b.b - 2 a.b``, over the
    cells that are not zero.
    """
    owners = np.repeat(np.arange(1 + len(others)), [len(first), *(len(cells) for cells in others)])
    flat = [cell for cells in (first, *others) for cell in cells]
    places = np.array([place for place, _ in flat]).reshape(len(flat), -1)
    shares = np.array([share for _, share in flat])
    kinds, inverse = np.unique(places, axis=0, return_inverse=True)
    own = np.bincount(inverse.reshape(-1)[owners == 0], shares[owners == 0], len(kinds))
    lengths = np.bincount(owners, shares**2, 1 + len(others))
    common = np.bincount(owners, shares * own[inverse.reshape(-1)], 1 + len(others))
    squares = lengths[0] + lengths[1:] - 2 * common[1:]
    found: FloatArray = np.sqrt(np.maximum(squares, 0.0) / 2)
    return found


def unit_vectors(vectors: FloatArray) -> FloatArray:
    """Return each vector divided by its length; a zero vector stays zero."""
    length = np.sqrt((vectors**2).sum(axis=-1, keepdims=True))
    return _divide_safely(vectors, np.broadcast_to(length, vectors.shape))


def _divide_safely(above: FloatArray, below: FloatArray) -> FloatArray:
    ratio: FloatArray = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return ratio
