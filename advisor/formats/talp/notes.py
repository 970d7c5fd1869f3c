"""What is to be said about the quality of a recording of TALP."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from advisor.formats.talp.checks import find_contradictions
from advisor.model.lists import join_clauses, join_names
from advisor.model.records import Note
from advisor.model.units import format_count

if TYPE_CHECKING:
    from advisor.formats.talp.division import RegionDivision
    from advisor.formats.talp.recording import TalpRecording

#: So many contradictions are repeated, of at most so many that are counted; and so many names of regions.
_SHOWN: Final = 3
_COUNTED: Final = 1000
_NAME: Final = 40  # characters of a region's name


def build_notes(recording: TalpRecording, division: RegionDivision, threads: int) -> tuple[Note, ...]:
    """Return a note for each doubt about ``recording``, and for what of it is not used."""
    return (
        *_note_file(recording),
        *_note_regions(recording, division, threads),
        *_note_efficiency(recording, division),
    )


def _note_file(recording: TalpRecording) -> Iterator[Note]:
    found = find_contradictions(recording) if recording.sums is None else ()
    wrong = [*recording.contradictions, *islice(found, _COUNTED)]
    if wrong:
        yield Note("contradictions in TALP's numbers", f"{len(wrong)}: {join_clauses(wrong, _SHOWN)}", 0.3)
    if recording.earlier_runs:
        text = f"only the last run in the file is read, not the {format_count(recording.earlier_runs, 'run')} before it"
        yield Note("several runs in one file", text, 0.05)


def _note_regions(recording: TalpRecording, division: RegionDivision, threads: int) -> Iterator[Note]:
    if division.whole < 0:
        text = "no region spans the run, so all regions together are taken for it"
        yield Note("no region of the whole run", text, 0.2, "DLB_ARGS='--talp --talp-region-select=all' mpirun …")
    if len(division.parts) + len(division.left_out) > 1:
        text = "TALP does not say which regions contain others; those that together fit into the run are told apart"
        if division.left_out:
            text += f"; left out: {_format_names(recording, division.left_out)}"
        yield Note("regions taken apart", text)
    if threads > 1:
        yield Note(
            "threads averaged", f"TALP adds up the {threads} threads of a rank; their mean stands for each", 0.05
        )


def _note_efficiency(recording: TalpRecording, division: RegionDivision) -> Iterator[Note]:
    """Yield how TALP's own efficiency of the run compares with that from the times of the ranks.

    TALP divides by the time inside the region, not by the run time, and gives regions without MPI calls 1.00 whatever
    their imbalance; so it is not used.
    """
    reported = {total.region: total.values.get("parallelEfficiency") for total in recording.totals}
    whole = recording.regions[division.whole] if division.whole >= 0 else ""
    value = reported.get(whole)
    if value is not None:
        row = division.whole
        own = float(recording.values_of("usefulTime")[row].mean() / recording.values_of("elapsedTime")[row].max())
        text = f"TALP's parallel efficiency of {whole}, {value:.2f}, is not used; from the times of all ranks {own:.3f}"
        yield Note("TALP's efficiencies", "; ".join((text, *recording.doubts)))
    elif recording.doubts:
        yield Note("TALP's efficiencies", "; ".join(recording.doubts))


def _format_names(recording: TalpRecording, regions: tuple[int, ...]) -> str:
    return join_names([recording.regions[n][:_NAME] for n in regions], _SHOWN)
