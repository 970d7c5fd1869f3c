"""Why a run has no advice: nothing in it is significant, or the evidence does not suffice, and what is known then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.records import OLDER_BUILD, OTHER_PROGRAMS, OWN_ADVICE, SHARED_CORES, WAITING_UNKNOWN, Advice, Gap
from advisor.output import numbers
from advisor.output.page import render_bullet, render_paragraph
from advisor.output.wording import (
    describe_bound,
    describe_gap,
    describe_hot_spots,
    describe_unanswered_gap,
    includes_outside_time,
    is_open,
    worst_notes,
)

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.output.page import Page


def render_no_advice(advice: Advice, page: Page) -> list[Text]:
    """Return why there is nothing to do, or why nobody can say what."""
    if advice.verdict == "nothing significant":
        return _render_nothing(advice, page)
    return _render_insufficient(advice, page)


def _render_nothing(advice: Advice, page: Page) -> list[Text]:
    computation = describe_bound(advice)
    if describe_unanswered_gap(advice):
        bound = f" {computation}" if computation else ""
        sentence = f"No action fits what this run loses.{_describe_largest_gap(advice)}{bound}{quote_program(advice)}"
        return render_paragraph(page.clean_remark(sentence), page, "bold yellow")
    if computation:
        sentence = f"No gap above the computation is large enough to act on. {computation}{quote_program(advice)}"
        return render_paragraph(page.clean_remark(sentence), page, "bold yellow")
    if any(note.name == WAITING_UNKNOWN for note in advice.grade.notes):
        sentence = (
            f"Nothing significant in input and output, and nothing else was recorded.{_describe_largest_gap(advice)}"
            f"{_describe_known(advice)}{quote_program(advice)}"
        )
    else:
        sentence = (
            "Nothing significant: no gap is large enough to act on."
            f"{_describe_largest_gap(advice)}{quote_program(advice)}"
        )
    return render_paragraph(page.clean_remark(sentence), page, "bold green")


def _describe_largest_gap(advice: Advice) -> str:
    """Return a sentence about the largest gap, as far as it is the program's own; none where no gap holds any time."""
    taken = advice.profile.outside.get(OTHER_PROGRAMS)
    taken_s = 0.0 if taken is None else float(taken.max())

    def own_seconds(gap: Gap) -> float:
        return gap.seconds - (taken_s if "X" in gap.members else 0.0)

    largest = max(advice.gaps, key=own_seconds, default=None)
    if largest is None or own_seconds(largest) <= 0:
        return ""
    seconds = own_seconds(largest)
    share = seconds / advice.profile.actual_s if seconds != largest.seconds else largest.share
    amount = f"{numbers.format_duration(seconds)}, {numbers.format_percentage(share)} of the run"
    edges = advice.profile.start_and_shutdown_s
    if includes_outside_time(largest) and edges > largest.seconds / 2:
        amount += f"; start-up and shutdown take {numbers.format_duration(edges)}, which a longer run makes up for"
    return f" The largest is {largest.name} ({describe_gap(largest)}) with {amount}."


def _render_insufficient(advice: Advice, page: Page) -> list[Text]:
    bound = describe_bound(advice)
    if is_open(advice):
        sentence = "Not enough evidence to choose an action: the facts that would decide were not measured."
        if any(note.name == OTHER_PROGRAMS for note in advice.grade.notes):
            sentence = (
                "Not enough evidence to choose an action: other programs held the cores, and what is certain all the "
                "same is too little to act on. Run it again, longer or when less else runs (uptime shows the load)."
            )
        elif any(note.name == SHARED_CORES for note in advice.grade.notes):
            sentence = (
                "Not enough evidence to choose an action: ranks and threads took turns on the cores, and whoever seems "
                "to wait for another one may have waited for a core. Start no more of them than there are cores."
            )
        known = f" {bound}" if bound else _describe_largest_gap(advice) + _describe_known(advice)
        return render_paragraph(page.clean_remark(sentence + known + quote_program(advice)), page, "bold red")
    lines = render_paragraph("Not enough evidence for advice.", page, "bold red")
    for note in worst_notes(advice):
        lines += render_bullet(page.clean_remark(note.text), page)
    if known := _describe_known(advice) + quote_program(advice):
        lines += render_paragraph(page.clean_remark(known.strip()), page)
    return lines


def quote_program(advice: Advice) -> str:
    """Return what the program's own output says about how it could be faster; else nothing."""
    told = [note.text for note in advice.grade.notes if note.name in (OWN_ADVICE, OLDER_BUILD)]
    return f" The program itself says: {'; '.join(told)}." if told else ""


def _describe_known(advice: Advice) -> str:
    """Return a sentence on where the time goes, of a run whose computation is not known apart; else nothing."""
    known = describe_hot_spots(advice)
    return f" What is known: {known}" if known else ""
