"""What findings explain of gaps: parts in seconds, and the account of each gap that adds them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from advisor.model.lists import join_names

#: How the seconds of a part are known, the surest first.
PartBasis = Literal["measured", "modelled", "estimated"]
BASES_BY_CERTAINTY: tuple[PartBasis, ...] = ("measured", "modelled", "estimated")


@dataclass(frozen=True, slots=True)
class GapPart:
    """Seconds of the run time that one cause explains, as a finding states them.

    ``gap`` is the letter of the gap that they lie in; the name of a bound where they are part of all below it (``I``:
    of the computation). ``cause`` names the mechanism in few words (``coupling``), ``regions`` where it acts (empty: in
    the whole run). Parts of one cause that share a region are about the same seconds there. A ``general`` part holds
    what other causes explain in its regions as well (all misses of a cache hold those by a stride). ``source`` says how
    the seconds are known, ``actions`` which actions are about them, and ``removable`` whether these win all of them by
    what was measured.
    """

    gap: str
    cause: str
    seconds: float
    source: str
    basis: PartBasis = "measured"
    interval_s: tuple[float, float] | None = None
    regions: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    general: bool = False
    removable: bool = False


def describe_cause(part: GapPart, most: int | None = None) -> str:
    """Return the cause with the regions in which it acts, ``most`` of them by name: ``coupling of flux and update``."""
    joint = "in" if " " in part.cause else "of"
    return f"{part.cause} {joint} {join_names(part.regions, most)}" if part.regions else part.cause


@dataclass(frozen=True, slots=True)
class GapAccount:
    """The seconds of a gap, the parts that findings explain (each second once), and the unexplained rest.

    ``gap`` is the name of the gap, or of the lowest known bound where the gaps that the parts lie in are below it.
    """

    gap: str
    seconds: float
    parts: tuple[GapPart, ...]

    @property
    def unexplained_s(self) -> float:
        """The seconds that no finding explains."""
        return self.seconds - sum(part.seconds for part in self.parts)
