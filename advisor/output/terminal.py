"""The screen of advice: what the seconds go to, what to do next, what the run cannot show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.output import numbers
from advisor.output.details import render_details
from advisor.output.explanation_text import render_parts
from advisor.output.no_advice import quote_program, render_no_advice
from advisor.output.page import Page, render_bullet, render_command, render_heading, render_lines, render_paragraph
from advisor.output.recommendation_text import render_next_steps
from advisor.output.text_cells import make_line, shorten_text, wrap_text
from advisor.output.waterfall import render_waterfall
from advisor.output.wording import (
    describe_grade,
    describe_length,
    describe_processors,
    describe_unanswered_gap,
    group_unavailable_bounds,
    group_unknown_bounds,
    select_command,
    worst_notes,
)

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.model.records import Advice

_NOTES = 2
_UNSEEN = 4


def render_screen(advice: Advice, page: Page) -> str:
    """Return the advice as one string for ``page``; all names in it are verbatim or visibly escaped."""
    blocks = [
        _render_head(advice, page),
        _render_seconds(advice, page),
        render_parts(advice, page),
        _render_verdict(advice, page),
        _render_unseen(advice, page),
    ]
    if page.verbose:
        blocks += render_details(advice, page)
    blocks.append(_render_problems(advice, page))
    lines: list[Text] = []
    for block in filter(None, blocks):
        lines += [make_line(), *block] if lines else block
    return render_lines(lines, page)


def _render_head(advice: Advice, page: Page) -> list[Text]:
    """Return program, seconds and processors; then run and build; then the grade of the evidence."""
    profile = advice.profile
    program = shorten_text(page.clean_name(profile.program), max(20, page.prose_width // 2), page.signs.ellipsis)
    machine = f", {page.clean_name(profile.machine)}" if profile.machine else ""
    elapsed = describe_length(profile, "without times,")
    top = wrap_text(f"{elapsed} on {describe_processors(profile)}{machine}", page.prose_width)
    first = make_line((program, "bold"), ": ", (top[0], "bold"))
    lines = [first] if first.cell_len <= page.width else [make_line((program, "bold")), make_line((top[0], "bold"))]
    lines += [make_line((part, "bold")) for part in top[1:]]
    run = f"run {page.clean_name(profile.run)}" + (f", build {page.clean_name(profile.build)}" if profile.build else "")
    return lines + render_paragraph(run, page, "dim") + _render_evidence(advice, page)


def _render_evidence(advice: Advice, page: Page) -> list[Text]:
    grade = f"Evidence: {describe_grade(advice.grade)}"
    doubts = [] if advice.grade.letter == "A" and not page.verbose else worst_notes(advice)[:_NOTES]
    notes = "; ".join(note.text.rstrip(".") for note in doubts)
    sentence = page.clean_remark(f"{grade}: {notes}" if notes else grade)
    style = {"A": "green", "B": "green", "C": "yellow"}.get(advice.grade.letter, "red")
    return render_paragraph(sentence, page, style)


def _render_seconds(advice: Advice, page: Page) -> list[Text]:
    if not advice.gaps:
        return []
    title = f"Where the {numbers.format_duration(advice.profile.actual_s)} go"
    return [*render_heading(title, page, "seconds, share of the run"), *render_waterfall(advice, page)]


def _render_verdict(advice: Advice, page: Page) -> list[Text]:
    if advice.verdict != "advice":
        return render_no_advice(advice, page)
    quoted = quote_program(advice).strip()
    further = [make_line(), *render_paragraph(page.clean_remark(quoted), page)] if quoted else []
    return [*render_next_steps(advice, page), *further]


def _render_unseen(advice: Advice, page: Page) -> list[Text]:
    """Return what the run cannot show, and the one command that would show most needed of it."""
    command = select_command(advice)
    missing = [_describe_unknown_bounds(advice, page), _describe_unknown_facts(advice, page)]
    sentences = [describe_unanswered_gap(advice), "; ".join(filter(None, missing))]
    if not any(sentences) and not command:
        return []
    lines = render_heading("What this run cannot show", page)
    for sentence in sentences:
        lines += render_paragraph(page.clean_remark(sentence), page)
    return [*lines, render_command("next: ", command, page)] if command else lines


def _describe_unknown_bounds(advice: Advice, page: Page) -> str:
    """Return the bounds without a value, with reasons if these are few or requested."""
    groups = group_unavailable_bounds(advice)
    if len(groups) == 1 or page.verbose:
        return "; ".join(f"bounds {_format_span(names)} ({reason})" for names, reason in groups)
    spans = [_format_span(names) for names in group_unknown_bounds(advice)]
    return f"bounds {', '.join(spans)}" if spans else ""


def _describe_unknown_facts(advice: Advice, page: Page) -> str:
    facts = list(dict.fromkeys(need.fact for need in advice.needs))
    left = len(facts) - _UNSEEN
    where = "all below" if page.verbose else "--verbose lists them"
    shown = facts[:_UNSEEN] + ([f"{left} more ({where})"] if left > 0 else [])
    return f"facts missing for rules: {', '.join(shown)}" if shown else ""


def _format_span(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]}"


def _render_problems(advice: Advice, page: Page) -> list[Text]:
    if not advice.problems:
        return []
    lines = [make_line(("Problems", "bold red"))]
    for problem in advice.problems:
        lines += render_bullet(page.clean_remark(problem), page)
    return lines
