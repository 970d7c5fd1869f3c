"""What is to be said about the quality of an OTF2 archive that could be read."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.formats.otf2.layout import COUNTED
from advisor.model.records import Note


@dataclass(frozen=True, slots=True)
class ArchiveFlaws:
    """What was found wanting while reading, as counts.

    ``missing_files`` of ``locations`` have no event file, ``foreign_files`` one with another number of events than its
    definition; ``undefined_events`` events belong to regions without definition; ``unknown_partners`` are messages and
    collectives without known partners; ``uncertain_communicators`` communicators are not confirmed by their members'
    collectives; ``other_locations`` are locations that are no CPU threads; ``unused_counts`` counts events by
    ``COUNTED``; ``copied_files`` are copies of other event files.
    """

    locations: int
    missing_files: int = 0
    foreign_files: int = 0
    undefined_events: int = 0
    unknown_partners: int = 0
    uncertain_communicators: int = 0
    other_locations: int = 0
    unused_counts: tuple[int, ...] = ()
    copied_files: int = 0


def build_notes(flaws: ArchiveFlaws) -> tuple[Note, ...]:
    """Return a note for each kind of flaw that occurs."""
    left = dict(zip((name for name, _ in COUNTED), flaws.unused_counts, strict=False))
    contexts = left.pop("calling contexts", 0)
    unused = ", ".join(f"{count} {name}" for name, count in left.items() if count)
    found = (
        (
            flaws.missing_files,
            0.45,
            "event files missing",
            f"{flaws.missing_files} of {flaws.locations} locations have no event file",
        ),
        (
            flaws.foreign_files,
            0.5,
            "event files of other locations",
            f"the event files of {flaws.foreign_files} locations hold other numbers of events than their definitions "
            "say: they are of another location or run",
        ),
        (flaws.copied_files, 0.5, "the same file twice", f"{flaws.copied_files} event files are copies of others"),
        (
            flaws.undefined_events,
            0.1,
            "regions undefined",
            f"{flaws.undefined_events} events belong to regions without definition",
        ),
        (
            flaws.unknown_partners,
            0.05,
            "partners unknown",
            f"{flaws.unknown_partners} operations have no known partner",
        ),
        (
            flaws.uncertain_communicators,
            0.05,
            "communicators uncertain",
            f"the members of {flaws.uncertain_communicators} communicators recorded different numbers "
            f"of collective operations",
        ),
        (
            contexts,
            0.2,
            "calling contexts not read",
            f"{contexts} events of sampling or unwinding were left out; regions may be missing",
        ),
        (flaws.other_locations, 0.0, "locations left out", f"{flaws.other_locations} locations are no CPU threads"),
        (len(unused), 0.0, "events not used", f"left out: {unused}"),
    )
    return tuple(Note(name, text, penalty) for count, penalty, name, text in found if count)
