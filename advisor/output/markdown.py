"""Advice as a comment on a pull request: what changed, what to do next, and the evidence behind a click.

The same advice gives the same text, and its first line tells a bot which comment of its own to replace. Names of the
profile stand in code spans, where no sign means anything; other text has its signs escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from advisor.output import numbers
from advisor.output.clean import clean_text
from advisor.output.explanation_text import describe_part, select_parts
from advisor.output.recommendation_text import describe_expected_gain, format_evidence_value
from advisor.output.text_cells import shorten_text
from advisor.output.wording import (
    describe_added_traffic,
    describe_bound,
    describe_gap,
    describe_grade,
    describe_hot_spots,
    describe_how,
    describe_processors,
    describe_target,
)

if TYPE_CHECKING:
    from advisor.analysis.comparison import Change, Comparison
    from advisor.model.recommendations import HowTo, Recommendation
    from advisor.model.records import Advice

#: The first line is this mark with the program's name in it.
MARK: Final = "<!-- gapwatch: {} -->"
_ACTIONS: Final = 3
_CHANGES: Final = 5
_LONGEST: Final = 100
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|~&#!])|^([+-]|\d{1,9}(?=[.)]))")
_BACKTICKS: Final = re.compile(r"`+")


def render_comment(advice: Advice, since: Comparison | None = None) -> str:
    """Return the comment; ``since`` says what changed from the build that the pull request is based on."""
    blocks = [MARK.format(_escape_marker_name(advice.profile.program)), *_render_head(advice)]
    blocks += _render_changes(since) if since is not None else []
    blocks += _render_parts(advice)
    blocks += _render_next_actions(advice)
    blocks += [_fold_content("Where the seconds go", _render_gap_table(advice))] if advice.gaps else []
    blocks += (
        ["**Problems**\n\n" + "\n".join(f"- {_format_code(one)}" for one in advice.problems)] if advice.problems else []
    )
    return "\n\n".join(blocks) + "\n"


def _escape_marker_name(name: str) -> str:
    """Return a name that no comment of HTML ends in."""
    return re.sub(r"[^A-Za-z0-9._ -]|-(?=-)", "_", clean_text(name))[:_LONGEST].strip("-")


def _render_head(advice: Advice) -> Iterator[str]:
    profile = advice.profile
    took = f"{numbers.format_duration(profile.actual_s)} on " if profile.has_run_time else ""
    build = f", build {_format_code(profile.build)}" if profile.build else ""
    yield f"### gapwatch: {_format_code(profile.program or profile.run)}, {took}{describe_processors(profile)}{build}"
    yield f"Evidence: {describe_grade(advice.grade)}."


def _render_changes(since: Comparison) -> Iterator[str]:
    """Yield what changed since the base build: the run time, and the gaps that moved most."""
    delta = _format_delta(since.actual, since)
    yield f"**Since build {_format_code(since.before)}**: run time {delta}{_describe_doubt(since)}"
    yield from (f"Adds {_escape_markdown(describe_added_traffic(change))}." for change in since.added_traffic[:1])
    moved = sorted(since.changes, key=lambda change: -abs(change.delta_s))
    shown = [change for change in moved if change.delta_s][:_CHANGES]
    if shown:
        rows = [
            (_escape_markdown(change.name), numbers.format_duration(change.before_s),
            numbers.format_duration(change.after_s),
             _format_delta(change, since), _format_code(change.places[0][0], in_table=True) if change.places else "")
            for change in shown
        ]  # fmt: skip
        yield _render_table(("gap", "before", "now", "change", "mainly in"), "lrrrl", rows)


def _format_delta(change: Change, since: Comparison) -> str:
    amount = numbers.format_duration(abs(change.delta_s))
    sign = "+" if change.delta_s > 0 else "-" if change.delta_s < 0 else "±"
    doubt = " (too few runs to tell)" if since.is_undecided(change) else " (within noise)"
    return f"{sign}{amount}" + (doubt if change.beyond_noise is False else "")


def _describe_doubt(since: Comparison) -> str:
    if since.actual.beyond_noise is None:
        return " (one run each: noise unknown)"
    return f" ({sum(since.disturbed)} disturbed runs excluded)" if any(since.disturbed) else ""


def _render_parts(advice: Advice) -> Iterator[str]:
    """Yield what explains most of the gaps, with its seconds and how they are known."""
    told = [f"- {_escape_markdown(describe_part(one))}" for one in select_parts(advice)]
    if told:
        yield "\n".join(["**What explains the gaps**", "", *told])


def _render_next_actions(advice: Advice) -> Iterator[str]:
    """Yield the actions to take next and, folded, what speaks for each."""
    shown = advice.recommendations[:_ACTIONS]
    if not shown:
        bound = describe_bound(advice)
        silent = advice.verdict == "nothing significant" and bound
        yield f"**{_escape_markdown(bound)}**" if silent else f"**{advice.verdict.capitalize()}.**"
        if known := describe_hot_spots(advice):
            yield _escape_markdown(known)
        return
    yield f"**To do next** (combined saving: up to {numbers.format_duration(advice.total.ceiling_s)}):"
    if meant := describe_target(advice):
        yield _escape_markdown(meant)
    rows = [
        (f"{item.rank}", f"{_escape_markdown(item.title)} ({_escape_markdown(item.action)})", _describe_place(item),
        _describe_ceiling(item),
         _escape_markdown(describe_expected_gain(item)), item.state)
        for item in shown
    ]  # fmt: skip
    yield _render_table(("", "action", "where", "at most", "expected", ""), "rllrrl", rows)
    for item in shown:
        yield _fold_content(f"{item.action}: why and how", _render_details(item))
    left = len(advice.recommendations) - len(shown)
    if left:
        yield f"{left} more: `gapwatch advise --verbose`"


def _describe_ceiling(item: Recommendation) -> str:
    """Return the most that an action wins in this run, and in the one that the program is meant for."""
    here = numbers.format_duration(item.ceiling_s)
    if item.target is None:
        return here
    return f"{here}; {numbers.format_duration(item.target.seconds)} at {_escape_markdown(item.target.point)}"


def _describe_place(item: Recommendation) -> str:
    place = f"{item.file}:{item.line}" if item.file and item.line else item.file
    parts = [_format_code(part, in_table=True) for part in (item.region or item.phase, place) if part]
    return ", ".join(parts) or "the whole run"


def _render_details(item: Recommendation) -> str:
    rows = [
        (_format_code(piece.fact, in_table=True), _format_code(format_evidence_value(piece), in_table=True),
         _format_code(piece.condition, in_table=True), _escape_markdown(piece.formula))
        for piece in item.evidence
    ]  # fmt: skip
    parts = [
        _escape_markdown(item.why),
        _render_table(("fact", "value", "threshold", "computation"), "lrll", rows) if rows else "",
    ]
    parts += [part for how in item.how for part in _render_instruction(how)]
    return "\n\n".join([*filter(None, parts), f"Rule: {_format_code(item.rule_place)}"])


def _render_instruction(how: HowTo) -> Iterator[str]:
    words = describe_how(how)
    yield f"**{_escape_markdown(words)}**: {_escape_markdown(how.text)}" if words else _escape_markdown(how.text)
    for title, code in (("Before", how.before), ("After", how.after)):
        if code:
            yield f"{title}:"
            rows = [clean_text(row) for row in code.expandtabs(4).strip("\n").split("\n")]
            fence = "`" * max(3, max((len(run) for row in rows for run in _BACKTICKS.findall(row)), default=0) + 1)
            yield "\n".join([fence, *rows, fence])


def _render_gap_table(advice: Advice) -> str:
    shares = numbers.format_percentage_column([gap.share for gap in advice.gaps])
    rows = [
        (
            _escape_markdown(gap.name),
            _escape_markdown(describe_gap(gap)),
            numbers.MARKS[gap.status] + numbers.format_duration(gap.seconds),
            share,
        )
        for gap, share in zip(advice.gaps, shares, strict=True)
    ]
    legend = [
        words for mark, words in numbers.LEGEND.items() if any(numbers.MARKS[gap.status] == mark for gap in advice.gaps)
    ]
    return "\n\n".join(
        [_render_table(("gap", "what it is", "seconds", "share"), "llrr", rows), *map(_escape_markdown, legend)]
    )


def _render_table(heads: Sequence[str], sides: str, rows: Sequence[Sequence[str]]) -> str:
    marks = ("--:" if side == "r" else ":--" for side in sides)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, tuple(marks), *rows))


def _fold_content(title: str, content: str) -> str:
    """Return content behind a click."""
    return f"<details><summary>{html.escape(clean_text(title))}</summary>\n\n{content}\n\n</details>"


def _escape_markdown(text: str) -> str:
    """Return text escaped for Markdown on one line, without ``@`` mentions."""
    joined = clean_text(" ".join(text.split()))
    return _MARKUP.sub(_escape_match, joined).replace("@", "`@`")


def _escape_match(found: re.Match[str]) -> str:
    number = found[2] is not None and found[2].isdigit()
    return f"{found[0]}\\" if number else f"\\{found[0]}"


def _format_code(text: str, *, in_table: bool = False) -> str:
    """Return a name as code, where no sign in it means anything; what is too long loses its middle."""
    shown = shorten_text(clean_text(text), _LONGEST)
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    space = " " if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else ""
    inside = shown.replace("|", "\\|") if in_table else shown
    return f"{fence}{space}{inside}{space}{fence}"
