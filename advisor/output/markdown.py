"""Advice as a comment on a pull request: what changed, what to do next, and the evidence behind a click.

The same advice gives the same text, and its first line tells a bot which comment of its own to replace. Names of the
profile stand in code spans, where no sign means anything; other text has its signs escaped.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from advisor.output import numbers
from advisor.output.clean import clean
from advisor.output.steps import expected
from advisor.output.text import shorten
from advisor.output.words import gap_words, grade_words, how_words, processor_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.analysis.comparison import Change, Comparison
    from advisor.model.records import Advice, HowTo, Recommendation

#: The first line is this mark with the program's name in it.
MARK: Final = "<!-- gapwatch: {} -->"
_ACTIONS: Final = 3
_CHANGES: Final = 5
_LONGEST: Final = 100
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|~&#!])|^([+-]|\d{1,9}(?=[.)]))")
_BACKTICKS: Final = re.compile(r"`+")


def comment(advice: Advice, since: Comparison | None = None) -> str:
    """Return the comment; ``since`` says what changed from the build that the pull request is based on."""
    blocks = [MARK.format(_marked_name(advice.profile.program)), *_head(advice)]
    blocks += _changes(since) if since is not None else []
    blocks += _next(advice)
    blocks += [_folded("Where the seconds go", _seconds(advice))] if advice.gaps else []
    blocks += ["**Problems**\n\n" + "\n".join(f"- {_code(one)}" for one in advice.problems)] if advice.problems else []
    return "\n\n".join(blocks) + "\n"


def _marked_name(name: str) -> str:
    """Return a name that no comment of HTML ends in."""
    return re.sub(r"[^A-Za-z0-9._ -]|-(?=-)", "_", clean(name))[:_LONGEST].strip("-")


def _head(advice: Advice) -> Iterator[str]:
    profile = advice.profile
    took = f"{numbers.seconds(profile.actual_s)} on " if profile.timed else ""
    build = f", build {_code(profile.build)}" if profile.build else ""
    yield f"### gapwatch: {_code(profile.program or profile.run)}, {took}{processor_words(profile)}{build}"
    yield f"Evidence: {grade_words(advice.grade)}."


def _changes(since: Comparison) -> Iterator[str]:
    """Yield what changed since the base build: the run time, and the gaps that moved most."""
    yield f"**Since build {_code(since.before)}**: run time {_delta(since.actual, since)}{_doubt(since)}"
    moved = sorted(since.changes, key=lambda change: -abs(change.delta_s))
    shown = [change for change in moved if change.delta_s][:_CHANGES]
    if shown:
        rows = [
            (_text(change.name), numbers.seconds(change.before_s), numbers.seconds(change.after_s),
             _delta(change, since), _code(change.places[0][0], in_table=True) if change.places else "")
            for change in shown
        ]  # fmt: skip
        yield _table(("gap", "before", "now", "change", "most of it in"), "lrrrl", rows)


def _delta(change: Change, since: Comparison) -> str:
    amount = numbers.seconds(abs(change.delta_s))
    sign = "+" if change.delta_s > 0 else "-" if change.delta_s < 0 else "±"
    doubt = " (too few runs to tell)" if since.unsure(change) else " (within noise)"
    return f"{sign}{amount}" + (doubt if change.beyond_noise is False else "")


def _doubt(since: Comparison) -> str:
    if since.actual.beyond_noise is None:
        return " (one run each: noise is not known)"
    return f" ({sum(since.disturbed)} disturbed runs left out)" if any(since.disturbed) else ""


def _next(advice: Advice) -> Iterator[str]:
    """Yield the actions to take next and, folded, what speaks for each."""
    shown = advice.recommendations[:_ACTIONS]
    if not shown:
        yield f"**{advice.verdict.capitalize()}.**"
        return
    yield f"**To do next**; together they win at most {numbers.seconds(advice.total.ceiling_s)}:"
    rows = [
        (f"{item.rank}", f"{_text(item.title)} ({_text(item.action)})", _where(item), numbers.seconds(item.ceiling_s),
         _text(expected(item)), item.state)
        for item in shown
    ]  # fmt: skip
    yield _table(("", "action", "where", "at most", "expected", ""), "rllrrl", rows)
    for item in shown:
        yield _folded(f"{item.action}: why and how", _details(item))
    left = len(advice.recommendations) - len(shown)
    if left:
        yield f"{left} more: `gapwatch advise --verbose`"


def _where(item: Recommendation) -> str:
    place = f"{item.file}:{item.line}" if item.file and item.line else item.file
    parts = [_code(part, in_table=True) for part in (item.region or item.phase, place) if part]
    return ", ".join(parts) or "the whole run"


def _details(item: Recommendation) -> str:
    rows = [
        (_code(piece.fact, in_table=True), _code(numbers.quantity(piece.value, piece.unit), in_table=True),
         _code(piece.condition, in_table=True), _text(piece.formula))
        for piece in item.evidence
    ]  # fmt: skip
    parts = [
        _text(item.why),
        _table(("fact", "value", "threshold", "how it is computed"), "lrll", rows) if rows else "",
    ]
    parts += [part for how in item.how for part in _how(how)]
    return "\n\n".join([*filter(None, parts), f"Rule: {_code(item.rule_place)}"])


def _how(how: HowTo) -> Iterator[str]:
    words = how_words(how)
    yield f"**{_text(words)}**: {_text(how.text)}" if words else _text(how.text)
    for title, code in (("Before", how.before), ("After", how.after)):
        if code:
            yield f"{title}:"
            yield _fenced(code)


def _seconds(advice: Advice) -> str:
    shares = numbers.shares([gap.share for gap in advice.gaps])
    rows = [
        (_text(gap.name), _text(gap_words(gap)), numbers.MARKS[gap.status] + numbers.seconds(gap.seconds), share)
        for gap, share in zip(advice.gaps, shares, strict=True)
    ]
    legend = [
        words for mark, words in numbers.LEGEND.items() if any(numbers.MARKS[gap.status] == mark for gap in advice.gaps)
    ]
    return "\n\n".join([_table(("gap", "what it is", "seconds", "share"), "llrr", rows), *map(_text, legend)])


def _table(heads: Sequence[str], sides: str, rows: Sequence[Sequence[str]]) -> str:
    marks = ("--:" if side == "r" else ":--" for side in sides)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, tuple(marks), *rows))


def _folded(title: str, content: str) -> str:
    """Return content behind a click."""
    return f"<details><summary>{html.escape(clean(title))}</summary>\n\n{content}\n\n</details>"


def _text(text: str) -> str:
    """Return text whose signs mean themselves in Markdown; its lines are joined, and nobody is called by ``@``."""
    joined = clean(" ".join(text.split()))
    return _MARKUP.sub(_escaped, joined).replace("@", "`@`")


def _escaped(found: re.Match[str]) -> str:
    number = found[2] is not None and found[2].isdigit()
    return f"{found[0]}\\" if number else f"\\{found[0]}"


def _code(text: str, *, in_table: bool = False) -> str:
    """Return a name as code, where no sign in it means anything; what is too long loses its middle."""
    shown = shorten(clean(text), _LONGEST)
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    space = " " if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else ""
    inside = shown.replace("|", "\\|") if in_table else shown
    return f"{fence}{space}{inside}{space}{fence}"


def _fenced(code: str) -> str:
    rows = [clean(row) for row in code.expandtabs(4).strip("\n").split("\n")]
    fence = "`" * max(3, max((len(run) for row in rows for run in _BACKTICKS.findall(row)), default=0) + 1)
    return "\n".join([fence, *rows, fence])
