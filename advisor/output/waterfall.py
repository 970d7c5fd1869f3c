"""The bounds as a waterfall: each gap a bar from its lower to its upper bound, on the axis of the run's seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from advisor.output import numbers
from advisor.output.text import line, pad, wrap
from advisor.output.words import BOUNDS, base_bound, gap_words

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.model.records import Advice, Gap, Status
    from advisor.output.page import Page

#: At most this share of the width goes to the words in front of the bars.
_LABEL_SHARE = 0.45
#: Longer names, those of many merged gaps, push their words to the right alone.
_SHORT_NAME = 9


@dataclass(frozen=True, slots=True)
class Row:
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


def waterfall(advice: Advice, page: Page, numbered: int = 3) -> list[Text]:
    """Return the lines of the waterfall; ``numbered`` recommendations are pointed at from their gaps."""
    rows = _rows(advice, page, numbered)
    bars = _as_list(rows, page) if page.as_list else _as_bars(rows, page)
    return bars + _legend(rows)


def _rows(advice: Advice, page: Page, numbered: int) -> list[Row]:
    known = {bound.name: bound.seconds for bound in advice.bounds if bound.seconds is not None}
    base = base_bound(advice)
    values = [known[base.name]] if base else []
    texts = numbers.column([*values, *(gap.seconds for gap in advice.gaps)])
    shares = numbers.shares([gap.share for gap in advice.gaps])
    rows = []
    if base and base.name != "actual":
        words = page.prose(BOUNDS.get(base.name, ""))
        rows.append(Row(base.name, words, 0.0, values[0], texts[0], "", base.status, "green", ""))
    for gap, seconds, share in zip(advice.gaps, texts[len(values) :], shares, strict=True):
        rows.append(_gap_row(gap, known, seconds, share, _see(advice, gap, numbered), page))
    return rows


def _gap_row(gap: Gap, known: dict[str, float], seconds: str, share: str, see: str, page: Page) -> Row:
    upper = known.get(gap.upper, 0.0)
    lower = known.get(gap.lower, 0.0)
    negative = seconds.startswith("-")
    explanation = gap.reason or "measured below the bound before it" if negative else ""
    style = "red" if negative else "bold yellow" if see else "cyan"
    return Row(
        page.name(gap.name),
        page.prose(gap_words(gap)),
        lower,
        upper,
        seconds,
        share,
        gap.status,
        style,
        see,
        page.remark(explanation),
    )


def _see(advice: Advice, gap: Gap, numbered: int) -> str:
    """Return the numbers of the recommendations on the screen that aim at this gap."""
    shown = advice.recommendations[:numbered]
    return " ".join(str(item.rank) for item in shown if {gap.name, *gap.members} & {*item.gaps})


def _as_bars(rows: list[Row], page: Page) -> list[Text]:
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
        label, *more = _label(row, names, labels)
        number = numbers.MARKS[row.status] + row.seconds
        pointer = (f" {page.signs.arrow} {row.see}", "bold") if row.see else ""
        bar = _bar(row, scale, room, page)
        lines.append(
            line(
                (pad(label, labels), "" if row.see else "dim" if _empty(row) else ""),
                "  ",
                (bar, row.style),
                "  ",
                pad(number, seconds, "right"),
                "  ",
                pad(row.share, shares, "right"),
                pointer,
            )
        )
        lines.extend(line((part, "" if row.see else "dim" if _empty(row) else ""), indent=names + 2) for part in more)
        lines.extend(line((part, "dim"), indent=names + 2) for part in _explained(row, page.prose_width - names - 2))
    return lines


def _label(row: Row, names: int, width: int) -> list[str]:
    """Return name and words in lines of at most ``width`` cells; all but the first belong below the words."""
    room = width - names - 2
    if cell_len(row.name) <= names:
        first, *more = wrap(row.words, room)
        return [f"{pad(row.name, names)}  {first}", *more]
    first, *more = wrap(f"{row.name}  {row.words}", width)
    return [first, *(wrap(" ".join(more), room) if more else ())]


def _empty(row: Row) -> bool:
    return not row.seconds.strip("-0. mnus")


def _bar(row: Row, scale: float, room: int, page: Page) -> str:
    """Return the bar, ``room`` cells wide, in half cells."""
    if scale <= 0 or room < 1:
        return " " * max(0, room)
    signs = page.signs
    first, last = sorted(round(2 * room * edge / scale) for edge in (row.from_s, row.to_s))
    first, last = max(0, first), min(2 * room, max(0, last))
    if first == last:
        at = min(first // 2, room - 1)
        return pad(" " * at + ("" if _empty(row) else signs.thin), room)
    begins = signs.right_half if first % 2 else ""
    ends = signs.left_half if last % 2 else ""
    whole = signs.full * (last // 2 - -(-first // 2))
    return pad(" " * (first // 2) + begins + whole + ends, room)


def _explained(row: Row, width: int) -> list[str]:
    return wrap(row.explanation, width) if row.explanation else []


def _as_list(rows: list[Row], page: Page) -> list[Text]:
    lines: list[Text] = []
    for row in rows:
        number = numbers.MARKS[row.status] + row.seconds
        facts = ", ".join(filter(None, (number, row.share, row.see and f"see {row.see}")))
        words = f"{row.name}: {row.words}: {facts}"
        lines.extend(line(part, indent=2 * bool(at)) for at, part in enumerate(wrap(words, page.prose_width - 2)))
        lines.extend(line((part, "dim"), indent=2) for part in _explained(row, page.prose_width - 2))
    return lines


def _legend(rows: list[Row]) -> list[Text]:
    marks = {numbers.MARKS[row.status] for row in rows}
    shown = [words for mark, words in numbers.LEGEND.items() if mark in marks]
    return [line(("; ".join(shown), "dim"))] if shown else []
