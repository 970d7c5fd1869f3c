"""Explanations as answers to an agent: how numbers came about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.agents.answers import DATA, Json, quote_data, quote_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.advice.explaining import ExplainedNumber, NumberInput

#: So many inputs of a number are shown.
_INPUTS: Final = 6


def build_explanation_answer(numbers: Sequence[ExplainedNumber]) -> Json:
    """Return how numbers came about: formula, inputs with their sources, thresholds, and parts."""
    return {
        "note": DATA,
        "numbers": [_build_number(number) for number in numbers],
    }


def _build_number(number: ExplainedNumber) -> Json:
    """Return a number with its derivation; an empty field is left out, but ``value`` never: null is unknown."""
    answer: Json = {
        "name": number.name,
        "is": number.words,
        "about": quote_data(number.about) if number.about else None,
        "value": quote_value(number.value),
        "unit": number.unit,
        "status": number.status,
        "threshold": number.condition,
        "formula": number.formula,
        "inputs": [
            {"name": quote_data(part.name), "value": quote_value(part.value), "unit": part.unit,
             "source": quote_data(part.source)}
            for part in _select_inputs(number.inputs)
        ],
        "more_inputs": max(0, len(number.inputs) - _INPUTS) or None,
        "largest_parts": [
            {"name": quote_data(part.name), "value": quote_value(part.value)}
            | ({"at": quote_data(part.source)} if part.source else {})
            for part in number.parts[:4]
        ],
        "notes": [quote_data(note) for note in number.notes],
        "rule": number.place,
    }  # fmt: skip
    return {name: value for name, value in answer.items() if name == "value" or value not in (None, "", [])}


def _select_inputs(inputs: Sequence[NumberInput]) -> list[NumberInput]:
    """Return the inputs that are shown: the first, and the last, by which the sum of the others may be scaled."""
    return list(inputs) if len(inputs) <= _INPUTS else [*inputs[: _INPUTS - 1], inputs[-1]]
