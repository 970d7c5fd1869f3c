"""The records of an explanation: numbers with formula, inputs and their sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from advisor.advice.explaining.expressions import Expression
    from advisor.model.records import Status

Kind = Literal["run", "bound", "gap", "efficiency", "quality", "evidence", "ceiling", "expected", "confidence", "order"]


@dataclass(frozen=True, slots=True)
class NumberInput:
    """One input of a number; ``source`` says from which array, bound, rule or machine model it is.

    ``expression`` computes it from the raw profile; None where it comes from elsewhere, or is no number.
    """

    name: str
    value: float | str | bool | None
    unit: str
    source: str
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class ExplainedNumber:
    """One number of the advice: ``formula`` in words, its ``inputs``, and ``parts`` that add up to it.

    ``about`` is the action and place that it belongs to, empty for numbers of the run; ``condition`` the threshold that
    it was compared with, ``place`` the file and line of the rule. ``expression`` is the formula as data: it computes
    the value from the ``inputs`` and the raw profile; None where neither tell it.
    """

    kind: Kind
    name: str
    words: str
    value: float | str | bool | None
    unit: str
    status: Status
    formula: str
    inputs: tuple[NumberInput, ...] = ()
    parts: tuple[NumberInput, ...] = ()
    about: str = ""
    condition: str | None = None
    place: str | None = None
    notes: tuple[str, ...] = ()
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one run; ``files`` are its input files."""

    program: str
    run: str
    reader: str
    files: tuple[str, ...]
    machine: str | None
    numbers: tuple[ExplainedNumber, ...]
