"""Explanations, as text and as the JSON document ``gapwatch/explain/1``."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from advisor.output import numbers
from advisor.output.page import render_lines
from advisor.output.sections import render_heading, render_paragraph
from advisor.output.tables import ColumnHead, render_table
from advisor.output.text_cells import make_line, shorten_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from advisor.advice.explaining import ExplainedNumber, Explanation, NumberInput
    from advisor.output.page import Page

SCHEMA: Final = "gapwatch/explain/1"
#: So many inputs, and so many parts, of a number are shown; ``verbose`` and the document have them all.
_SHOWN: Final = 6
_LONGEST_NAME: Final = 48


def build_explanation_document(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as plain data; its numbers are not rounded."""
    return {"schema": SCHEMA, **asdict(explanation)}


def render_explanation(explanation: Explanation, page: Page) -> str:
    """Return the explanation as text: the numbers of the run, then those of each recommendation."""
    lines = render_heading(
        page.clean_remark(f"How the numbers of {page.clean_name(explanation.program) or 'the run'} came about"), page
    )
    lines += render_paragraph(page.clean_remark(_describe_source(explanation, page)), page)
    for about, found in groupby(explanation.numbers, lambda number: number.about):
        if about:
            lines += [make_line(), *render_heading(page.clean_name(about), page)]
        for number in found:
            lines += [make_line(), *_render_number(number, page)]
    return render_lines(lines, page)


def _describe_source(explanation: Explanation, page: Page) -> str:
    files = ", ".join(map(page.clean_name, explanation.files)) or "what is no longer there"
    machine = f"; machine model {page.clean_name(explanation.machine)}" if explanation.machine else ""
    return (
        f"run {page.clean_name(explanation.run)}, read by {page.clean_name(explanation.reader)} from {files}{machine}"
    )


def _render_number(number: ExplainedNumber, page: Page) -> list[Text]:
    value = numbers.format_value(number.value, number.unit) if number.value is not None else "not known"
    mark = numbers.MARKS[number.status] if number.value is not None else ""
    threshold = f" {number.condition}" if number.condition else ""
    title = f"{number.name} ({number.words}): {mark}{value}{threshold}"
    lines = [make_line((part.plain, "bold")) for part in render_paragraph(page.clean_remark(title), page)]
    lines += render_paragraph(page.clean_remark(f"= {number.formula}" if number.formula else ""), page, indent=2)
    lines += _render_inputs(number.inputs, page)
    if number.parts:
        lines += [make_line(("of which", "dim"), indent=2), *_render_inputs(number.parts, page)]
    rule = (f"rule: {number.place}",) if number.place else ()
    for note in (*number.notes, *rule):
        lines += render_paragraph(page.clean_remark(note), page, "dim", indent=2)
    return lines


def _render_inputs(inputs: Sequence[NumberInput], page: Page) -> list[Text]:
    shown = inputs if page.verbose else inputs[:_SHOWN]
    if not shown:
        return []
    names = shorten_all([page.clean_name(one.name) for one in shown], _LONGEST_NAME, page.signs.ellipsis)
    rows = [
        (name, "" if one.value is None else numbers.format_value(one.value, one.unit), page.clean_remark(one.source))
        for name, one in zip(names, shown, strict=True)
    ]
    lines = render_table([ColumnHead(""), ColumnHead("", "number"), ColumnHead("", "prose")], rows, page, indent=4)
    left = len(inputs) - len(shown)
    return lines + (render_paragraph(f"and {left} more (--verbose lists them)", page, "dim", indent=4) if left else [])
