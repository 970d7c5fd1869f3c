"""Does an mpiP report agree with itself? What it says twice shows damage that the numbers alone would not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.mpip.report import CONCISE, SITES, TIMES, MpipReport, SiteStatistics

if TYPE_CHECKING:
    from advisor.formats.mpip.sections import ReportSection
    from advisor.model.records import FloatArray

#: Digits of times and of bytes; decimals of both where the report has them fixed.
DIGITS: Final = {"times": 3, "bytes": 4}
_FLOAT: Final = 1e-9  # of a sum, lost to floating point
_AGGREGATES: Final = (
    ("Aggregate Time", 1, None),
    ("Aggregate Sent Message Size", 3, 0),
    ("Aggregate I/O Size", 3, 1),
    ("Aggregate RMA Origin Size", 3, 2),
)


def compute_rounding(values: FloatArray, digits: int, fixed: bool) -> FloatArray:
    """Return by how much printed ``values`` may differ from what was measured: half a unit of the last digit."""
    if fixed:
        return np.full(values.shape, 0.5 * 10.0**-digits)
    size = np.floor(np.log10(values, out=np.full(values.shape, -30.0), where=values > 0))
    half: FloatArray = 0.5 * 10.0 ** (size - digits + 1)
    return half


def find_contradictions(report: MpipReport) -> Iterator[str]:
    """Yield what contradicts something else in ``report``, beyond rounding."""
    yield from _check_tasks(report)
    yield from _check_sites(report)
    for which, table in (("times", report.times), *(("bytes", moved) for moved in report.byte_tables)):
        if table is not None:
            yield from _check_totals(table, DIGITS[which], report.fixed_decimals)
            yield from _check_bytes(table, report) if which == "bytes" else _check_times(table, report)
    yield from _check_aggregates(report)


def _check_tasks(report: MpipReport) -> Iterator[str]:
    times = report.contents.find_section(TIMES) or report.contents.find_section(CONCISE)
    line = times.place.line if times else 0
    if report.hosts and len(report.hosts) != len(report.app_s):
        yield f"line {line}: times of {len(report.app_s)} tasks, hosts of {len(report.hosts)}"
    if report.is_estimated:
        return
    for name, parts, total in (
        ("AppTime", report.app_s, report.app_total_s),
        ("MPITime", report.mpi_s, report.mpi_total_s),
    ):
        if np.isnan(total):
            yield f"line {line}: no sum of the tasks' {name}"
        elif not _values_agree(
            parts.sum(), total, _total_rounding(report, parts) + _total_rounding(report, np.array([total]))
        ):
            yield f"line {line}: the tasks' {name} add up to {parts.sum():.6g}, not {total:.6g}"
    share = 100 * report.mpi_s / np.maximum(report.app_s, 1e-30)
    relative = _relative_rounding(report.mpi_s, report.fixed_decimals) + _relative_rounding(
        report.app_s, report.fixed_decimals
    )
    wrong = np.abs(share - report.share) > 0.0051 + share * relative
    for task in np.flatnonzero(wrong & (report.app_s > 0)).tolist():
        yield f"line {line}: MPI takes {share[task]:.2f} % of task {task}, not {report.share[task]:.2f} %"


def _check_sites(report: MpipReport) -> Iterator[str]:
    section = report.contents.find_section(SITES)
    if report.sites is None or section is None:
        return
    if section.declared_count != len(report.sites):
        yield f"line {section.place.line}: {len(report.sites)} of {section.declared_count} call sites are listed"
    calls = {site.number: site.call for site in report.sites}
    tables = [table for table in (report.times, *report.byte_tables) if table is not None]
    for table in tables:
        for call, site, line in zip(table.call, table.site.tolist(), table.line.tolist(), strict=True):
            if calls.get(site, call) != call:
                yield f"line {line}: call site {site} is {calls[site]}, not {call}"


def _check_totals(table: SiteStatistics, digits: int, fixed: bool) -> Iterator[str]:
    """Yield where the line of all tasks (``*``) says something else than the tasks of a call site together.

    Tasks whose time was below the threshold of the report are missing, and then the totals are larger.
    """
    keys = list(zip(table.call, table.site.tolist(), strict=True))
    numbers = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    group = np.array([numbers[key] for key in keys], dtype=np.int64)
    whole, part = table.rank < 0, table.rank >= 0
    count, total, slack, stars = (np.zeros(len(numbers)) for _ in range(4))
    np.add.at(count, group[part], table.count[part])
    np.add.at(total, group[part], (table.count * table.mean)[part])
    np.add.at(slack, group[part], (table.count * compute_rounding(table.mean, digits, fixed))[part])
    np.add.at(stars, group[whole], 1)
    for name, n in numbers.items():
        if stars[n] != 1:
            yield f"{table.title}: {int(stars[n])} totals of {name[0]} {name[1]}"
    most = np.zeros(len(numbers))
    np.maximum.at(most, group[part], table.most[part])
    least = np.full(len(numbers), np.inf)
    np.minimum.at(least, group[part], table.least[part])
    for n in np.flatnonzero(whole).tolist():
        g, own = group[n], table.count[n] * compute_rounding(table.mean[n : n + 1], digits, fixed)[0]
        if table.count[n] < count[g] or table.most[n] < most[g] or table.least[n] > least[g]:
            yield f"line {table.line[n]}: the total is less than its parts"
        elif table.count[n] == count[g] and not (
            table.most[n] == most[g]
            and table.least[n] == least[g]
            and _values_agree(total[g], table.count[n] * table.mean[n], slack[g] + own)
        ):
            yield f"line {table.line[n]}: the tasks do not add up to the total"
    for n in np.flatnonzero((table.least > table.mean) | (table.mean > table.most)).tolist():
        yield f"line {table.line[n]}: the mean is not between minimum and maximum"


def _check_times(table: SiteStatistics, report: MpipReport) -> Iterator[str]:
    """Yield the tasks whose call sites take more time than the task spent in MPI; or less, with no line hidden."""
    part = table.rank >= 0
    if report.is_estimated:
        return
    seconds, slack = np.zeros(len(report.mpi_s)), _seconds_rounding(report, report.mpi_s)
    np.add.at(seconds, table.rank[part], (table.count * table.mean)[part] / 1e3)
    halves = table.count * compute_rounding(table.mean, DIGITS["times"], report.fixed_decimals) / 1e3
    np.add.at(slack, table.rank[part], halves[part])
    over = seconds - report.mpi_s > slack + _FLOAT * seconds
    under = report.mpi_s - seconds > slack + _FLOAT * seconds
    for task in np.flatnonzero(over | (under if table.declared_count == part.sum() else False)).tolist():
        yield f"task {task}: {seconds[task]:.6g} s at the call sites, {report.mpi_s[task]:.6g} s in MPI"
    if table.declared_count is None or part.sum() > table.declared_count:
        yield f"{table.title}: {part.sum()} lines, {table.declared_count} announced"


def _check_bytes(table: SiteStatistics, report: MpipReport) -> Iterator[str]:
    """Yield rows whose sum is not count times mean, or whose count is not that of the times."""
    expected = table.count * table.mean
    slack = table.count * compute_rounding(table.mean, 4, report.fixed_decimals) + compute_rounding(
        table.total, 4, report.fixed_decimals
    )
    for n in np.flatnonzero(np.abs(expected - table.total) > slack + _FLOAT * expected).tolist():
        yield f"line {table.line[n]}: {table.count[n]} times {table.mean[n]:.6g} is not {table.total[n]:.6g}"
    if report.times is None:
        return
    counts = dict(zip(_row_keys(report.times), report.times.count.tolist(), strict=True))
    for n, key in enumerate(_row_keys(table)):
        if key[2] >= 0 and counts.get(key, table.count[n]) != table.count[n]:
            yield f"line {table.line[n]}: {table.count[n]} calls, {counts[key]} of them timed"


def _row_keys(table: SiteStatistics) -> list[tuple[str, int, int]]:
    return list(zip(table.call, table.site.tolist(), table.rank.tolist(), strict=True))


def _check_aggregates(report: MpipReport) -> Iterator[str]:
    """Yield the lines of the top-twenty tables that differ from the totals of the call sites."""
    for title, column, moved in _AGGREGATES:
        section = report.contents.find_section(title)
        table = report.times if moved is None else _find_moved_table(report, moved)
        if section is None or table is None:
            continue
        digits = DIGITS["times" if moved is None else "bytes"]
        sums = table.count * table.mean
        halves = table.count * compute_rounding(table.mean, digits, report.fixed_decimals)
        totals = {key: n for n, key in enumerate(_row_keys(table)) if key[2] < 0}
        yield from _check_aggregate(section, column, report, (totals, sums, halves, table))


def _check_aggregate(
    section: ReportSection,
    column: int,
    report: MpipReport,
    found: tuple[dict[tuple[str, int, int], int], FloatArray, FloatArray, SiteStatistics],
) -> Iterator[str]:
    totals, sums, halves, table = found
    for row in section.rows:
        words = row.text.split()
        if len(words) < 5 or not words[1].isdecimal():
            continue
        n = totals.get((words[0], row.parse_whole(words[1]), -1))
        if n is None:
            yield f"line {row.line}: {words[0][:40]} {words[1][:40]} is not a call site"
            continue
        value = row.parse_number(words[2 if column == 1 else 3])
        slack = float(compute_rounding(np.array([value]), 3, report.fixed_decimals)[0]) + halves[n]
        if not _values_agree(sums[n], value, slack):
            yield f"line {row.line}: {value:.6g} is not the total of call site {words[1]}, {sums[n]:.6g}"
        counted = words[2] if column == 3 else words[5] if len(words) > 6 else None
        if counted is not None and row.parse_whole(counted) != table.count[n]:
            yield f"line {row.line}: {counted[:20]} calls, {table.count[n]} at the call sites"


def _find_moved_table(report: MpipReport, number: int) -> SiteStatistics | None:
    from advisor.formats.mpip.report import MOVED

    return next((table for table in report.byte_tables if table.title.startswith(MOVED[number])), None)


def _values_agree(one: float, other: float, slack: float) -> bool:
    return bool(abs(one - other) <= slack + _FLOAT * max(one, other))


def _seconds_rounding(report: MpipReport, values: FloatArray) -> FloatArray:
    return compute_rounding(values, DIGITS["times"], report.fixed_decimals)


def _total_rounding(report: MpipReport, values: FloatArray) -> float:
    return float(_seconds_rounding(report, values).sum())


def _relative_rounding(values: FloatArray, fixed: bool) -> FloatArray:
    found: FloatArray = compute_rounding(values, DIGITS["times"], fixed) / np.maximum(values, 1e-30)
    return found
