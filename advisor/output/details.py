"""What ``--verbose`` adds to the screen: every bound, every gap in its parts, every doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.output import numbers
from advisor.output.sections import bullet, heading, paragraph, to_copy
from advisor.output.tables import Head, table
from advisor.output.text import line
from advisor.output.words import EFFICIENCIES, gap_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from advisor.model.records import Advice, Gap, Share
    from advisor.output.page import Page

#: Rows of each attribution table; the document has them all.
_ROWS = 10


def details(advice: Advice, page: Page) -> list[list[Text]]:
    """Return the blocks of the long form, in the order in which they are read."""
    return [
        _bounds(advice, page),
        *(_gap(gap, page) for gap in advice.gaps if gap.seconds),
        _efficiencies(advice, page),
        _quality(advice, page),
        _needs(advice, page),
        _findings(advice, page),
    ]


def _bounds(advice: Advice, page: Page) -> list[Text]:
    heads = [Head("bound"), Head("seconds", "number"), Head("status"), Head("reason", "prose")]
    known = iter(numbers.column([bound.seconds for bound in advice.bounds if bound.seconds is not None]))
    rows = [
        (
            page.name(bound.name),
            "-" if bound.seconds is None else next(known),
            bound.status,
            page.remark(bound.reason or ""),
        )
        for bound in advice.bounds
    ]
    lines = [*heading("Lower bounds on the run time", page), *table(heads, rows, page)]
    commands = dict.fromkeys(bound.collect for bound in advice.bounds if bound.collect)
    return lines + [to_copy("to get what is missing: ", command, page) for command in commands]


def _gap(gap: Gap, page: Page) -> list[Text]:
    title = f"Gap {gap.name}, {gap_words(gap)}: {numbers.seconds(gap.seconds)} ({gap.status})"
    lines = heading(page.name(title), page, f"from {gap.lower} to {gap.upper}")
    lines += paragraph(page.remark(gap.reason or ""), page, "dim")
    for kind, shares in (("region", gap.regions), ("processor", gap.processors), ("iteration", gap.iterations)):
        lines += _shares(kind, shares, page)
    return lines + _shares("cause", gap.causes, page)


def _shares(kind: str, shares: Sequence[Share], page: Page) -> list[Text]:
    """Return one attribution as a table of its largest parts; columns without any entry are left out."""
    if not shares:
        return []
    shown = sorted(shares, key=lambda share: -abs(share.seconds))[:_ROWS]
    seconds = numbers.column([share.seconds for share in shown])
    columns = {
        kind: [page.name(share.name) for share in shown],
        "kind": [page.name(share.kind or "") for share in shown],
        "phase": [page.name(share.phase or "") for share in shown],
        "place": [_place(share, page) for share in shown],
    }
    filled = {title: cells for title, cells in columns.items() if any(cells)}
    heads = [*(Head(title) for title in filled), Head("seconds", "number")]
    lines = table(heads, list(zip(*filled.values(), seconds, strict=True)), page, indent=2)
    left = len(shares) - len(shown)
    return [*lines, line((f"and {left} smaller ones", "dim"), indent=2)] if left > 0 else lines


def _place(share: Share, page: Page) -> str:
    if not share.file:
        return ""
    return page.name(share.file) + (f":{share.line}" if share.line is not None else "")


def _efficiencies(advice: Advice, page: Page) -> list[Text]:
    found = {efficiency.name: efficiency for efficiency in advice.efficiencies}
    names = [name for name in EFFICIENCIES if name in found] + [name for name in found if name not in EFFICIENCIES]
    rows = [
        (
            page.name(name.replace("_", " ")),
            numbers.share(found[name].value),
            found[name].status,
            page.remark(found[name].reason or ""),
        )
        for name in names
    ]
    heads = [Head("efficiency"), Head("value", "number"), Head("status"), Head("reason", "prose")]
    return [*heading("Efficiencies", page), *table(heads, rows, page)] if rows else []


def _quality(advice: Advice, page: Page) -> list[Text]:
    lines = heading(
        "Quality of the evidence", page, f"grade {advice.grade.letter}, {numbers.share(advice.grade.score)}"
    )
    for note in advice.grade.notes:
        penalty = f" (costs {numbers.share(note.penalty)} of the grade)" if note.penalty else ""
        lines += bullet(page.remark(f"{note.name}: {note.text}{penalty}"), page)
        if note.collect:
            lines.append(to_copy("better with: ", note.collect, page, indent=2))
    return lines


def _needs(advice: Advice, page: Page) -> list[Text]:
    if not advice.needs:
        return []
    lines = heading("Facts that rules asked for", page)
    for command in dict.fromkeys(need.command for need in advice.needs):
        facts = ", ".join(need.fact for need in advice.needs if need.command == command)
        lines.append(to_copy("", command, page))
        lines += paragraph(f"shows {page.name(facts)}", page, "dim", indent=2)
    return lines


def _findings(advice: Advice, page: Page) -> list[Text]:
    lines = heading("Findings of plugins", page) if advice.findings else []
    for finding in advice.findings:
        head = f"{finding.plugin}, {finding.kind}, {finding.subject}: {finding.text}"
        lines += bullet(page.name(head), page)
        measured = ", ".join(f"{name} {value:.4g}" for name, value in finding.measures.items())
        lines += paragraph(page.name(measured), page, "dim", indent=2)
    return lines
