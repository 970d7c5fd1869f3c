"""What gprof says twice, and whether it says the same both times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from advisor.formats.gprof.report import GprofReport, split_source_place
from advisor.model.records import Note

#: Half of the last digit of seconds and of per cent.
_HALF: Final = 0.005
#: Seconds known from fewer samples than this are known to more than some 10 %.
_SAMPLES: Final = 100
#: gprof itself is off by this share: it spreads samples over functions that share a bucket of its histogram.
_SPREAD: Final = 0.005
_ANEW: Final = "write the report anew: gprof PROGRAM gmon.out"


def build_notes(reports: Sequence[GprofReport]) -> tuple[Note, ...]:
    """Return the doubts about ``reports``, each kind once."""
    found = [note for report in reports for note in _check_report(report)]
    return (*tuple({note.name: note for note in reversed(found)}.values())[::-1], *_note_samples(reports))


def _note_samples(reports: Sequence[GprofReport]) -> Iterator[Note]:
    """Yield how exactly the seconds of the process with the fewest samples are known."""
    known = [(_total_seconds(report) / report.sample_s, report.sample_s) for report in reports if report.sample_s]
    if not known:
        return
    count, sample_s = min(known)
    error = f"{100 / max(count, 1) ** 0.5:.0f} %"
    text = f"seconds are samples of {1000 * sample_s:g} ms; the fewest are {count:.0f} in a process, known to ± {error}"
    yield Note("sampled", text, 0.1 if count < _SAMPLES else 0.0, "run longer" if count < _SAMPLES else None)


def _check_report(report: GprofReport) -> Iterator[Note]:
    where = f"the report at line {report.line} of {report.file.name}"
    problem = next(
        (problem for check in (_check_flat_profile, _check_call_graph, _check_calls) for problem in check(report)), None
    )
    if problem is not None:
        yield Note("contradictory report", f"{where}: {problem}", 0.3, _ANEW)
    if report.entries is None:
        text = f"{where} holds the flat profile alone; lines at its end could be missing unnoticed"
        yield Note("no call graph", text, 0.05, _ANEW)
        return
    # The index leaves out what is neither called nor sampled: main, and functions known as callers only.
    listable = {number for number, entry in report.entries.items() if entry.calls or entry.self_s > 0}
    missing = listable - (report.listed_numbers or set())
    if report.listed_numbers is None or missing:
        yield Note("report cut off", f"{where} does not end with the index of all its functions", 0.3, _ANEW)


def _total_seconds(report: GprofReport) -> float:
    if report.rows:
        return report.rows[-1].cumulative_s
    return report.total_s or 0.0


def _check_flat_profile(report: GprofReport) -> Iterator[str]:
    """Yield where running sums, shares and seconds of the flat profile do not agree."""
    before, highest = 0.0, max((row.self_s for row in report.rows), default=0.0)
    total = report.total_s if report.total_s is not None else _total_seconds(report)
    for row in report.rows:
        if abs(row.cumulative_s - before - row.self_s) > 3 * _HALF + 1e-9:
            yield f"line {row.line}: {before:g} + {row.self_s:g} is not the running sum {row.cumulative_s:g}"
        expected = 100 * row.self_s / total if total else 0.0
        slack = _HALF + 100 * (_HALF + _SPREAD * highest) / total + expected * _HALF / total if total else _HALF
        if abs(row.percent - expected) > slack + 0.2:
            yield f"line {row.line}: {row.self_s:g} s are {expected:.2f} % of {total:g} s, not {row.percent:g} %"
        before = row.cumulative_s


def _check_call_graph(report: GprofReport) -> Iterator[str]:
    """Yield where flat profile and call graph do not agree; functions of the same name are left out."""
    if not report.rows or not report.entries:
        return
    if report.total_s is not None and abs(report.total_s - _total_seconds(report)) > 2 * _HALF:
        yield f"the call graph is about {report.total_s:g} s, the flat profile about {_total_seconds(report):g} s"
    once = {name for name, count in Counter(row.name for row in report.rows).items() if count == 1}
    named = Counter(entry.name for entry in report.entries.values())
    entries = {entry.name: entry for entry in report.entries.values() if named[entry.name] == 1}
    for row in report.rows:
        entry = entries.get(row.name) if row.name in once else None
        if (
            entry is None and row.name not in named and split_source_place(row.name)[1] is None
        ):  # lines are not in the graph
            yield f"line {row.line}: {row.name[:80]} is not in the call graph"
        elif entry is not None and abs(entry.self_s - row.self_s) > 2 * _HALF + 1e-9:
            yield f"line {row.line}: {row.self_s:g} s, in the call graph {entry.self_s:g} s"
        elif entry is not None and (entry.calls or 0) != (row.calls or 0):
            yield f"line {row.line}: {row.calls} calls, in the call graph {entry.calls}"


def _check_calls(report: GprofReport) -> Iterator[str]:
    """Yield where callers' calls do not add up to those of what they call."""
    for entry in (report.entries or {}).values():
        if entry.stated_calls is None or entry.in_cycle:
            continue
        if entry.caller_calls != entry.stated_calls or entry.calls not in (None, entry.stated_calls):
            yield (
                f"line {entry.line}: {entry.calls} calls, its callers made {entry.caller_calls} of {entry.stated_calls}"
            )
