"""What findings explain of the gaps, in words: how many seconds of which gap, what causes them, how that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.model.gap_parts import describe_cause
from advisor.output import numbers
from advisor.output.sections import render_heading, render_paragraph

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.model.gap_parts import GapAccount, GapPart
    from advisor.model.records import Advice
    from advisor.output.page import Page

#: How many parts are told where not all are asked for.
FIRST: Final = 2
#: A part below this share of the run is not among the first.
LEAST_SHARE: Final = 0.01
SHOWN_REGIONS: Final = 3


class ExplainedPart(NamedTuple):
    """A part of a gap, and the gap or bound that it was counted in."""

    gap: str
    part: GapPart


def select_parts(advice: Advice, most: int | None = FIRST) -> list[ExplainedPart]:
    """Return the parts that explain most seconds, the largest first; all of them where ``most`` is None."""
    found = [ExplainedPart(account.gap, part) for account in advice.accounts for part in account.parts]
    found.sort(key=lambda one: (-one.part.seconds, one.gap, one.part.cause, one.part.regions))
    if most is None:
        return found
    least = LEAST_SHARE * advice.profile.actual_s
    return [one for one in found if one.part.seconds >= least][:most]


def describe_account(account: GapAccount, least_s: float = 0.0) -> str:
    """Return the parts of a gap and what is left: ``44 ms coupling of flux and update, 76 ms unexplained``.

    Nothing where no part has ``least_s`` seconds.
    """
    if all(part.seconds < least_s for part in account.parts):
        return ""
    shown = [f"{numbers.format_duration(part.seconds)} {describe_cause(part, SHOWN_REGIONS)}" for part in account.parts]
    return ", ".join([*shown, f"{numbers.format_duration(max(account.unexplained_s, 0.0))} unexplained"])


def describe_part(one: ExplainedPart) -> str:
    """Return seconds, gap, cause and interval of a part, and how they are known."""
    part = one.part
    span = f" ({numbers.format_interval(part.interval_s)})" if part.interval_s else ""
    gap = part.gap if part.gap == one.gap else f"{part.gap} in {one.gap}"
    cause = describe_cause(part, SHOWN_REGIONS)
    return f"{numbers.format_duration(part.seconds)}{span} of {gap}: {cause}; {part.basis}: {part.source}"


def describe_parts(advice: Advice, page: Page, most: int | None = FIRST) -> list[str]:
    """Return a line on each of the parts that explain most seconds, fit for the page."""
    return [page.clean_remark(describe_part(one)) for one in select_parts(advice, most)]


def render_parts(advice: Advice, page: Page) -> list[Text]:
    """Return the section on what explains most of the gaps; nothing where no finding explains anything."""
    told = describe_parts(advice, page, None if page.verbose else FIRST)
    if not told:
        return []
    lines = render_heading("What explains them", page, "seconds, and how they are known")
    for text in told:
        lines += render_paragraph(text, page)
    return lines
