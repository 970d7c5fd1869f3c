"""What is to be said about the quality of an mpiP report that could be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from advisor.formats.mpip.checks import DIGITS, compute_rounding, find_contradictions
from advisor.formats.mpip.report import CONCISE, SITES, TIMES, MpipReport
from advisor.model.lists import join_clauses, join_names
from advisor.model.records import Note

#: So many contradictions are repeated, of at most so many that are counted.
_SHOWN: Final = 3
_COUNTED: Final = 1000
#: Below this share of the time in MPI a report may leave call sites out without a doubt.
_LITTLE: Final = 0.02
#: How headings of sections begin that mpiP writes, whether their tables are used or not.
_HEADINGS: Final = (TIMES, CONCISE, SITES, "Callsite Time ", "Callsite Message ", "Callsite I/O ", "Callsite RMA ",
    "Aggregate Time ", "Aggregate Sent Message Size ", "Aggregate Collective Time ", "Aggregate Point-To-Point ",
    "Aggregate I/O Size ", "Aggregate RMA Origin Size ")  # fmt: skip


@dataclass(frozen=True, slots=True)
class FitResult:
    """Call sites that were folded into one, seconds in MPI without a call site, and more of them than there can be."""

    folded: int
    left_s: float
    excess_s: float


def build_notes(report: MpipReport, found: FitResult) -> tuple[Note, ...]:
    """Return a note for each doubt about ``report``."""
    return tuple(_note_file(report)) + tuple(_note_sites(report, found)) + tuple(_note_times(report, found))


def _note_file(report: MpipReport) -> Iterator[Note]:
    if not report.contents.complete:
        yield Note("report cut off", "the report ends before its last line: call sites may be missing", 0.3)
    strange = [
        str(section.place.line) for section in report.contents.sections if not section.title.startswith(_HEADINGS)
    ]
    if strange:
        text = f"nothing is known about the sections at lines {join_names(strange, _SHOWN)}"
        yield Note("sections not read", text, 0.05)
    wrong = list(islice(find_contradictions(report), _COUNTED))
    if wrong:
        many = f"{len(wrong)} or more" if len(wrong) == _COUNTED else f"{len(wrong)}"
        yield Note("contradictions in the report", f"{many}: {join_clauses(wrong, _SHOWN)}", 0.3)


def _note_sites(report: MpipReport, found: FitResult) -> Iterator[Note]:
    if report.is_estimated:
        text = "only extremes and means of the tasks are known: the others are given the mean of what is left"
        yield Note("concise report", text, 0.2, "MPIP= mpirun … (without -c)")
        return
    if report.times is None and report.contents.complete:
        yield Note("no call sites", "the report does not tell MPI calls apart", 0.1, "MPIP= mpirun … (without -d)")
    elif report.times is not None:
        hidden = (report.times.declared_count or 0) - int((report.times.rank >= 0).sum())
        if hidden > 0:
            little = found.left_s <= _LITTLE * report.mpi_s.sum()
            text = f"{hidden} lines of call sites are left out, {found.left_s:.3g} s of MPI in all"
            yield Note("lines left out", text, 0.0 if little else 0.1, "MPIP= mpirun … (without -t)")
    if found.folded:
        yield Note("call sites folded", f"{found.folded} call sites beyond the limit are one region", 0.1)
    sites = report.sites or ()
    unknown = sum(site.frames[0].file is None for site in sites)
    if unknown:
        text = (
            f"of {unknown} of {len(sites)} call sites only an address is known: mpiP looks them up in the memory map "
            "of one task, which does not fit the others when addresses are randomized"
        )
        yield Note("call sites unknown", text, 0.0, "setarch -R mpirun …")


def _note_times(report: MpipReport, found: FitResult) -> Iterator[Note]:
    if found.excess_s > 0:
        text = f"tasks spent {found.excess_s:.3g} s more in MPI than they ran: several threads at a time, or damage"
        yield Note("more MPI than run time", text, 0.3)
    half = float(np.max(compute_rounding(report.app_s, DIGITS["times"], report.fixed_decimals)))
    if half >= 1e-3 * float(report.app_s.max()) and not report.is_estimated:
        yield Note("rounding", f"mpiP prints three digits: times of tasks are known to ± {half:.1g} s")
