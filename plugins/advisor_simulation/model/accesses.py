"""References to data in models: an array with its row and items."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Self

from advisor.support.expressions import check_tree, find_names, parse_tree


@dataclass(frozen=True, slots=True)
class Access:
    """A reference to data: ``Pos[i]`` (all items of row i), ``Pos[i, 0]``, ``Vel[Neighbor[i], 0:2]``.

    ``rows`` is the expression of the row; ``first`` and ``last`` (excluded) the items of the row, None: all of them.
    """

    text: str
    array: str
    rows: ast.expr = field(repr=False, compare=False)
    first: ast.expr | None = field(repr=False, compare=False)
    last: ast.expr | None = field(repr=False, compare=False)
    names: frozenset[str] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the access; ValueError with what was expected."""
        tree = parse_tree(text)
        if not isinstance(tree, ast.Subscript) or not isinstance(tree.value, ast.Name):
            raise ValueError("expected an array with its index, such as Pos[i] or Pos[Neighbor[i], 0:3]")
        places = list(tree.slice.elts) if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        if len(places) > 2 or isinstance(places[0], ast.Slice):
            raise ValueError("expected the row, and at most one item or range of items after it")
        first, last = _item_range(places[1]) if len(places) > 1 else (None, None)
        parts = [part for part in (places[0], first, last) if part is not None]
        for part in parts:
            check_tree(part)
        used = frozenset().union(*map(find_names, parts))
        return cls(text, tree.value.id, places[0], first, last, used)


def _item_range(place: ast.expr) -> tuple[ast.expr, ast.expr]:
    if not isinstance(place, ast.Slice):
        return place, ast.BinOp(place, ast.Add(), ast.Constant(1))
    if place.lower is None or place.upper is None or place.step is not None:
        raise ValueError("expected a range of items with both ends, such as 0:3")
    return place.lower, place.upper
