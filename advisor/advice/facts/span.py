"""The known range of a gap at one site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.record_class import dataclass

if TYPE_CHECKING:
    from advisor.model.records import Need


@dataclass(frozen=True, slots=True)
class GapSpan:
    """The seconds of a gap at a site, as far as known: one value, or limits where levels of the hierarchy are missing.

    ``formula`` says how it is computed, ``need`` what would tell it exactly.
    """

    low: float
    high: float
    formula: str
    need: Need | None = None
