"""Tables of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.output import numbers
from advisor.output.clean import clean_text
from advisor.output.text_cells import shorten_text

if TYPE_CHECKING:
    from advisor.model.records import Advice, Gap, Share

#: Rows of each attribution; the JSON document has them all.
_ROWS = 25


#: Longer text loses its middle: so many characters of it are shown, and a page lists so many of such names in full.
_BRIEF, _LONG_NAMES, _IN_FULL = 240, 20, 10_000


def clean_and_shorten(text: str) -> str:
    """Return text cleaned, without the middle of what is too long."""
    return shorten_text(clean_text(text[: 4 * _IN_FULL]), _BRIEF)


def find_long_names(advice: Advice) -> list[str]:
    """Return the names of programs, regions, files and causes that lose their middle on the page, cleaned."""
    profile = advice.profile
    shares = [share for gap in advice.gaps for share in (*gap.regions[:_ROWS], *gap.causes[:_ROWS])]
    names = [profile.program, profile.build or ""]
    names += [name or "" for share in shares for name in (share.name, share.phase, share.file)]
    for item in advice.recommendations:
        names += [name or "" for name in (item.region, item.phase, *item.more_phases, item.file)]
    long = [clean_text(name[:_IN_FULL]) for name in dict.fromkeys(names) if len(name) > _BRIEF]
    return long[:_LONG_NAMES]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table whose cells are text, fit for a page."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def build_grid(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Grid:
    """Return a table with cleaned cells."""
    return Grid(
        clean_and_shorten(title),
        tuple(map(clean_and_shorten, heads)),
        tuple(tuple(map(clean_and_shorten, row)) for row in rows),
    )


def build_gap_grids(gap: Gap) -> list[Grid]:
    """Return where the seconds of a gap are: by region, by processor, by iteration and by cause."""
    kinds = (
        ("region", gap.regions),
        ("processor", gap.processors),
        ("iteration", gap.iterations),
        ("cause", gap.causes),
    )
    return [_build_share_grid(kind, shares) for kind, shares in kinds if shares]


def _build_share_grid(kind: str, shares: Sequence[Share]) -> Grid:
    shown = sorted(shares, key=lambda share: -abs(share.seconds))[:_ROWS]
    rows = [
        (share.name, share.kind or "", share.phase or "", _format_place(share), numbers.format_duration(share.seconds))
        for share in shown
    ]
    left = len(shares) - len(shown)
    title = f"By {kind}" + (f" (and {left} smaller ones)" if left else "")
    heads = (kind, "kind", "phase", "place", "seconds")
    filled = [at for at in range(len(heads)) if any(row[at] for row in rows)]
    return build_grid(title, [heads[at] for at in filled], [[row[at] for at in filled] for row in rows])


def _format_place(share: Share) -> str:
    if not share.file:
        return ""
    return f"{share.file}:{share.line}" if share.line else share.file
