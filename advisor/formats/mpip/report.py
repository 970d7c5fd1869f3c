"""What an mpiP report says: its header, the times of the tasks, the call sites, and what each task did at each site."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.mpip.concise import estimate_tasks
from advisor.formats.mpip.sections import (
    TASK_LIMIT,
    ReportContents,
    ReportRow,
    ReportSection,
    decode_text,
    split_report,
)
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

TIMES: Final = "MPI Time (seconds)"
CONCISE: Final = "Task Time Statistics (seconds)"
SITES: Final = "Callsites: "
SITE_TIMES: Final = "Callsite Time statistics (all, milliseconds)"
#: Sections with bytes that a call moved, for each call site and task.
MOVED: Final = (
    "Callsite Message Sent statistics (all, sent bytes)",
    "Callsite I/O statistics (all, I/O bytes)",
    "Callsite RMA statistics (all, origin bytes)",
)
_SITE: Final = re.compile(r" *(\d{1,9}) +(\d{1,4}) (.*)")
_ADDRESS: Final = re.compile(r"0x[0-9a-f]+")
_FIXED: Final = re.compile(r"\d+\.\d{3}")


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """A place in the source from which a call was made; without a file where mpiP knows only an address."""

    file: str | None
    line: int | None
    function: str | None


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call site: its number, the MPI call without prefix, and the frames from the caller outwards."""

    number: int
    call: str
    frames: tuple[SourceFrame, ...]
    place: ReportRow


@dataclass(frozen=True, slots=True)
class SiteStatistics:
    """What tasks did at call sites, one row each; and the totals of each site over all tasks (rank -1).

    ``call`` and ``site`` name the site, ``most``, ``mean`` and ``least`` are of one call: milliseconds or bytes.
    ``total`` is the sum where the section states it, else NaN.
    """

    title: str
    call: tuple[str, ...]
    site: IntArray
    rank: IntArray
    count: IntArray
    most: FloatArray
    mean: FloatArray
    least: FloatArray
    total: FloatArray
    line: IntArray
    declared_count: int | None


@dataclass(frozen=True, slots=True)
class MpipReport:
    """A report of mpiP.

    ``app_s`` and ``mpi_s`` are seconds of each task, ``app_total_s`` and ``mpi_total_s`` those of all tasks as mpiP
    adds them up (NaN: not there). ``fixed_decimals`` tells whether numbers have three decimals instead of three digits.
    ``sites`` is None where call sites are not listed. ``is_estimated`` says that only extremes and means of the tasks
    are known.
    """

    contents: ReportContents
    file: Path
    hosts: tuple[str, ...]
    app_s: FloatArray
    mpi_s: FloatArray
    share: FloatArray
    app_total_s: float
    mpi_total_s: float
    fixed_decimals: bool
    is_estimated: bool
    sites: tuple[CallSite, ...] | None
    times: SiteStatistics | None
    byte_tables: tuple[SiteStatistics, ...]

    def find_header(self, key: str) -> str | None:
        """Return what the line ``key`` of the header says."""
        return next((decode_text(row.text).strip() for name, row in self.contents.header if name == key), None)


def read_report(path: Path) -> MpipReport:
    """Return what the report at ``path`` says; raises ``InputError`` with the line of what can't be understood."""
    contents = split_report(path)
    tasks, concise = contents.find_section(TIMES), contents.find_section(CONCISE)
    if tasks is not None:
        app, mpi, share, totals = _read_tasks(tasks)
    elif concise is not None:
        app, mpi, share, totals = estimate_tasks(concise)
    else:
        raise InputError(path, "the report holds no times of tasks")
    sites, times = contents.find_section(SITES), contents.find_section(SITE_TIMES)
    moved = [section for title in MOVED if (section := contents.find_section(title)) is not None]
    return MpipReport(
        contents=contents,
        file=path,
        hosts=_read_hosts(contents),
        app_s=app,
        mpi_s=mpi,
        share=share,
        app_total_s=totals[0],
        mpi_total_s=totals[1],
        fixed_decimals=_is_fixed(tasks, times),
        is_estimated=tasks is None,
        sites=None if sites is None else _read_sites(sites),
        times=None if times is None else _read_statistics(times, 9, len(app)),
        byte_tables=tuple(_read_statistics(section, 8, len(app)) for section in moved),
    )


def _read_hosts(contents: ReportContents) -> tuple[str, ...]:
    hosts: list[str] = []
    for key, row in contents.header:
        if key == "MPI Task Assignment":
            words = row.text.split(maxsplit=1)
            if len(words) != 2 or row.parse_whole(words[0]) != len(hosts):
                raise row.make_error(f"expected task {len(hosts)} and its host")
            hosts.append(decode_text(words[1]).strip())
    return tuple(hosts)


