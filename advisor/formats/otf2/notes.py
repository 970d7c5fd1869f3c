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
            f"locations without an event file: {flaws.missing_files} of {flaws.locations}",
        ),
        (
            flaws.foreign_files,
            0.5,
            "event files of other locations",
            f"event files with more or fewer events than defined, so of another location or run: {flaws.foreign_files}",
        ),
        (flaws.copied_files, 0.5, "the same file twice", f"copies of other event files: {flaws.copied_files}"),
        (flaws.undefined_events, 0.1, "regions undefined", f"events of undefined regions: {flaws.undefined_events:,}"),
        (
            flaws.unknown_partners,
            0.05,
            "partners unknown",
            f"messages and collectives whose partners are unknown: {flaws.unknown_partners:,}",
        ),
        (
            flaws.uncertain_communicators,
            0.05,
            "communicators uncertain",
            f"communicators whose members recorded different numbers of collectives: {flaws.uncertain_communicators:,}",
        ),
        (
            contexts,
            0.2,
            "calling contexts not read",
            f"sampling and unwinding events are ignored ({contexts:,}); regions may be missing",
        ),
        (flaws.other_locations, 0.0, "locations left out", f"other than CPU threads: {flaws.other_locations:,}"),
        (len(unused), 0.0, "events not used", f"ignored: {unused}"),
    )
    return tuple(Note(name, text, penalty) for count, penalty, name, text in found if count)
