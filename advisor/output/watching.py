"""What the daemon shows: one line for each event, or a screen that is drawn anew when something changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.output import numbers
from advisor.output.sections import heading, paragraph
from advisor.output.steps import headlines
from advisor.output.text import line, shorten, together
from advisor.output.waterfall import waterfall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.text import Text

    from advisor.analysis.comparison import Comparison
    from advisor.model.records import Advice
    from advisor.output.page import Page

_TROUBLES = 3
_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Program:
    """The newest run of a program, its number in the history, and what changed since the build before."""

    number: int
    advice: Advice
    change: Comparison | None = None


@dataclass(frozen=True, slots=True)
class Screen:
    """Everything on the live screen: programs, the newest last; files by state; what is in the way.

    ``left`` is how long the files that wait may take, where that is known.
    """

    roots: Sequence[str]
    programs: Sequence[Program]
    counts: Mapping[str, int]
    reading: int
    troubles: Sequence[str]
    left: str | None = None


def run_line(number: int, advice: Advice, page: Page) -> str:
    """Return one line on a run: program, build, seconds, and the first thing to do."""
    profile = advice.profile
    build = f" {page.name(profile.build)}" if profile.build else ""
    elapsed = numbers.seconds(profile.actual_s) if profile.timed else "no times"
    first = next((one for one in advice.recommendations if one.state != "suppressed"), None)
    what = "all advice is suppressed" if advice.recommendations else str(advice.verdict)
    if first is not None:
        place = f" at {page.name(first.region)}" if first.region else ""
        what = f"{first.title} [{first.action}]{place}, at most {numbers.seconds(first.ceiling_s)}"
    return page.remark(f"run {number}: {profile.program}{build}: {elapsed}: {what}")


def set_aside(path: Path, reason: str) -> str:
    """Return one line on a profile that cannot be read; the reason may begin with its path."""
    return f"set aside: {reason if reason.startswith(f'{path}:') else f'{path}: {reason}'}"


def change_lines(change: Comparison, page: Page) -> list[str]:
    """Return what moved by more than noise, the largest first; one line where nothing did, or nobody knows."""
    head = f"since {change.before}: run time {_signed(change.actual.delta_s)}"
    if any(change.disturbed):
        head += f" without {sum(change.disturbed)} disturbed of {sum(change.runs)} runs"
    if change.actual.beyond_noise is None:
        return [page.remark(f"{head} (one run each: noise is not known)")]
    moved = sorted((one for one in change.changes if one.beyond_noise), key=lambda one: -abs(one.delta_s))
    if not moved:
        doubt = "too few runs to tell that from noise" if change.unsure(change.actual) else "within noise"
        return [page.remark(f"{head}, {doubt}")]
    lines = [page.remark(head)]
    for one in moved[:_CHANGES]:
        place = f" in {one.places[0][0]}" if one.places else ""
        lines.append(page.remark(f"  {one.name} {_signed(one.delta_s)}{place} (noise {numbers.seconds(one.noise_s)})"))
    return lines


def screen(shown: Screen, page: Page, height: int | None = None) -> Text:
    """Return the live screen for ``page``, of no more than ``height`` lines.

    Where there is no room for all, older programs go first, then the last lines of the newest waterfall.
    """
    state = _state(shown, page)
    if not shown.programs:
        where = ", ".join(page.name(root) for root in shown.roots)
        return together([*paragraph(f"Waiting for the first profile in {where}", page, "bold"), line(), *state])
    room = None if height is None else height - len(state)
    *older, newest = shown.programs
    lines = _program(newest, page, room)
    for program in reversed(older):
        more = _program(program, page)
        if room is not None and len(more) + len(lines) > room:
            break
        lines = more + lines
    return together([*lines, *state][:height])


def _program(program: Program, page: Page, room: int | None = None) -> list[Text]:
    """Return what is said of a program and an empty line; the waterfall takes what is left of ``room``."""
    advice, profile = program.advice, program.advice.profile
    name = shorten(page.name(profile.program), max(20, page.prose_width // 2), page.signs.ellipsis)
    build = f" {page.name(profile.build)}" if profile.build else ""
    elapsed = numbers.seconds(profile.actual_s) if profile.timed else "without times"
    lines = heading(f"{name}{build}: {elapsed}", page, f"run {program.number}, evidence {advice.grade.letter}")
    if program.change is not None:
        style = "yellow" if program.change.worst else "dim"
        lines += [part for text in change_lines(program.change, page) for part in paragraph(text, page, style)]
    steps = headlines(advice, page)
    nothing = "all advice is suppressed" if advice.recommendations else advice.verdict
    after = [line(), *(steps or paragraph(nothing, page, "bold")), line()]
    levels = waterfall(advice, page) if advice.gaps else []
    if room is not None and len(lines) + len(levels) + len(after) > room:
        kept = max(0, room - len(lines) - len(after) - 1)
        levels = [*levels[:kept], line(page.signs.ellipsis)] if kept else []
    return [*lines, *levels, *after]


def _state(shown: Screen, page: Page) -> list[Text]:
    counts = ", ".join(f"{count} {state}" for state, count in shown.counts.items() if count)
    reading = f"; reading {shown.reading}" if shown.reading else ""
    left = f"; about {shown.left} left" if shown.left else ""
    lines = paragraph(f"files: {counts or 'none yet'}{reading}{left}", page, "dim")
    for trouble in shown.troubles[-_TROUBLES:]:
        lines += paragraph(page.remark(trouble), page, "yellow")
    return lines


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{numbers.seconds(abs(seconds))}"
