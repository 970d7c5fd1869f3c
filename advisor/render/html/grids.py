"""Tables of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.render import numbers
from advisor.render.clean import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from advisor.model import Gap, Share

#: Rows of each attribution; the JSON document has them all.
_ROWS = 25


@dataclass(frozen=True, slots=True)
class Grid:
    """A table whose cells are text, fit for a page."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grid(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Grid:
    """Return a table with cleaned cells."""
    return Grid(title, tuple(map(clean, heads)), tuple(tuple(clean(cell) for cell in row) for row in rows))


def gap_grids(gap: Gap) -> list[Grid]:
    """Return where the seconds of a gap are: by region, by processor, by iteration and by cause."""
    kinds = (
        ("region", gap.regions),
        ("processor", gap.processors),
        ("iteration", gap.iterations),
        ("cause", gap.causes),
    )
    return [_of_shares(kind, shares) for kind, shares in kinds if shares]


def _of_shares(kind: str, shares: Sequence[Share]) -> Grid:
    shown = sorted(shares, key=lambda share: -abs(share.seconds))[:_ROWS]
    rows = [
        (share.name, share.kind or "", share.phase or "", _place(share), numbers.seconds(share.seconds))
        for share in shown
    ]
    left = len(shares) - len(shown)
    title = f"By {kind}" + (f" (and {left} smaller ones)" if left else "")
    heads = (kind, "kind", "phase", "place", "seconds")
    filled = [at for at in range(len(heads)) if any(row[at] for row in rows)]
    return grid(title, [heads[at] for at in filled], [[row[at] for at in filled] for row in rows])


def _place(share: Share) -> str:
    if not share.file:
        return ""
    return f"{share.file}:{share.line}" if share.line else share.file
