"""Explanations, as text and as the JSON document ``gapwatch/explain/1``."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from advisor.output import numbers
from advisor.output.page import draw
from advisor.output.sections import heading, paragraph
from advisor.output.tables import Head, table
from advisor.output.text import line, shorten_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from advisor.advice.explaining import Explanation, Input, Number
    from advisor.output.page import Page

SCHEMA: Final = "gapwatch/explain/1"
#: So many inputs, and so many parts, of a number are shown; ``verbose`` and the document have them all.
_SHOWN: Final = 6
_LONGEST_NAME: Final = 48


def document(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as plain data; its numbers are not rounded."""
    return {"schema": SCHEMA, **asdict(explanation)}


def screen(explanation: Explanation, page: Page) -> str:
    """Return the explanation as text: the numbers of the run, then those of each recommendation."""
    lines = heading(page.remark(f"How the numbers of {page.name(explanation.program) or 'the run'} came about"), page)
    lines += paragraph(page.remark(_read_from(explanation, page)), page)
    for about, found in groupby(explanation.numbers, lambda number: number.about):
        if about:
            lines += [line(), *heading(page.name(about), page)]
        for number in found:
            lines += [line(), *_number(number, page)]
    return draw(lines, page)


def _read_from(explanation: Explanation, page: Page) -> str:
    files = ", ".join(map(page.name, explanation.files)) or "what is no longer there"
    machine = f"; machine model {page.name(explanation.machine)}" if explanation.machine else ""
    return f"run {page.name(explanation.run)}, read by {page.name(explanation.reader)} from {files}{machine}"


def _number(number: Number, page: Page) -> list[Text]:
    value = numbers.quantity(number.value, number.unit) if number.value is not None else "not known"
    mark = numbers.MARKS[number.status] if number.value is not None else ""
    threshold = f" {number.condition}" if number.condition else ""
    title = f"{number.name} ({number.words}): {mark}{value}{threshold}"
    lines = [line((part.plain, "bold")) for part in paragraph(page.remark(title), page)]
    lines += paragraph(page.remark(f"= {number.formula}" if number.formula else ""), page, indent=2)
    lines += _inputs(number.inputs, page)
    if number.parts:
        lines += [line(("of which", "dim"), indent=2), *_inputs(number.parts, page)]
    rule = (f"rule: {number.place}",) if number.place else ()
    for note in (*number.notes, *rule):
        lines += paragraph(page.remark(note), page, "dim", indent=2)
    return lines


def _inputs(inputs: Sequence[Input], page: Page) -> list[Text]:
    shown = inputs if page.verbose else inputs[:_SHOWN]
    if not shown:
        return []
    names = shorten_all([page.name(one.name) for one in shown], _LONGEST_NAME, page.signs.ellipsis)
    rows = [
        (name, "" if one.value is None else numbers.quantity(one.value, one.unit), page.remark(one.source))
        for name, one in zip(names, shown, strict=True)
    ]
    lines = table([Head(""), Head("", "number"), Head("", "prose")], rows, page, indent=4)
    left = len(inputs) - len(shown)
    return lines + (paragraph(f"and {left} more (--verbose lists them)", page, "dim", indent=4) if left else [])
