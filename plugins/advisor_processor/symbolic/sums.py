"""Exact sums of counts over loops: what the bounds of a loop leave of a formula of its variable.

Counts are polynomials of integers whose factors may be ``Step(x)``, 1 from x = 0 on, ``Quotient(a, c)`` and
``Remainder(a, c)`` of a division rounded down, and ``Doublings(x)``. Faulhaber's formula sums powers; a quotient splits
a range into the residues of its divisor, which makes the result a quasi-polynomial (E. Ehrhart 1962; P. Clauss, ICS
1996); a step shortens the range. What is in no closed form stays a ``Sum``, which is exact as well.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final

import sympy

from advisor_processor.symbolic.integer_functions import Quotient, Remainder, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    #: A variable of a loop, from 0, and how many values it takes.
    Range = tuple[sympy.Symbol, Any]

#: Periods up to this are written out residue by residue; formulas beyond that size stay sums.
_PERIOD: Final = 16
_LARGEST: Final = 200
_CASES_OF_A_SUM: Final = 24
_DEPTH: Final = 12
#: The names of the variables of loops.
_TURN: Final = re.compile(r"t\d+(_[qr])*|rank")
#: Steps inside a step that are written out case by case.
_CASES: Final = 3


def least_value(x: Any, ranges: Sequence[Range], is_known: Callable[[Any], bool], most: bool = False) -> Any:  # noqa: ANN401
    """Return a lower (``most``: upper) bound of ``x`` over loops, outer ones first; None where its course is not seen.

    The bound is an expression of what is no variable of these loops; ``is_known`` says what of them is zero or more.
    """
    names = [name for name, _ in ranges]
    bounds = {name: (sympy.Integer(0), times - 1) for name, times in ranges}
    for _ in range(40):
        x = sympy.expand(x)
        atom = _find_bounded(x, names)
        if atom is None:
            return x
        coefficient = x.coeff(atom, 1)
        rest = sympy.expand(x - coefficient * atom)
        if rest.has(atom) or coefficient.has(atom):
            return None
        if coefficient.is_nonnegative or coefficient.is_nonpositive:
            upwards = bool(coefficient.is_nonnegative)
        elif not coefficient.free_symbols & set(names):
            if is_known(coefficient):
                upwards = True
            elif is_known(sympy.expand(-coefficient)):
                upwards = False
            else:
                return None
        else:
            low, high = (least_value(coefficient, ranges, is_known, upper) for upper in (False, True))
            if low is not None and low.is_nonnegative:
                upwards = True
            elif high is not None and high.is_nonpositive:
                upwards = False
            else:
                return None
        end = _bound_atom(atom, bounds, ranges, is_known, upwards == most)
        if end is None:
            return None
        x = coefficient * end + rest
    return None


def _find_bounded(x: Any, names: Sequence[sympy.Symbol]) -> Any:  # noqa: ANN401
    """Return what to replace next by its bound: functions first, then variables of loops, inner ones first."""
    for atom in sympy.preorder_traversal(x):
        if isinstance(atom, Step | Remainder) or (isinstance(atom, Quotient) and atom.free_symbols & set(names)):
            return atom
    return next((name for name in reversed(names) if x.has(name)), None)


def _bound_atom(
    atom: Any,  # noqa: ANN401
    bounds: Mapping[Any, tuple[Any, Any]],
    ranges: Sequence[Range],
    is_known: Callable[[Any], bool],
    upper: bool,
) -> Any:  # noqa: ANN401
    if isinstance(atom, Step):
        return sympy.Integer(int(upper))
    if isinstance(atom, Remainder):
        return atom.args[1] - 1 if upper else sympy.Integer(0)
    if isinstance(atom, Quotient):
        if not atom.args[1].is_positive:
            return None
        end = least_value(atom.args[0], ranges, is_known, upper)
        return None if end is None else Quotient(end, atom.args[1])
    return bounds[atom][int(upper)]


class _TooManyCasesError(Exception):
    """A closed form would be too long to be of use."""


class SumRules:
    """Sums over loops; ``holds(condition)`` says whether an integer of the parameters may be taken as zero or more."""

    def __init__(self, holds: Callable[[Any], bool]) -> None:
        self._holds = holds
        self._sums: dict[Any, Any] = {}
        self._left = _CASES_OF_A_SUM

    def is_nonnegative(self, x: Any, ranges: Sequence[Range]) -> bool:  # noqa: ANN401
        """Return whether ``x`` is zero or more wherever the loops go, by what is taken to hold."""
        if x.is_number:
            return bool(x >= 0)
        if x.is_nonnegative:
            return True
        bound = least_value(x, ranges, self._holds)
        if bound is None:
            return False
        return bool(bound >= 0) if bound.is_number else bool(bound.is_nonnegative) or self._holds(bound)

    def positive_part(self, x: Any, ranges: Sequence[Range]) -> Any:  # noqa: ANN401
        """Return max(x, 0)."""
        x = sympy.expand(x)
        return x if self.is_nonnegative(x, ranges) else sympy.expand(x * self.make_step(x, ranges))

    def make_step(self, x: Any, ranges: Sequence[Range]) -> Any:  # noqa: ANN401
        """Return 1 where ``x`` is zero or more, else 0; of what has steps in it by cases."""
        x = sympy.expand(x)
        inner = next(iter(sorted(x.atoms(Step), key=str)), None) if len(x.atoms(Step)) <= _CASES else None
        if inner is not None:
            no, yes = (self.make_step(x.xreplace({inner: sympy.Integer(bit)}), ranges) for bit in (0, 1))
            return sympy.expand(no + inner * (yes - no))
        found = Step(x)
        if found.is_number or self.is_nonnegative(x, ranges):
            return found if found.is_number else sympy.Integer(1)
        return sympy.Integer(0) if self.is_nonnegative(-x - 1, ranges) else found

    def sum_range(self, x: Any, name: sympy.Symbol, times: Any, ranges: Sequence[Range]) -> Any:  # noqa: ANN401
        """Return the sum of ``x`` over ``name`` = 0 .. ``times`` - 1 inside the loops ``ranges``; ``times`` >= 0."""
        key = (x, name, times, tuple(ranges))
        if key not in self._sums:
            self._left = _CASES_OF_A_SUM
            x, times = sympy.expand(x), sympy.expand(times)
            try:
                self._sums[key] = self._sum_terms(x, name, times, tuple(ranges), _DEPTH)
            except _TooManyCasesError:
                self._sums[key] = sympy.Sum(x, (name, 0, times - 1))
        return self._sums[key]

    def _sum_terms(self, x: Any, name: Any, times: Any, ranges: tuple[Range, ...], depth: int) -> Any:  # noqa: ANN401
        self._left -= 1
        if self._left < 0 or len(x.args) > _LARGEST:
            raise _TooManyCasesError
        plain, groups, open_terms = sympy.Integer(0), dict[Any, Any](), sympy.Integer(0)
        for term in sympy.Add.make_args(x):
            hard = [f for f in sympy.Mul.make_args(term) if not f.is_polynomial(name)]
            if not hard:
                plain += term
            elif depth == 0 or any(_has_no_form(f, name) for f in hard):
                open_terms += term
            else:
                key = sympy.Mul(*hard)
                groups[key] = groups.get(key, sympy.Integer(0)) + term / key
        total = sum_powers(plain, name, times)
        if open_terms != 0:
            total += sympy.Sum(open_terms, (name, 0, times - 1))
        for key, factor in groups.items():
            total += self._sum_hard(sympy.expand(factor), key, name, times, ranges, depth)
        return sympy.expand(total)

    def _sum_hard(self, factor: Any, hard: Any, name: Any, times: Any, ranges: tuple[Range, ...], depth: int) -> Any:  # noqa: ANN401
        """Return the sum of ``factor``, a polynomial, times ``hard``, a product of what is none."""
        inside = (*ranges, (name, times))
        x = factor * hard
        atom = _find_affine(hard, name)
        if atom is not None and depth > 0:
            if isinstance(atom, Step):
                return self._sum_from_step(x, atom, name, times, ranges, depth)
            simpler = self._reduce_division(atom, name, inside)
            if simpler is not None:
                return self._sum_terms(sympy.expand(x.xreplace(simpler)), name, times, ranges, depth - 1)
            split = self._split_residues(x, atom, name, times, ranges, depth)
            if split is not None:
                return split
        return sympy.Sum(x, (name, 0, times - 1))

    def _reduce_division(self, atom: Any, name: Any, inside: tuple[Range, ...]) -> Any:  # noqa: ANN401
        """Return a division by something that its dividend reaches at most once, as a step; None for others."""
        dividend, divisor = atom.args
        moving = sympy.expand(dividend).coeff(name, 1) * name
        still = sympy.expand(dividend - moving)
        if not divisor.is_Integer and not still.is_number and not self.is_nonnegative(divisor - 1 - still, inside):
            moving, whole = moving + Remainder(still, divisor), Quotient(still, divisor)
        else:
            moving, whole = moving + still, sympy.Integer(0)
        if not self.is_nonnegative(moving, inside) or not self.is_nonnegative(2 * divisor - 1 - moving, inside):
            return None
        over = self.make_step(moving - divisor, inside)
        if isinstance(atom, Quotient):
            return {atom: whole + over}
        return {atom: moving - divisor * over}

    def _split_residues(self, x: Any, atom: Any, name: Any, times: Any, ranges: tuple[Range, ...], depth: int) -> Any:  # noqa: ANN401
        """Return the sum by residues r of the divisor: name = period s + r."""
        dividend, divisor = atom.args
        slope = sympy.expand(dividend).coeff(name, 1)
        if divisor.is_Integer and slope.is_Integer:
            period = divisor // sympy.gcd(divisor, slope)
            if period > _PERIOD:
                return None
        elif abs(slope) == 1:
            period = divisor
        else:
            return None
        turns, left = Quotient(times, period), Remainder(times, period)
        turn = sympy.Symbol(f"{name.name}_q", integer=True, nonnegative=True)
        rest = sympy.Symbol(f"{name.name}_r", integer=True, nonnegative=True)

        def sum_turns(r: Any, outer: tuple[Range, ...]) -> Any:  # noqa: ANN401
            return self._sum_terms(sympy.expand(x.subs(name, period * turn + r)), turn, turns, outer, depth - 1)

        last = sympy.expand(x.subs(name, period * turns + rest))
        if period.is_Integer:
            whole = sum((sum_turns(sympy.Integer(r), ranges) for r in range(int(period))), sympy.Integer(0))
            parts = (last.subs(rest, r) * self.make_step(left - 1 - r, ranges) for r in range(int(period) - 1))
            return whole + sum(parts, sympy.Integer(0))
        inner = sum_turns(rest, (*ranges, (rest, period)))
        return self._sum_terms(sympy.expand(inner), rest, period, ranges, depth - 1) + self._sum_terms(
            last, rest, left, ranges, depth - 1
        )

    def _has_sign(self, slope: Any) -> bool | None:  # noqa: ANN401
        """Return whether a factor of a variable is positive (True) or negative; None where that is not known."""
        if slope.is_number:
            return bool(slope > 0)
        if any(_TURN.fullmatch(symbol.name) for symbol in slope.free_symbols):
            return None
        return True if self._holds(slope - 1) else False if self._holds(-slope - 1) else None

    def _sum_from_step(self, x: Any, atom: Step, name: Any, times: Any, ranges: tuple[Range, ...], depth: int) -> Any:  # noqa: ANN401
        """Return the sum over the part of the range in which a step is 1."""
        slope = sympy.expand(atom.args[0]).coeff(name, 1)
        level = sympy.expand(atom.args[0] - slope * name)
        x = sympy.expand(x.xreplace({atom: sympy.Integer(1)}))
        upwards = self._has_sign(slope)
        if upwards:
            first = sympy.expand(-Quotient(level, slope))
        elif upwards is False:
            first = sympy.expand(Quotient(level, -slope) + 1)
        else:
            return sympy.Sum(x * atom, (name, 0, times - 1))

        def sum_to(end: Any) -> Any:  # noqa: ANN401
            return self._sum_terms(x, name, end, ranges, depth - 1)

        before = self.is_nonnegative(first, ranges)
        within = self.is_nonnegative(times - first, ranges)
        beyond = sympy.Integer(0) if within else self.make_step(first - times, ranges)
        begun = sympy.Integer(1) if before else self.make_step(first - 1, ranges)
        part = sympy.Integer(0) if begun == 0 or beyond == 1 else begun * (1 - beyond) * sum_to(first)
        if upwards:
            return part * -1 + ((1 - beyond) * sum_to(times) if beyond != 1 else 0)
        return part + (beyond * sum_to(times) if beyond != 0 else 0)


def _has_no_form(factor: Any, name: Any) -> bool:  # noqa: ANN401
    """Return whether a factor holds powers with a variable in the exponent, or sums that are in no closed form."""
    return (
        factor.has(sympy.Sum)
        or any(each.exp.free_symbols for each in factor.atoms(sympy.Pow))
        or any(each.args[1].has(name) for each in factor.atoms(Quotient, Remainder))
    )


def _find_affine(hard: Any, name: Any) -> Any:  # noqa: ANN401
    """Return a division or step with the variable only as a multiple in it, divisions first."""
    steps = []
    for each in sympy.preorder_traversal(hard):
        if not isinstance(each, Step | Quotient | Remainder) or not each.has(name):
            continue
        inside = sympy.expand(each.args[0])
        if not inside.is_polynomial(name) or sympy.degree(inside, name) != 1:
            continue
        if isinstance(each, Step):
            steps.append(each)
        elif not each.args[1].has(name):
            return each
    return next((step for step in steps if step in sympy.Mul.make_args(hard)), None)


@functools.lru_cache(maxsize=64)
def _faulhaber(power: int) -> Any:  # noqa: ANN401
    """Return 0^power + 1^power + ... + (m - 1)^power as a polynomial of m."""
    m = sympy.Symbol("m")
    parts = (sympy.binomial(power + 1, k) * sympy.bernoulli(k, 0) * m ** (power + 1 - k) for k in range(power + 1))
    return m, sympy.expand(sum(parts, sympy.Integer(0)) / (power + 1))


def sum_powers(x: Any, name: sympy.Symbol, times: Any) -> Any:  # noqa: ANN401
    """Return the sum of a polynomial of ``name`` from 0 to ``times`` - 1."""
    if not x.has(name):
        return x * times
    total = sympy.Integer(0)
    for (power,), coefficient in sympy.Poly(x, name).terms():
        m, formula = _faulhaber(power)
        total += coefficient * formula.subs(m, times)
    return total
