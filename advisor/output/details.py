"""What ``--verbose`` adds to the screen: every bound, every gap in its parts, every doubt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.output import numbers
from advisor.output.page import render_bullet, render_command, render_heading, render_paragraph
from advisor.output.tables import ColumnHead, render_table
from advisor.output.text_cells import make_line
from advisor.output.wording import EFFICIENCIES, describe_gap

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.model.recommendations import Dismissed
    from advisor.model.records import Advice, Gap, Share
    from advisor.output.page import Page

#: Rows of each attribution table; the document has them all.
_ROWS = 10


def render_details(advice: Advice, page: Page) -> list[list[Text]]:
    """Return the blocks of the long form, in the order in which they are read."""
    return [
        _render_bounds(advice, page),
        *(_render_gap(gap, page) for gap in advice.gaps if gap.seconds),
        _no_help(advice, page),
        _render_efficiencies(advice, page),
        _render_quality(advice, page),
        _render_needs(advice, page),
        _render_findings(advice, page),
    ]


def render_observations(advice: Advice, page: Page) -> list[list[Text]]:
    """Return the blocks on what was noticed: findings, what would not help, efficiencies, doubts, missing facts."""
    return [
        _render_findings(advice, page),
        _no_help(advice, page),
        _render_efficiencies(advice, page),
        _render_quality(advice, page),
        _render_needs(advice, page),
    ]


def _render_bounds(advice: Advice, page: Page) -> list[Text]:
    heads = [ColumnHead("bound"), ColumnHead("seconds", "number"), ColumnHead("status"), ColumnHead("reason", "prose")]
    known = iter(
        numbers.format_duration_column([bound.seconds for bound in advice.bounds if bound.seconds is not None])
    )
    rows = [
        (
            page.clean_name(bound.name),
            "-" if bound.seconds is None else next(known),
            bound.status,
            page.clean_remark(bound.reason or ""),
        )
        for bound in advice.bounds
    ]
    lines = [*render_heading("Lower bounds on the run time", page), *render_table(heads, rows, page)]
    commands = dict.fromkeys(bound.collect for bound in advice.bounds if bound.collect)
    return lines + [render_command("to get what is missing: ", command, page) for command in commands]


def _render_gap(gap: Gap, page: Page) -> list[Text]:
    title = f"Gap {gap.name}, {describe_gap(gap)}: {numbers.format_duration(gap.seconds)} ({gap.status})"
    lines = render_heading(page.clean_name(title), page, f"from {gap.lower} to {gap.upper}")
    lines += render_paragraph(page.clean_remark(gap.reason or ""), page, "dim")
    for kind, shares in (("region", gap.regions), ("processor", gap.processors), ("iteration", gap.iterations)):
        lines += _render_shares(kind, shares, page)
    return lines + _render_shares("cause", gap.causes, page)


def _no_help(advice: Advice, page: Page) -> list[Text]:
    """Return the changes that would not help, with what they would win, those that may, and those not simulated."""
    lines: list[Text] = []
    simulated = [(item, item.gain_s) for item in advice.dismissed if item.gain_s is not None]
    for title, uncertain in (("Changes that would not help", False), ("Changes that may help", True)):
        listed = [(item, gain_s) for item, gain_s in simulated if (item.interval_s is not None) == uncertain]
        note = "by simulation; this run does not prove it" if uncertain else "by simulation"
        lines += render_heading(title, page, note) if listed else []
        for item, gain_s in sorted(listed, key=lambda each: -each[1]):
            gain = numbers.format_duration(max(gain_s, 0.0))
            between = f" ({numbers.format_interval(item.interval_s)})" if item.interval_s is not None else ""
            lines += render_bullet(f"{_name_change(item, page)}: {gain}{between}", page)
    left_out = [item for item in advice.dismissed if item.gain_s is None]
    lines += render_heading("Changes that were not simulated", page, "the run is too large for all") if left_out else []
    for item in left_out:
        lines += render_bullet(_name_change(item, page), page)
    return lines


def _name_change(item: Dismissed, page: Page) -> str:
    place = f' in phase "{item.phase}"' if item.phase else ""
    return page.clean_name(f"{item.title} [{item.action}]{place}")


def _render_shares(kind: str, shares: Sequence[Share], page: Page) -> list[Text]:
    """Return one attribution as a table of its largest parts; columns without any entry are left out."""
    if not shares:
        return []
    shown = sorted(shares, key=lambda share: -abs(share.seconds))[:_ROWS]
    seconds = numbers.format_duration_column([share.seconds for share in shown])
    columns = {
        kind: [page.clean_name(share.name) for share in shown],
        "kind": [page.clean_name(share.kind or "") for share in shown],
        "phase": [page.clean_name(share.phase or "") for share in shown],
        "place": [_format_place(share, page) for share in shown],
    }
    filled = {title: cells for title, cells in columns.items() if any(cells)}
    heads = [*(ColumnHead(title) for title in filled), ColumnHead("seconds", "number")]
    lines = render_table(heads, list(zip(*filled.values(), seconds, strict=True)), page, indent=2)
    left = len(shares) - len(shown)
    return [*lines, make_line((f"and {left} smaller ones", "dim"), indent=2)] if left > 0 else lines


def _format_place(share: Share, page: Page) -> str:
    if not share.file:
        return ""
    return page.clean_name(share.file) + (f":{share.line}" if share.line is not None else "")


def _render_efficiencies(advice: Advice, page: Page) -> list[Text]:
    found = {efficiency.name: efficiency for efficiency in advice.efficiencies}
    names = [name for name in EFFICIENCIES if name in found] + [name for name in found if name not in EFFICIENCIES]
    rows = [
        (
            page.clean_name(name.replace("_", " ")),
            numbers.format_percentage(found[name].value),
            found[name].status,
            page.clean_remark(found[name].reason or ""),
        )
        for name in names
    ]
    heads = [
        ColumnHead("efficiency"),
        ColumnHead("value", "number"),
        ColumnHead("status"),
        ColumnHead("reason", "prose"),
    ]
    return [*render_heading("Efficiencies", page), *render_table(heads, rows, page)] if rows else []


def _render_quality(advice: Advice, page: Page) -> list[Text]:
    lines = render_heading(
        "Quality of the evidence", page, f"grade {advice.grade.letter}, {numbers.format_percentage(advice.grade.score)}"
    )
    for note in advice.grade.notes:
        penalty = f" (costs {numbers.format_percentage(note.penalty)} of the grade)" if note.penalty else ""
        lines += render_bullet(page.clean_remark(f"{note.name}: {note.text}{penalty}"), page)
        if note.collect:
            lines.append(render_command("better with: ", note.collect, page, indent=2))
    return lines


def _render_needs(advice: Advice, page: Page) -> list[Text]:
    if not advice.needs:
        return []
    lines = render_heading("Facts that rules asked for", page)
    for command in dict.fromkeys(need.command for need in advice.needs):
        facts = ", ".join(need.fact for need in advice.needs if need.command == command)
        lines.append(render_command("", command, page))
        lines += render_paragraph(f"shows {page.clean_name(facts)}", page, "dim", indent=2)
    return lines


def _render_findings(advice: Advice, page: Page) -> list[Text]:
    lines = render_heading("Findings of plugins", page) if advice.findings else []
    for finding in advice.findings:
        head = f"{finding.plugin}, {finding.kind}, {finding.subject}: {finding.text}"
        lines += render_bullet(page.clean_name(head), page)
        measured = ", ".join(f"{name} {value:.4g}" for name, value in finding.measures.items())
        lines += render_paragraph(page.clean_name(measured), page, "dim", indent=2)
    return lines
