"""Counts that are exactly polynomials of one size, for each rank alone, over the ranks, by the steps of a tree of them.

Counted operations hold no noise: ``N^2/2 - N/2`` of a triangular loop meets every point, and is then what it is. The
fit of times has no negative terms, and would put a power and a logarithm that are near in its place.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor_scaling.linear import expressions
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sympy

    from advisor.model.records import FloatArray

    #: How a part depends on the ranks, and the powers of the size that it has.
    Shape = Mapping[str, tuple[int, ...]]

#: The highest power of the size; parts that depend on the ranks in different ways, at most.
_HIGHEST: Final = 3
_PARTS: Final = 2
#: A count is met exactly within this share of it; coefficients are fractions with denominators up to this.
_EXACT: Final = 1e-9
_DENOMINATOR: Final = 240


def find_exact_polynomial(parameters: Sequence[str], points: FloatArray, values: FloatArray) -> sympy.Expr | None:
    """Return the expression that gives ``values`` (n,) at ``points`` (n, m) exactly; None where none is found.

    With one size and, at most, one number of ranks. Of several expressions it is the one with the fewest terms. Each
    has fewer powers of the size than there are sizes, and fewer parts than there are numbers of ranks: so at least one
    point of each was not needed to find it.
    """
    sizes = [at for at, name in enumerate(parameters) if not PROCESSORS.fullmatch(name)]
    if len(sizes) != 1 or len(parameters) > 2:
        return None
    size = points[:, sizes[0]]
    ranks = np.delete(points, sizes[0], axis=1)[:, 0] if len(parameters) > 1 else np.ones(len(points))
    over = _rank_dependences(ranks) if len(parameters) > 1 else {"": np.ones(len(points))}
    for shape in _iterate_shapes(list(over), len(np.unique(size)) - 1, len(np.unique(ranks))):
        columns = np.stack([size**power * over[kind] for kind, powers in shape.items() for power in powers], axis=1)
        found = _solve_fractions(columns, values)
        if found is not None:
            names = parameters[sizes[0]], next((each for each in parameters if each != parameters[sizes[0]]), "")
            return _build_expression(shape, found, *names)
    return None


def _rank_dependences(ranks: FloatArray) -> dict[str, FloatArray]:
    """Return how parts may depend on the ranks: not, shared by them, by the steps of a tree, from two ranks on."""
    return {"": np.ones(len(ranks)), "/": 1.0 / ranks, "log": np.log2(ranks), ">": (ranks > 1).astype(float)}


def _iterate_shapes(kinds: Sequence[str], most: int, different: int) -> Iterator[Shape]:
    """Yield all shapes with at most so many powers in a part, those with the fewest terms first."""
    powers = [each for n in range(1, most + 1) for each in combinations(range(_HIGHEST + 1), n)]
    found = [
        dict(zip(chosen, each, strict=True))
        for parts in range(1, min(_PARTS, max(1, different - 1)) + 1)
        for chosen in combinations(kinds, parts)
        for each in product(powers, repeat=parts)
    ]
    yield from sorted(found, key=lambda shape: (sum(map(len, shape.values())), len(shape)))


def _solve_fractions(columns: FloatArray, values: FloatArray) -> list[Fraction] | None:
    """Return the coefficients of the columns as fractions; None where they do not meet all values."""
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    solved = np.linalg.lstsq(columns / scale, values, rcond=None)[0] / scale
    found = [Fraction(float(each)).limit_denominator(_DENOMINATOR) for each in solved]
    met = columns @ np.array([float(each) for each in found])
    return found if (np.abs(met - values) <= _EXACT * np.maximum(np.abs(values), 1.0)).all() else None


def _build_expression(shape: Shape, found: Sequence[Fraction], size: str, ranks: str) -> sympy.Expr:
    sympy = expressions.require_sympy()
    name, left, total = expressions.make_symbol(size), iter(found), sympy.Integer(0)
    for kind, powers in shape.items():
        part: Any = sympy.Integer(0)
        for power, each in zip(powers, left, strict=False):
            part += sympy.Rational(each.numerator, each.denominator) * name**power
        total += part if not kind else _scale_by_ranks(part, kind, expressions.make_symbol(ranks))
    return total


def _scale_by_ranks(part: Any, kind: str, ranks: sympy.Symbol) -> Any:  # noqa: ANN401
    sympy = expressions.require_sympy()
    if kind == ">":
        return sympy.Piecewise((part, ranks > 1), (0, True))
    return sympy.expand(part / ranks if kind == "/" else part * sympy.log(ranks, 2))


def format_polynomial(expression: sympy.Expr) -> str:
    """Return an expression as the tables of equations write it."""
    return expressions.format_expression(expression).replace("**", "^").replace("*", " * ")
