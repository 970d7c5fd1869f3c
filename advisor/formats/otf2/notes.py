"""What is to be said about the quality of an OTF2 archive that could be read."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.formats.otf2.layout import COUNTED
from advisor.model.records import Note


@dataclass(frozen=True, slots=True)
class Flaws:
    """What was found wanting while reading, as counts.

    ``lost`` of ``locations`` have no event file; ``undefined`` events belong to regions without definition;
    ``strangers`` are messages and collectives without known partners; ``undecided`` communicators are not confirmed
    by their members' collectives; ``others`` are locations that are no CPU threads; ``left`` counts events by
    ``COUNTED``.
    """

    locations: int
    lost: int = 0
    undefined: int = 0
    strangers: int = 0
    undecided: int = 0
    others: int = 0
    left: tuple[int, ...] = ()


def notes(flaws: Flaws) -> tuple[Note, ...]:
    """Return a note for each kind of flaw that occurs."""
    left = dict(zip((name for name, _ in COUNTED), flaws.left, strict=False))
    contexts = left.pop("calling contexts", 0)
    unused = ", ".join(f"{count} {name}" for name, count in left.items() if count)
    found = (
        (flaws.lost, 0.3, "event files missing", f"{flaws.lost} of {flaws.locations} locations have no event file"),
        (flaws.undefined, 0.1, "regions undefined", f"{flaws.undefined} events belong to regions without definition"),
        (
            flaws.strangers,
            0.05,
            "partners unknown",
            f"{flaws.strangers} operations have no known partner",
        ),
        (
            flaws.undecided,
            0.05,
            "communicators uncertain",
            f"the members of {flaws.undecided} communicators recorded different numbers of collective operations",
        ),
        (
            contexts,
            0.2,
            "calling contexts not read",
            f"{contexts} events of sampling or unwinding were left out; regions may be missing",
        ),
        (flaws.others, 0.0, "locations left out", f"{flaws.others} locations are no CPU threads"),
        (len(unused), 0.0, "events not used", f"left out: {unused}"),
    )
    return tuple(Note(name, text, penalty) for count, penalty, name, text in found if count)
