"""Integer functions that occur in counts besides polynomials, and the exact value of formulas with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any, Final

import sympy

#: Steps in a formula that is told to be a logical value, at most.
_LOGICALS: Final = 8


def make_integer(name: str) -> sympy.Symbol:
    """Return the symbol of an integer."""
    return sympy.Symbol(name, integer=True)


class IntegerFunction(sympy.Function):  # type: ignore[misc] # SymPy has no types
    """A function whose values are integers."""

    is_integer = True


class Step(IntegerFunction):
    """1 where its argument, an integer, is zero or more, else 0."""

    nargs = 1
    is_nonnegative = True

    @classmethod
    def eval(cls, x: Any) -> Any:  # noqa: ANN401
        """Return the value where it is known, else the step of the argument without a common factor."""
        if x.is_number:
            return sympy.Integer(int(bool(x >= 0)))
        if x.is_nonnegative:
            return sympy.Integer(1)
        if x.is_negative:
            return sympy.Integer(0)
        constant, rest = sympy.expand(x).as_coeff_Add()
        if rest.could_extract_minus_sign():
            return 1 - cls(sympy.expand(-x - 1))
        content = rest.as_content_primitive()[0]
        if constant.is_Integer and content.is_Integer and content > 1:
            return cls(rest / content + constant // content)
        return None

    def _eval_power(self, power: Any) -> Any:  # noqa: ANN401
        return self if power.is_positive else None


def _split_multiples(a: Any, c: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return q and r with a = q c + r, such that no term of r is a multiple of c."""
    whole, left = sympy.Integer(0), sympy.Integer(0)
    for term in sympy.Add.make_args(sympy.expand(a)):
        times = sympy.cancel(term / c) if not c.is_Integer else None
        if times is not None and times.is_integer:
            whole += times
        elif c.is_Integer:
            number, rest = term.as_coeff_Mul()
            part = number // c if number.is_Integer else sympy.Integer(0)
            whole, left = whole + part * rest, left + (number - part * c) * rest
        else:
            left += term
    # q and r with what is left of `n - n % c` taken for the multiple of c that it is
    table = {each: each.args[0] - c * Quotient(*each.args) for each in left.atoms(Remainder) if each.args[1] == c}
    if table and left.func is not Remainder:
        other = sympy.expand(left.xreplace(table))
        if other.as_independent(c)[1] == other and sympy.cancel(other / c).is_integer:
            return whole + sympy.cancel(other / c), sympy.Integer(0)
    return whole, left


class Quotient(IntegerFunction):
    """The quotient of two integers, rounded down."""

    nargs = 2

    @classmethod
    def eval(cls, a: Any, c: Any) -> Any:  # noqa: ANN401
        """Return the value where it is known, else the quotient of what is no multiple of the divisor."""
        if c == 0:
            return sympy.nan
        whole, left = _split_multiples(a, c)
        if left.is_Integer and c.is_Integer:
            return whole + left // c
        if left == 0 or (isinstance(left, Remainder) and left.args[1] == c):
            return whole
        return whole + cls(left, c) if whole != 0 else None

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[0].is_nonnegative and self.args[1].is_positive else None


class Remainder(IntegerFunction):
    """What the quotient leaves: from 0 to the divisor less 1."""

    nargs = 2
    is_nonnegative = True

    @classmethod
    def eval(cls, a: Any, c: Any) -> Any:  # noqa: ANN401
        """Return the value where it is known, else the remainder of what is no multiple of the divisor."""
        if c == 0:
            return sympy.nan
        whole, left = _split_multiples(a, c)
        if left.is_Integer and c.is_Integer:
            return left % c
        if left == 0 or (isinstance(left, cls) and left.args[1] == c):
            return left
        return cls(left, c) if whole != 0 else None


class Doublings(IntegerFunction):
    """How often 1 has to be doubled to reach x: log2 x, rounded up; 0 up to 1."""

    nargs = 1
    is_nonnegative = True

    @classmethod
    def eval(cls, x: Any) -> Any:  # noqa: ANN401
        """Return the value where it is known."""
        if x.is_Pow and x.base == 2 and x.exp.is_nonnegative:
            return x.exp
        return sympy.Integer(max(int(x) - 1, 0).bit_length()) if x.is_Integer else None


def evaluate_exactly(x: Any, values: Mapping[str, Any]) -> Fraction:  # noqa: ANN401
    """Return the value of a formula; ``KeyError`` for a name without value, ``TypeError`` for what has none."""
    return Fraction(_Evaluation(dict(values)).find_value(x))


class _Evaluation:
    """Evaluates with integers of Python, which is quicker than substitution and keeps sums exact."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = {name: _to_number(value) for name, value in values.items()}

    def find_value(self, x: Any) -> Any:  # noqa: ANN401
        """Return the value of a formula, an integer or a fraction."""
        if x.is_Symbol:
            return self._values[x.name]
        if x.is_Rational:
            return int(x.p) if x.q == 1 else Fraction(int(x.p), int(x.q))
        if x.is_Add:
            return sum(self.find_value(arg) for arg in x.args)
        if x.is_Mul:
            product = 1
            for each in x.args:
                product *= self.find_value(each)
                if product == 0:
                    return 0
            return product
        if x.is_Pow:
            return self.find_value(x.base) ** int(self.find_value(x.exp))
        if isinstance(x, sympy.Sum):
            return self._add_up(x)
        if isinstance(x, Quotient):
            return self.find_value(x.args[0]) // self.find_value(x.args[1])
        if isinstance(x, Remainder):
            return self.find_value(x.args[0]) % self.find_value(x.args[1])
        if isinstance(x, Step):
            return int(self.find_value(x.args[0]) >= 0)
        if isinstance(x, Doublings):
            return max(int(self.find_value(x.args[0])) - 1, 0).bit_length()
        raise TypeError(f"{x} has no exact value")

    def _add_up(self, x: Any) -> Any:  # noqa: ANN401
        name, low, high = x.limits[-1]
        inside = sympy.Sum(x.function, *x.limits[:-1]) if len(x.limits) > 1 else x.function
        before = self._values.get(name.name)
        total = 0
        for each in range(int(self.find_value(low)), int(self.find_value(high)) + 1):
            self._values[name.name] = each
            total += self.find_value(inside)
        if before is None:
            self._values.pop(name.name, None)
        else:
            self._values[name.name] = before
        return total


def _to_number(value: Any) -> Any:  # noqa: ANN401
    number = Fraction(value)
    return int(number) if number.denominator == 1 else number


def is_logical(value: Any) -> bool:  # noqa: ANN401
    """Return whether a formula consists of steps alone, and is 0 or 1 for all their values."""
    steps = list(value.atoms(Step))
    tokens = [sympy.Dummy() for _ in steps]
    bare = value.xreplace(dict(zip(steps, tokens, strict=True)))
    if not steps or len(steps) > _LOGICALS or bare.free_symbols - set(tokens):
        return False
    return all(
        bare.xreplace(dict(zip(tokens, map(sympy.Integer, bits), strict=True))) in (0, 1)
        for bits in product((0, 1), repeat=len(steps))
        if not _contradicts(steps, bits)
    )


def _contradicts(steps: Sequence[Any], bits: Sequence[int]) -> bool:
    """Return whether a step is 1 though one that is reached before it is 0."""
    pairs = combinations(zip(steps, bits, strict=True), 2)
    for (one, first), (other, second) in pairs:
        apart = sympy.expand(one.args[0] - other.args[0])
        if apart.is_Integer and ((apart >= 0 and second > first) or (apart <= 0 and first > second)):
            return True
    return False
