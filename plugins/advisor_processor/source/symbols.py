"""How often loops run, as expressions of the names in their control, and whether a run agrees with that."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from advisor.support.expressions import Algebra, fold_arithmetic, parse_tree

if TYPE_CHECKING:
    from advisor_processor.source.records import Block, Loop, Source

_CAST: Final = re.compile(
    r"\(\s*(?:unsigned\s+|const\s+)*(?:int|long|size_t|unsigned|ptrdiff_t|int64_t)(?:\s+long)?\s*\)"
)
_LONGEST: Final = 300


def symbol_name(written: str) -> str:
    """Return a name for a symbol such as ``grid->n``."""
    return written.replace("->", ".")


@lru_cache(maxsize=4096)
def parse_expression(written: str) -> Any:  # noqa: ANN401 (sympy has no types)
    """Return an expression of integers as sympy sees it, None for calls, subscripts and what else is none.

    Names of members keep their dots. Divisions are those of integers.
    """
    if len(written) > _LONGEST or not written:
        return None
    names: dict[str, str] = {}

    def hide_member(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"member_{len(names)}_")

    text = re.sub(r"[A-Za-z_]\w*(?:(?:->|\.)[A-Za-z_]\w*)+", hide_member, _CAST.sub("", written))
    text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text)
    members = {short: symbol_name(long) for long, short in names.items()}
    try:
        return fold_arithmetic(parse_tree(text, _LONGEST), _integer_algebra(members))
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def _integer_algebra(names: Mapping[str, str]) -> Algebra[Any]:
    """Return the arithmetic of C's integers; ``names`` are those of members."""
    import sympy

    def convert_number(value: float) -> Any:  # noqa: ANN401
        if not isinstance(value, int):
            raise ValueError("no expression of integers")
        return sympy.Integer(value)

    def divide_integers(left: Any, right: Any) -> Any:  # noqa: ANN401
        return sympy.floor(left / right)

    return Algebra(
        convert_number,
        lambda name: sympy.Symbol(names.get(name, name), integer=True),
        {
            ast.Add: operator.add,
            ast.Sub: operator.sub,
            ast.Mult: operator.mul,
            ast.Div: divide_integers,
            ast.FloorDiv: divide_integers,
        },
        operator.neg,
    )


def trip_expression(loop: Loop) -> Any:  # noqa: ANN401
    """Return the trip count of a loop each time it is reached, None if its control does not determine it."""
    import sympy

    initial, final, step = (parse_expression(text) for text in (loop.initial, loop.final, loop.step))
    if (
        not loop.variable
        or loop.kind == "while"
        or initial is None
        or final is None
        or step is None
        or not step.is_number
        or step == 0
    ):
        return None
    down = step < 0
    if loop.comparison not in (("<", "<=", "!=") if not down else (">", ">=", "!=")):
        return None
    distance = (initial - final if down else final - initial) + (
        1 if "=" in loop.comparison[1:] and loop.comparison != "!=" else 0
    )
    size = abs(step)
    return sympy.expand(distance) if size == 1 else sympy.ceiling(distance / size)


class LoopExpressions:
    """Expressions of how often blocks run; each unknown in the control of loops is a symbol."""

    def __init__(self, source: Source, calls: Mapping[str, Any]) -> None:
        self._source = source
        self._calls = calls

    def count_block_runs(self, block: Block) -> Any:  # noqa: ANN401
        """Return how often a block runs; None for branches, whose share only a run determines."""
        if block.branch:
            return None
        if block.parent is not None:
            return self.count_block_runs(block.parent)
        if block.loop is None or block.loop.body is not block:
            return self._calls.get(block.function)
        return self.count_iterations(block.loop)

    def count_iterations(self, loop: Loop) -> Any:  # noqa: ANN401
        """Return how often the body of a loop runs in all."""
        import sympy

        return self._sum_over_loop(loop, sympy.Integer(1))

    def sum_over_block(self, block: Block, each: Any) -> Any:  # noqa: ANN401
        """Return the sum of ``each``, an expression of the names in the block, over all times that the block runs."""
        if block.branch:
            return None
        if block.parent is not None:
            return self.sum_over_block(block.parent, each)
        if block.loop is None or block.loop.body is not block:
            calls = self._calls.get(block.function)
            return None if calls is None else each * calls
        return self._sum_over_loop(block.loop, each)

    def _sum_over_loop(self, loop: Loop, each: Any) -> Any:  # noqa: ANN401
        """Return the sum of ``each`` over all iterations of a loop."""
        import sympy

        count = trip_expression(loop)
        if count is None:
            return each * sympy.Symbol(f"iterations_{loop.line}", integer=True) if each.is_number else None
        count = count if each == 1 else _sum_iterations(each, loop, count)
        around: Block | None = loop.block
        while around is not None:
            if around.branch:
                return None
            if around.parent is not None:
                around = around.parent
                continue
            outer = around.loop
            if outer is None:
                calls = self._calls.get(around.function)
                return None if calls is None else sympy.expand(count * calls)
            if outer.body is not around:
                return None
            times = trip_expression(outer)
            if times is None:
                whole = sympy.Symbol(f"iterations_{outer.line}", integer=True)
                return sympy.expand(count * whole)
            count = _sum_iterations(count, outer, times)
            around = outer.block
        return None


def _sum_iterations(count: Any, outer: Loop, times: Any) -> Any:  # noqa: ANN401
    """Return the sum of ``count`` over the iterations of the loop around it."""
    import sympy

    variable = parse_expression(outer.variable)
    if variable is None or variable not in count.free_symbols:
        return sympy.expand(count * times)
    turn = sympy.Symbol("turn_", integer=True, nonnegative=True)
    value = parse_expression(outer.initial) + turn * parse_expression(outer.step)
    return sympy.expand(sympy.summation(count.subs(variable, value), (turn, 0, times - 1)))
