"""Explanations, as text and as the document ``gapwatch/explain/1``, and what findings explain of gaps, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from advisor.model.gap_parts import GapAccount, GapPart, describe_cause
from advisor.output import numbers
from advisor.output.page import Page, render_heading, render_lines, render_paragraph
from advisor.output.tables import ColumnHead, render_table
from advisor.output.text_cells import make_line, shorten_all

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.advice.explaining import ExplainedNumber, Explanation, NumberInput
    from advisor.model.records import Advice


SCHEMA: Final = "gapwatch/explain/1"
#: So many inputs, and so many parts, of a number are shown; ``verbose`` and the document have them all.
_SHOWN: Final = 6
_LONGEST_NAME: Final = 48
#: How many parts are told where not all are asked for.
FIRST: Final = 2
#: A part below this share of the run is not among the first.
LEAST_SHARE: Final = 0.01
SHOWN_REGIONS: Final = 3


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


class ExplainedPart(NamedTuple):
    """A part of a gap, and the gap or bound that it was counted in."""

    gap: str
    part: GapPart


def select_parts(advice: Advice, most: int | None = FIRST) -> list[ExplainedPart]:
    """Return the parts that explain most seconds, the largest first; all of them where ``most`` is None."""
    found = [ExplainedPart(account.gap, part) for account in advice.accounts for part in account.parts]
    found.sort(key=lambda one: (-one.part.seconds, one.gap, one.part.cause, one.part.regions))
    if most is None:
        return found
    least = LEAST_SHARE * advice.profile.actual_s
    return [one for one in found if one.part.seconds >= least][:most]


def describe_account(account: GapAccount, least_s: float) -> str:
    """Return the parts of a gap and what is left: ``44 ms coupling of flux and update, 76 ms unexplained``.

    Nothing where no part has ``least_s`` seconds.
    """
    if all(part.seconds < least_s for part in account.parts):
        return ""
    shown = [f"{numbers.format_duration(part.seconds)} {describe_cause(part, SHOWN_REGIONS)}" for part in account.parts]
    return ", ".join([*shown, f"{numbers.format_duration(max(account.unexplained_s, 0.0))} unexplained"])


def describe_part(one: ExplainedPart) -> str:
    """Return seconds, gap, cause and interval of a part, and how they are known."""
    part = one.part
    span = f" ({numbers.format_interval(part.interval_s)})" if part.interval_s else ""
    gap = part.gap if part.gap == one.gap else f"{part.gap} in {one.gap}"
    cause = describe_cause(part, SHOWN_REGIONS)
    return f"{numbers.format_duration(part.seconds)}{span} of {gap}: {cause}; {part.basis}: {part.source}"


def describe_parts(advice: Advice, page: Page, most: int | None = FIRST) -> list[str]:
    """Return a line on each of the parts that explain most seconds, fit for the page."""
    return [page.clean_remark(describe_part(part)) for part in select_parts(advice, most)]


def render_parts(advice: Advice, page: Page) -> list[Text]:
    """Return the section on what explains most of the gaps; nothing where no finding explains anything."""
    told = describe_parts(advice, page, None if page.verbose else FIRST)
    if not told:
        return []
    lines = render_heading("What explains them", page, "seconds, and how they are known")
    for text in told:
        lines += render_paragraph(text, page)
    return lines
