"""What is to be said about the quality of a CUBE profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.formats.cube.regions import OTHERS
from advisor.model.records import Note

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.formats.cube.anchor import CubeAnchor
    from advisor.formats.cube.archive import CubeArchive

_SHOWN: Final = 3  # contradictions that are repeated


def build_notes(
    archive: CubeArchive, anchor: CubeAnchor, doubts: Sequence[str], left_out: int, folded: int
) -> tuple[Note, ...]:
    """Return a note for each doubt about the profile, and for what of it is not used."""
    return (*_note_damage(archive, doubts), *_note_content(anchor, left_out, folded))


def _note_damage(archive: CubeArchive, doubts: Sequence[str]) -> Iterator[Note]:
    if doubts:
        shown = "; ".join(doubts[:_SHOWN]) + ("; …" if len(doubts) > _SHOWN else "")
        yield Note("contradictions in the profile", f"{len(doubts)}: {shown}", 0.3)
    if archive.damaged_members:
        text = (
            f"{len(archive.damaged_members)} members of the archive have headers with wrong checksums; "
            "CUBE 4.8 is known to write such, other files are damaged"
        )
        yield Note("wrong checksums in the archive", text, 0.05)
    if not archive.has_end_mark:
        yield Note("the archive has no end mark", "something after the last member may be missing", 0.05)


def _note_content(anchor: CubeAnchor, left_out: int, folded: int) -> Iterator[Note]:
    if left_out:
        text = f"{left_out} locations are no threads (accelerators, metrics of a node); they are not read"
        yield Note("locations left out", text)
    if folded:
        yield Note("many regions", f"the {folded:,} regions with the least time are shown as one, {OTHERS}")
    if any(metric.name == "num_threads" for metric in anchor.metrics):
        text = "the times of a process are sums over its threads, so that they may exceed the run time"
        yield Note("threads summed up", text, 0.3, "SCOREP_PROFILING_FORMAT=CUBE4 mpirun …")
