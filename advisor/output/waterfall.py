"""The bounds as a waterfall: each gap a bar from its lower to its upper bound, on the axis of the run's seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.cells import cell_len

from advisor.model.records import OF_COMPUTATION
from advisor.output import numbers
from advisor.output.explanation_text import LEAST_SHARE, describe_account
from advisor.output.recommendation_text import FIRST
from advisor.output.text_cells import make_line, pad_text, wrap_text
from advisor.output.wording import BOUNDS, describe_gap, find_base_bound

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from rich.text import Text

    from advisor.model.records import Advice, Gap, Status
    from advisor.output.page import Page

#: At most this share of the width goes to the words in front of the bars.
_LABEL_SHARE = 0.45
#: Longer names, those of many merged gaps, push their words to the right alone.
_SHORT_NAME = 9


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """One bar: where it starts and ends on the axis, in seconds, and what stands beside it."""

    name: str
    words: str
    from_s: float
    to_s: float
    seconds: str
    share: str
    status: Status
    style: str
    see: str
    explanation: str = ""


def render_waterfall(advice: Advice, page: Page) -> list[Text]:
    """Return the lines of the waterfall; the recommendations on the screen are pointed at from their gaps."""
    rows = _build_rows(advice, page)
    bars = _render_list(rows, page) if page.as_list else _render_bars(rows, page)
    marks = {numbers.MARKS[row.status] for row in rows}
    shown = [words for mark, words in numbers.LEGEND.items() if mark in marks]
    return bars + ([make_line(("; ".join(shown), "dim"))] if shown else [])


def _build_rows(advice: Advice, page: Page) -> list[WaterfallRow]:
    known = {bound.name: bound.seconds for bound in advice.bounds if bound.seconds is not None}
    base = find_base_bound(advice)
    values = [known[base.name]] if base else []
    texts = numbers.format_duration_column([*values, *(gap.seconds for gap in advice.gaps)])
    shares = numbers.format_percentage_column([gap.share for gap in advice.gaps])
    rows = []
    if base and base.name != "actual":
        words = page.clean_prose(BOUNDS.get(base.name, ""))
        told = _describe_parts(advice, base.name, page)
        below = OF_COMPUTATION.difference(*(gap.members for gap in advice.gaps))
        see = _find_references(advice, below)
        rows.append(WaterfallRow(base.name, words, 0.0, values[0], texts[0], "", base.status, "green", see, told))
    for gap, seconds, share in zip(advice.gaps, texts[len(values) :], shares, strict=True):
        row = _build_gap_row(gap, known, seconds, share, _find_references(advice, {gap.name, *gap.members}), page)
        told = _describe_parts(advice, gap.name, page)
        rows.append(replace(row, explanation=row.explanation or told))
    return rows


def _describe_parts(advice: Advice, name: str, page: Page) -> str:
    """Return what findings explain of a gap or of the lowest bound; nothing where they explain nothing."""
    least_s = LEAST_SHARE * advice.profile.actual_s
    told = (describe_account(account, least_s) for account in advice.accounts if account.gap == name)
    return page.clean_remark(next(told, ""))


def _build_gap_row(gap: Gap, known: dict[str, float], seconds: str, share: str, see: str, page: Page) -> WaterfallRow:
    upper = known.get(gap.upper, 0.0)
    lower = known.get(gap.lower, 0.0)
    negative = seconds.startswith("-")
    explanation = gap.reason or "measured below the previous bound" if negative else ""
    style = "red" if negative else "bold yellow" if see else "cyan"
    return WaterfallRow(
        page.clean_name(gap.name),
        page.clean_prose(describe_gap(gap)),
        lower,
        upper,
        seconds,
        share,
        gap.status,
        style,
        see,
        page.clean_remark(explanation),
    )


def _find_references(advice: Advice, names: AbstractSet[str]) -> str:
    """Return the numbers of the recommendations on a brief screen that aim at one of these gaps.

    Gaps that the run does not tell apart lie in the lowest bound: that is where computation is to be shortened.
    """
    return " ".join(str(item.rank) for item in advice.pending[:FIRST] if not names.isdisjoint(item.gaps))


def _render_bars(rows: list[WaterfallRow], page: Page) -> list[Text]:
    names = max((len(row.name) for row in rows if len(row.name) <= _SHORT_NAME), default=0)
    seconds = max((len(row.seconds) for row in rows), default=0) + 1
    shares = max((len(row.share) for row in rows), default=0)
    see = max((len(row.see) for row in rows), default=0)
    tail = seconds + 2 + shares + (see + 3 if see else 0)
    labels = min(
        max((names + 2 + cell_len(row.words) for row in rows), default=0), round(page.frame_width * _LABEL_SHARE)
    )
    room = page.frame_width - labels - tail - 4
    scale = max((max(row.from_s, row.to_s) for row in rows), default=0.0)
    lines: list[Text] = []
    for row in rows:
        label, *more = _wrap_label(row, names, labels)
        number = numbers.MARKS[row.status] + row.seconds
        pointer = (f" {page.signs.arrow} {row.see}", "bold") if row.see else ""
        bar = _draw_bar(row, scale, room, page)
        lines.append(
            make_line(
                (pad_text(label, labels), "" if row.see else "dim" if _is_empty(row) else ""),
                "  ",
                (bar, row.style),
                "  ",
                pad_text(number, seconds, "right"),
                "  ",
                pad_text(row.share, shares, "right"),
                pointer,
            )
        )
        lines.extend(
            make_line((part, "" if row.see else "dim" if _is_empty(row) else ""), indent=names + 2) for part in more
        )
        lines.extend(
            make_line((part, "dim"), indent=names + 2) for part in _wrap_explanation(row, page.prose_width - names - 2)
        )
    return lines


def _wrap_label(row: WaterfallRow, names: int, width: int) -> list[str]:
    """Return name and words in lines of at most ``width`` cells; all but the first belong below the words."""
    room = width - names - 2
    if cell_len(row.name) <= names:
        first, *more = wrap_text(row.words, room)
        return [f"{pad_text(row.name, names)}  {first}", *more]
    first, *more = wrap_text(f"{row.name}  {row.words}", width)
    return [first, *(wrap_text(" ".join(more), room) if more else ())]


def _is_empty(row: WaterfallRow) -> bool:
    return not row.seconds.strip("-0. mnus")


def _draw_bar(row: WaterfallRow, scale: float, room: int, page: Page) -> str:
    """Return the bar, ``room`` cells wide, in half cells."""
    if scale <= 0 or room < 1:
        return " " * max(0, room)
    signs = page.signs
    first, last = sorted(round(2 * room * edge / scale) for edge in (row.from_s, row.to_s))
    first, last = max(0, first), min(2 * room, max(0, last))
    if first == last:
        at = min(first // 2, room - 1)
        return pad_text(" " * at + ("" if _is_empty(row) else signs.thin), room)
    begins = signs.right_half if first % 2 else ""
    ends = signs.left_half if last % 2 else ""
    whole = signs.full * (last // 2 - -(-first // 2))
    return pad_text(" " * (first // 2) + begins + whole + ends, room)


def _wrap_explanation(row: WaterfallRow, width: int) -> list[str]:
    return wrap_text(row.explanation, width) if row.explanation else []


def _render_list(rows: list[WaterfallRow], page: Page) -> list[Text]:
    lines: list[Text] = []
    for row in rows:
        number = numbers.MARKS[row.status] + row.seconds
        facts = ", ".join(filter(None, (number, row.share, row.see and f"see {row.see}")))
        words = f"{row.name}: {row.words}: {facts}"
        lines.extend(
            make_line(part, indent=2 * bool(at)) for at, part in enumerate(wrap_text(words, page.prose_width - 2))
        )
        lines.extend(make_line((part, "dim"), indent=2) for part in _wrap_explanation(row, page.prose_width - 2))
    return lines
