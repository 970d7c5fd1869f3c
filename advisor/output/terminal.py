"""The screen of advice: what the seconds go to, what to do next, what the run cannot show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.output import numbers
from advisor.output.details import details
from advisor.output.page import draw
from advisor.output.sections import bullet, heading, paragraph, to_copy
from advisor.output.steps import next_steps
from advisor.output.text import line, shorten, wrap
from advisor.output.waterfall import waterfall
from advisor.output.words import gap_words, grade_words, neighbours, processor_words, unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from advisor.model.records import Advice, Note
    from advisor.output.page import Page

_NOTES = 2
_UNSEEN = 4


def screen(advice: Advice, page: Page) -> str:
    """Return the advice as one string for ``page``; all names in it are verbatim or visibly escaped."""
    blocks = [_head(advice, page), _seconds(advice, page), _verdict(advice, page), _unseen(advice, page)]
    if page.verbose:
        blocks += details(advice, page)
    blocks.append(_problems(advice, page))
    lines: list[Text] = []
    for block in filter(None, blocks):
        lines += [line(), *block] if lines else block
    return draw(lines, page)


def _head(advice: Advice, page: Page) -> list[Text]:
    """Return program, seconds and processors; then run and build; then how far all this can be trusted."""
    profile = advice.profile
    program = shorten(page.name(profile.program), max(20, page.prose_width // 2), page.signs.ellipsis)
    machine = f", {page.name(profile.machine)}" if profile.machine else ""
    elapsed = numbers.seconds(profile.actual_s) if profile.timed else "without times,"
    top = wrap(f"{elapsed} on {processor_words(profile)}{machine}", page.prose_width)
    first = line((program, "bold"), ": ", (top[0], "bold"))
    lines = [first] if first.cell_len <= page.width else [line((program, "bold")), line((top[0], "bold"))]
    lines += [line((part, "bold")) for part in top[1:]]
    run = f"run {page.name(profile.run)}" + (f", build {page.name(profile.build)}" if profile.build else "")
    return lines + paragraph(run, page, "dim") + _evidence(advice, page)


def _evidence(advice: Advice, page: Page) -> list[Text]:
    grade = f"Evidence: {grade_words(advice.grade)}"
    doubts = [] if advice.grade.letter == "A" and not page.verbose else _worst(advice)[:_NOTES]
    notes = "; ".join(note.text.rstrip(".") for note in doubts)
    sentence = page.remark(f"{grade}: {notes}" if notes else grade)
    style = {"A": "green", "B": "green", "C": "yellow"}.get(advice.grade.letter, "red")
    return paragraph(sentence, page, style)


def _worst(advice: Advice) -> list[Note]:
    return sorted((note for note in advice.grade.notes if note.penalty > 0), key=lambda note: -note.penalty)


def _seconds(advice: Advice, page: Page) -> list[Text]:
    if not advice.gaps:
        return []
    title = f"Where the {numbers.seconds(advice.profile.actual_s)} go"
    return [*heading(title, page, "seconds, share of the run"), *waterfall(advice, page)]


def _verdict(advice: Advice, page: Page) -> list[Text]:
    if advice.verdict == "advice":
        return next_steps(advice, page)
    if advice.verdict == "nothing significant":
        return _nothing(advice, page)
    return _insufficient(advice, page)


def _nothing(advice: Advice, page: Page) -> list[Text]:
    sentence = f"Nothing significant: no gap of this run calls for an action.{_largest(advice)}"
    return paragraph(page.remark(sentence), page, "bold green")


def _largest(advice: Advice) -> str:
    """Return a sentence about the largest gap; none where no gap holds any time."""
    largest = max(advice.gaps, key=lambda gap: gap.seconds, default=None)
    if largest is None or largest.seconds <= 0:
        return ""
    amount = f"{numbers.seconds(largest.seconds)}, {numbers.share(largest.share)} of the run"
    return f" The largest is {largest.name} ({gap_words(largest)}) with {amount}."


def _insufficient(advice: Advice, page: Page) -> list[Text]:
    if _is_open(advice):
        sentence = "Not enough evidence to choose an action: what tells one from another was not measured."
        return paragraph(page.remark(sentence + _largest(advice)), page, "bold red")
    lines = paragraph("Not enough evidence to advise from, so no advice is given.", page, "bold red")
    for note in _worst(advice):
        lines += bullet(page.remark(note.text), page)
    return lines


def _is_open(advice: Advice) -> bool:
    """Return whether gaps are known and can be trusted, but not which action meets them."""
    return advice.verdict == "insufficient evidence" and bool(advice.gaps) and advice.grade.letter != "F"


def _unseen(advice: Advice, page: Page) -> list[Text]:
    """Return what the run cannot show, and the one command that would show most needed of it."""
    command = _command(advice)
    missing = [_unknown_bounds(advice, page), _unknown_facts(advice)]
    sentence = "; ".join(filter(None, missing))
    if not sentence and not command:
        return []
    lines = heading("What this run cannot show", page) + paragraph(page.remark(sentence), page)
    return [*lines, to_copy("next: ", command, page)] if command else lines


def _unknown_bounds(advice: Advice, page: Page) -> str:
    """Return the bounds without a value, with their reasons where these are few or asked for."""
    groups = unavailable(advice)
    if len(groups) == 1 or page.verbose:
        return "; ".join(f"bounds {_span(names)} ({reason})" for names, reason in groups)
    spans = [_span(names) for names in neighbours(advice)]
    return f"bounds {', '.join(spans)}" if spans else ""


def _unknown_facts(advice: Advice) -> str:
    facts = list(dict.fromkeys(need.fact for need in advice.needs))
    left = len(facts) - _UNSEEN
    shown = facts[:_UNSEEN] + ([f"{left} more (--verbose lists them)"] if left > 0 else [])
    return f"facts that rules asked for: {', '.join(shown)}" if shown else ""


def _span(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]}"


def _command(advice: Advice) -> str | None:
    """Return the command to run next: against doubts first, then for what rules need, then for unknown bounds."""
    doubts = [note.collect for note in _worst(advice)]
    needs = [need.command for need in advice.needs]
    bounds = [bound.collect for bound in advice.bounds if bound.seconds is None]
    doubtful = advice.verdict == "insufficient evidence" and not _is_open(advice)
    order = [*doubts, *needs, *bounds] if doubtful else [*needs, *bounds, *doubts]
    return next((command for command in order if command), None)


def _problems(advice: Advice, page: Page) -> list[Text]:
    if not advice.problems:
        return []
    lines = [line(("Problems", "bold red"))]
    for problem in advice.problems:
        lines += bullet(page.remark(problem), page)
    return lines
