"""A program as the live screen shows it: how it moves, its gaps over builds, its items, what was noticed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.output import numbers
from advisor.output.details import render_observations
from advisor.output.no_advice import render_no_advice
from advisor.output.page import render_bullet, render_command, render_heading, render_paragraph
from advisor.output.recommendation_text import render_recommendation
from advisor.output.sparkline import describe_values, draw_sparkline
from advisor.output.tables import ColumnHead, render_table
from advisor.output.text_cells import make_line, pad_text, shorten_text
from advisor.output.watch_screen import render_change_lines
from advisor.output.waterfall import render_waterfall
from advisor.output.wording import GAPS, describe_length, select_command

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.analysis.comparison import Comparison
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Advice
    from advisor.model.reports import Line, Series
    from advisor.output.page import Page

#: Builds that are listed, the newest.
_BUILDS: Final = 12
_NAME: Final = 20


class Trend(NamedTuple):
    """How a program moved since the build before: a sign, a word that says the same, and a style."""

    sign: str
    word: str
    style: str


_WORSE: Final = Trend("▲", "slower", "bold red")
_BETTER: Final = Trend("▼", "faster", "green")
_SAME: Final = Trend("=", "same", "")
_UNSURE: Final = Trend("~", "unsure", "yellow")
_UNKNOWN: Final = Trend("?", "no repeat", "dim")
_FIRST: Final = Trend("·", "first", "dim")
#: The run time is as it was, but a gap grew at the cost of another.
_SHIFTED: Final = Trend("▲", "gap grew", "yellow")


def find_trend(change: Comparison | None) -> Trend:
    """Return how a program moved since the build before, by more than noise or not."""
    if change is None:
        return _FIRST
    actual = change.actual
    if actual.beyond_noise is None:
        return _UNKNOWN
    if actual.beyond_noise:
        return _WORSE if actual.delta_s > 0 else _BETTER
    if change.is_undecided(actual):
        return _UNSURE
    return _SHIFTED if change.largest_increase else _SAME


def format_trend(trend: Trend, page: Page) -> str:
    """Return sign and word, the word alone where the page lacks the sign."""
    sign = page.clean_prose(trend.sign)
    return f"{sign} {trend.word}" if len(sign) == 1 else trend.word


def render_program(number: int, advice: Advice, change: Comparison | None, page: Page) -> list[Text]:
    """Return the newest run of a program: its time, what changed since the build before, and where the seconds go."""
    profile = advice.profile
    name = shorten_text(page.clean_name(profile.program), max(20, page.prose_width // 2), page.signs.ellipsis)
    build = f" {page.clean_name(profile.build)}" if profile.build else ""
    elapsed = describe_length(profile, "without times")
    lines = render_heading(f"{name}{build}: {elapsed}", page, f"run {number}, evidence {advice.grade.letter}")
    if change is not None:
        style = "yellow" if change.largest_increase else "dim"
        for text in render_change_lines(change, page):
            lines += render_paragraph(text, page, style)
    lines.append(make_line())
    lines += render_waterfall(advice, page) if advice.gaps else []
    if not advice.recommendations:
        lines += [make_line(), *render_no_advice(advice, page)]
        command = select_command(advice) if advice.verdict == "insufficient evidence" else None
        lines += [render_command("next: ", command, page)] if command else []
    return lines


def render_item(item: Recommendation, advice: Advice, page: Page) -> list[Text]:
    """Return everything about one recommendation on a run."""
    program = shorten_text(page.clean_name(advice.profile.program), page.prose_width, page.signs.ellipsis)
    return [*render_paragraph(program, page, "dim"), make_line(), *render_recommendation(item, page)]


def render_notices(advice: Advice, page: Page) -> list[Text]:
    """Return what plugins found and how far the evidence carries; a sentence where there is nothing."""
    blocks = [block for block in render_observations(advice, page) if block]
    lines = [line for block in blocks for line in (*block, make_line())]
    for problem in advice.problems:
        lines += render_paragraph(page.clean_remark(problem), page, "yellow")
    return lines or render_paragraph("Nothing was noticed.", page)


def render_history(series: Series | None, page: Page) -> list[Text]:
    """Return run time and largest gaps over the builds: a line of signs each, or words, and the newest builds."""
    if series is None:
        return render_paragraph("Only one build so far; its history starts with the next one.", page)
    builds = series.x.names
    lines = render_heading(f"Run time and gaps over {len(builds)} builds", page, "means of the runs of each build")
    for line in series.lines:
        lines += _render_line(line, len(builds), page)
    return [*lines, make_line(), *_render_builds(series, page)]


def _values_by_build(line: Line, builds: int) -> list[float | None]:
    known = dict(zip(line.x, line.y, strict=True))
    return [known.get(float(at)) for at in range(builds)]


def _render_line(line: Line, builds: int, page: Page) -> list[Text]:
    values = _values_by_build(line, builds)
    name = page.clean_name(line.name)
    newest = numbers.format_duration(values[-1])
    if page.as_list:
        texts = [numbers.format_duration(value) if value is not None else "unknown" for value in values]
        return render_paragraph(f"{name}: {describe_values(texts)}", page)
    drawn = draw_sparkline(values, page.frame_width - _NAME - 14, page)
    words = page.clean_prose(GAPS.get(line.name, ""))
    label = pad_text(shorten_text(name, _NAME - 2, page.signs.ellipsis), _NAME)
    return [make_line(label, (drawn, "cyan"), pad_text(newest, 12, "right"), (f"  {words}", "dim"))]


def _render_builds(series: Series, page: Page) -> list[Text]:
    """Return the newest builds with the run time and the three largest gaps of each."""
    builds = series.x.names
    shown = series.lines[:4]
    columns = [_values_by_build(line, len(builds)) for line in shown]
    rows = [
        (page.clean_name(builds[at]), *(numbers.format_duration(column[at]) for column in columns))
        for at in reversed(range(len(builds)))
    ][:_BUILDS]
    heads = [ColumnHead("build"), *(ColumnHead(page.clean_name(line.name), "number") for line in shown)]
    return render_table(heads, rows, page)


def render_files(
    counts: Iterable[tuple[str, int]], troubles: Sequence[tuple[str, str, str]], remarks: Sequence[str], page: Page
) -> list[Text]:
    """Return the files by state, what is in the way, and what the daemon said."""
    lines = render_heading("Files", page)
    lines += [make_line(f"{count:>9}  {state}") for state, count in counts]
    for title, texts in (
        ("In the way", [f"{state}: {path}: {reason}" for path, state, reason in troubles]),
        ("The daemon", [*remarks]),
    ):
        if texts:
            lines += [make_line(), *render_heading(title, page)]
            lines += [line for text in texts for line in render_bullet(page.clean_remark(text), page)]
    return lines