def _read_tasks(section: ReportSection) -> tuple[FloatArray, FloatArray, FloatArray, tuple[float, float]]:
    """Return the seconds of each task in the application and in MPI, the share of MPI, and both sums."""
    found: list[tuple[float, float, float]] = []
    total = (np.nan, np.nan)
    for row in section.rows:
        task, app, mpi, share = row.split_cells(4)
        values = row.parse_number(app), row.parse_number(mpi), row.parse_share(share)
        if task == "*":
            total = values[:2]
        elif row.parse_whole(task) != len(found) or len(found) >= TASK_LIMIT:
            raise row.make_error(f"expected task {len(found)}, found {task[:40]}")
        else:
            found.append(values)
    if not found:
        raise section.place.make_error("the report holds no times of tasks")
    app_s, mpi_s, shares = np.array(found).T
    return app_s, mpi_s, shares, total


def _is_fixed(*sections: ReportSection | None) -> bool:
    """Return whether all times have three decimals; mpiP prints three digits unless told otherwise."""
    words = [row.text.split() for section in sections if section is not None for row in section.rows[:1000]]
    times = [time for row in words for time in (row[1:3] if len(row) == 4 else row[4:7])]
    return all(_FIXED.fullmatch(time) for time in times)


def _read_sites(section: ReportSection) -> tuple[CallSite, ...]:
    """Return the call sites; columns have the widths of their titles, since names may hold blanks."""
    at = {title: section.head.find(title) for title in ("File/Address", "Line", "Parent_Funct", "MPI_Call")}
    if min(at.values()) < 0:
        raise section.place.make_error("the list of call sites lacks columns")
    file_width = at["Line"] + len("Line") - at["File/Address"]
    function_width = at["MPI_Call"] - at["Parent_Funct"]
    found: dict[int, CallSite] = {}
    for row in section.rows:
        match = _SITE.fullmatch(row.text)
        if match is None:
            raise row.make_error("expected number and level of a call site")
        number, level = int(match[1]), int(match[2])
        frame, call = _parse_frame(row, match[3], file_width, function_width)
        known = found.get(number)
        if (known is not None) != (level > 0) or (known is not None and level != len(known.frames)):
            raise row.make_error(f"level {level} of call site {number} is out of order")
        frames = (*known.frames, frame) if known else (frame,)
        found[number] = CallSite(number, known.call if known else call, frames, known.place if known else row)
    return tuple(found.values())


def _parse_frame(row: ReportRow, rest: str, file_width: int, function_width: int) -> tuple[SourceFrame, str]:
    """Return the frame in a line after number and level, and the MPI call that stands behind it."""
    place = re.fullmatch(r"(.*?) +(\d+)", rest[:file_width])
    address = _ADDRESS.fullmatch(rest[:file_width].strip())
    if place is None and address is None:
        raise row.make_error("expected file and line, or an address")
    names = rest[file_width + 1 :]
    function, call = decode_text(names[: function_width - 1]).strip(), names[function_width - 1 :].strip()
    known = None if function in ("", "[unknown]") else function
    if place is None:
        return SourceFrame(None, None, known), call
    return SourceFrame(decode_text(place[1]).strip(), row.parse_whole(place[2]), known), call


def _read_statistics(section: ReportSection, columns: int, tasks: int) -> SiteStatistics:
    """Return the rows of a table by call site and task: nine columns with times, eight with bytes."""
    calls: list[str] = []
    wholes: list[tuple[int, int, int, int]] = []
    values: list[tuple[float, float, float, float]] = []
    for row in section.rows:
        call, site, rank, count, *numbers = row.split_cells(columns)
        who = -1 if rank == "*" else row.parse_whole(rank)
        if who >= tasks:
            raise row.make_error(f"there is no task {rank}")
        if row.parse_whole(count) == 0:
            raise row.make_error("a call site without calls")
        calls.append(decode_text(call))
        wholes.append((row.parse_whole(site), who, row.parse_whole(count), row.line))
        most, mean, least = (row.parse_number(number) for number in numbers[:3])
        values.append((most, mean, least, row.parse_number(numbers[3]) if columns == 8 else np.nan))
    site_, rank_, count_, line = np.array(wholes, dtype=np.int64).reshape(-1, 4).T
    most_, mean_, least_, total_ = np.array(values).reshape(-1, 4).T
    return SiteStatistics(
        section.title, tuple(calls), site_, rank_, count_, most_, mean_, least_, total_, line, section.declared_count
    )
