"""What the daemon shows: one line for each event, or a screen that is drawn anew when something changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.units import format_count
from advisor.output import numbers
from advisor.output.explanation_text import describe_parts
from advisor.output.page import render_heading, render_paragraph
from advisor.output.recommendation_text import render_headlines
from advisor.output.text_cells import join_lines, make_line, shorten_text
from advisor.output.waterfall import render_waterfall
from advisor.output.wording import describe_length

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.analysis.comparison import Comparison
    from advisor.model.records import Advice
    from advisor.output.page import Page

_TROUBLES = 3
_CHANGES = 3
#: Lines that the newest program has before others get theirs: its name, what changed, and the first things to do.
_NEWEST_LINES = 9
#: Programs of which all is said where nothing limits the lines.
_LAST_BLOCKS = 3


@dataclass(frozen=True, slots=True)
class ProgramScreen:
    """The newest run of a program, its number in the history, and what changed since the build before."""

    number: int
    advice: Advice
    change: Comparison | None = None


@dataclass(frozen=True, slots=True)
class WatchScreen:
    """Everything on the live screen: programs, the newest last; files by state; what is in the way.

    ``remaining_time`` is how long the files that wait may take, where that is known; ``known_runs`` are those of the
    history, which may be older than the screen.
    """

    roots: Sequence[str]
    programs: Sequence[ProgramScreen]
    counts: Mapping[str, int]
    reading: int
    troubles: Sequence[str]
    remaining_time: str | None = None
    known_runs: int = 0


def render_run_line(number: int, advice: Advice, page: Page) -> str:
    """Return one line on a run: program, build, seconds, and the first thing to do."""
    profile = advice.profile
    build = f" {page.clean_name(profile.build)}" if profile.build else ""
    elapsed = numbers.format_duration(profile.actual_s) if profile.has_run_time else "no times"
    first = next(iter(advice.pending), None)
    what = "all recommendations suppressed" if advice.recommendations else str(advice.verdict)
    if first is not None:
        place = f" at {page.clean_name(first.region)}" if first.region else ""
        what = f"{first.title} [{first.action}]{place}, at most {numbers.format_duration(first.ceiling_s)}"
        if first.target is not None:
            what += f", {numbers.format_duration(first.target.seconds)} at {first.target.point}"
    return page.clean_remark(f"run {number}: {profile.program}{build}: {elapsed}: {what}")


def render_document_line(path: Path, words: str) -> str:
    """Return what is said of a file that is no run, and that a plugin knows."""
    return f"{path} is {words}"


def render_quarantine_line(path: Path, reason: str) -> str:
    """Return one line on a profile that cannot be read; the reason may begin with its path."""
    return f"set aside: {reason if reason.startswith(f'{path}:') else f'{path}: {reason}'}"


def render_change_lines(change: Comparison, page: Page) -> list[str]:
    """Return what moved by more than noise, the largest first; one line where nothing did, or the noise is unknown."""
    head = f"since {change.before}: run time {_format_signed(change.actual.delta_s)}"
    if any(change.disturbed):
        head += f" excluding {sum(change.disturbed)} disturbed of {sum(change.runs)} runs"
    if change.actual.beyond_noise is None:
        return [page.clean_remark(f"{head} (one run each: noise unknown)")]
    moved = sorted((one for one in change.changes if one.beyond_noise), key=lambda one: -abs(one.delta_s))
    if not moved:
        doubt = "too few runs to separate from noise" if change.is_undecided(change.actual) else "within noise"
        return [page.clean_remark(f"{head}, {doubt}")]
    lines = [page.clean_remark(head)]
    for one in moved[:_CHANGES]:
        place = f" in {one.places[0][0]}" if one.places else ""
        lines.append(
            page.clean_remark(
                f"  {one.name} {_format_signed(one.delta_s)}{place} (noise {numbers.format_duration(one.noise_s)})"
            )
        )
    return lines


def render_watch_screen(shown: WatchScreen, page: Page, height: int | None = None) -> Text:
    """Return the live screen for ``page``, of no more than ``height`` lines; the newest program stands last.

    Every program has at least a line as long as there is room. What is left goes to the newest program, whose
    waterfall loses its last lines first, and then to the others, the newer ones first.
    """
    state = _render_state(shown, page)
    if not shown.programs:
        where = ", ".join(page.clean_name(root) for root in shown.roots)
        words = f"Waiting for the first profile in {where}"
        if shown.known_runs:
            known = format_count(shown.known_runs, "run")
            words = f"Waiting for the next profile in {where}; 'gapwatch history' shows the {known} that came before"
        return join_lines([*render_paragraph(words, page, "bold"), make_line(), *state])
    *older, newest = shown.programs
    room = None if height is None else height - len(state)
    most = len(older) + 1 if room is None else max(0, room - _NEWEST_LINES)
    lines = _render_program(newest, page, None if room is None else room - min(most, _count_summary_lines(len(older))))
    for number, program in enumerate(reversed(older)):
        more = _render_program(program, page)
        needed = len(more) + len(lines) + _count_summary_lines(len(older) - 1)
        if (number + 2 > _LAST_BLOCKS) if room is None else (needed > room):
            break
        lines = more + lines
        older = older[:-1]
    return join_lines([*_summarize_programs(older, page, most), *lines, *state][:height])


def _count_summary_lines(programs: int) -> int:
    return programs + 1 if programs else 0


def _summarize_programs(programs: Sequence[ProgramScreen], page: Page, most: int) -> list[Text]:
    """Return a line for each program, and an empty one, ``most`` in all: the oldest are counted where they are more."""
    if not programs or most < 2:
        return []
    hidden = 0 if len(programs) < most else len(programs) - (most - 2)
    lines = [make_line((f"{page.signs.ellipsis} {hidden} more programs", "dim"))] if hidden else []
    for program in programs[hidden:]:
        text = render_run_line(program.number, program.advice, page)
        lines.append(make_line(shorten_text(text, page.width, page.signs.ellipsis, keep=0.8)))
    return [*lines, make_line()]


def _render_program(program: ProgramScreen, page: Page, room: int | None = None) -> list[Text]:
    """Return what is said of a program and an empty line; the waterfall takes what is left of ``room``."""
    advice, profile = program.advice, program.advice.profile
    name = shorten_text(page.clean_name(profile.program), max(20, page.prose_width // 2), page.signs.ellipsis)
    build = f" {page.clean_name(profile.build)}" if profile.build else ""
    elapsed = describe_length(profile, "without times")
    lines = render_heading(f"{name}{build}: {elapsed}", page, f"run {program.number}, evidence {advice.grade.letter}")
    if program.change is not None:
        style = "yellow" if program.change.largest_increase else "dim"
        lines += [
            part for text in render_change_lines(program.change, page) for part in render_paragraph(text, page, style)
        ]
    steps = render_headlines(advice, page)
    told = [line for text in describe_parts(advice, page) for line in render_paragraph(text, page, "dim")]
    steps = [*told, *([make_line()] if told and steps else []), *steps]
    nothing = "all recommendations suppressed" if advice.recommendations else advice.verdict
    after = [make_line(), *(steps or render_paragraph(nothing, page, "bold")), make_line()]
    levels = render_waterfall(advice, page) if advice.gaps else []
    if room is not None and len(lines) + len(levels) + len(after) > room:
        kept = max(0, room - len(lines) - len(after) - 1)
        levels = [*levels[:kept], make_line(page.signs.ellipsis)] if kept else []
    return [*lines, *levels, *after]


def _render_state(shown: WatchScreen, page: Page) -> list[Text]:
    counts = ", ".join(f"{count} {state}" for state, count in shown.counts.items() if count)
    reading = f"; reading {shown.reading}" if shown.reading else ""
    left = f"; about {shown.remaining_time} left" if shown.remaining_time else ""
    lines = render_paragraph(f"files: {counts or 'none yet'}{reading}{left}", page, "dim")
    for trouble in shown.troubles[-_TROUBLES:]:
        lines += render_paragraph(page.clean_remark(trouble), page, "yellow")
    return lines


def _format_signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{numbers.format_duration(abs(seconds))}"
