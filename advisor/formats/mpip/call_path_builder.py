"""Call sites of an mpiP report as call paths: program, the functions that call MPI, the MPI calls."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.mpip.checks import DIGITS, compute_rounding
from advisor.formats.mpip.notes import FitResult, build_notes
from advisor.model.errors import InputError
from advisor.model.records import FloatArray, IntArray, Processor
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.mpip.report import CallSite, MpipReport, SiteStatistics

#: The node of the program, above all others.
ROOT: Final = 0
#: At most so many call sites, and so many values in one array; all beyond become one node.
_SITES: Final = 90_000
_VALUES: Final = 40_000_000
Key = tuple[str, int]  # MPI call and number of the call site

_DATE: Final = re.compile(r"(\d{4}) (\d{2}) (\d{2}) (\d{2}:\d{2}:\d{2})")


def build_call_paths(report: MpipReport) -> CallPaths:
    """Return the call paths of ``report``: seconds in MPI by call site and task, and of the program what is left."""
    if not report.app_s.any():
        raise InputError(report.file, "the report holds no times")
    nodes, place, folded = build_nodes(report)
    times, moved = (None, ()) if report.is_estimated else (report.times, report.byte_tables)
    shape = (len(nodes) + 1, len(report.app_s))
    nodes = (*nodes, CallPathNode("MPI", Role.COMM_OTHER, parent=ROOT))
    wall, visits, sent = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    shortest = np.full(shape, np.nan)
    if times is not None:
        part = times.rank >= 0
        at = _find_cells(times, place)
        np.add.at(wall, at, (times.count * times.mean)[part] / 1e3)
        np.add.at(visits, at, times.count[part])
        np.fmin.at(shortest, at, times.least[part] / 1e3)
    for table in moved:
        np.add.at(sent, _find_cells(table, place), table.total[table.rank >= 0])
    wall[-1] = _compute_remainder(report, wall, times)
    wall, excess = _scale_to_run_time(report, wall)
    used = slice(None) if wall[-1].any() else slice(-1)
    return CallPaths(
        program=_find_program(report),
        run=_find_start_time(report) or report.file.name,
        reader="mpip",
        processors=tuple(Processor(rank, 0, _find_host(report, rank)) for rank in range(len(report.app_s))),
        nodes=nodes[used],
        wall_s=wall[used],
        visits=None if times is None else visits[used],
        bytes=sent[used] if moved else None,
        shortest_s=None if times is None else shortest[used],
        actual_s=float(report.app_s.max()),
        status="estimated" if report.is_estimated else "measured",
        started=_find_start_time(report),
        ranks_expected=max(len(report.hosts), len(report.app_s)),
        notes=build_notes(report, FitResult(folded, float(wall[-1].sum()), excess)),
    )


def _find_cells(table: SiteStatistics, place: dict[Key, int]) -> tuple[IntArray, IntArray]:
    """Return node and task of each row of ``table`` that is no total."""
    part = table.rank >= 0
    keys = zip(table.call, table.site.tolist(), part.tolist(), strict=True)
    return np.array([place[call, site] for call, site, own in keys if own], dtype=np.int64), table.rank[part]


def _compute_remainder(report: MpipReport, wall: FloatArray, times: SiteStatistics | None) -> FloatArray:
    """Return what the call sites leave of each task's time in MPI, beyond rounding, seconds."""
    slack = compute_rounding(report.mpi_s, DIGITS["times"], report.fixed_decimals)
    if times is not None:
        part = times.rank >= 0
        halves = times.count * compute_rounding(times.mean, DIGITS["times"], report.fixed_decimals) / 1e3
        np.add.at(slack, times.rank[part], halves[part])
    left: FloatArray = report.mpi_s - wall.sum(axis=0)
    return left if times is None else np.where(left > slack, left, 0.0)


def _scale_to_run_time(report: MpipReport, wall: FloatArray) -> tuple[FloatArray, float]:
    """Return the seconds with those of the program, and by how many seconds MPI takes more than there are.

    Several threads of a task that are in MPI at a time can take more than the task runs; then they share what it runs.
    """
    mpi = wall.sum(axis=0)
    excess = np.maximum(mpi - report.app_s, 0.0)
    fitting = wall * np.divide(report.app_s, mpi, out=np.ones_like(mpi), where=excess > 0)
    fitting[ROOT] += np.maximum(report.app_s - mpi, 0.0)
    return fitting, float(excess.sum())


def _find_host(report: MpipReport, rank: int) -> str | None:
    return report.hosts[rank] if rank < len(report.hosts) else None


def _find_program(report: MpipReport) -> str:
    """Return the name of the program: arguments may hold what nobody should read in a report."""
    words = (report.find_header("Command") or "").split(maxsplit=1)
    return PurePath(words[0]).name if words else ""


def _find_start_time(report: MpipReport) -> str | None:
    found = _DATE.fullmatch(report.find_header("Start time") or "")
    return f"{found[1]}-{found[2]}-{found[3]}T{found[4]}" if found else None


def build_nodes(report: MpipReport) -> tuple[tuple[CallPathNode, ...], dict[Key, int], int]:
    """Return the nodes, the node of each call site, and how many call sites had to be folded into one node."""
    sites = {site.number: site for site in report.sites or ()}
    tables = [table for table in (report.times, *report.byte_tables) if table is not None]
    keys = dict.fromkeys(key for table in tables for key in zip(table.call, table.site.tolist(), strict=True))
    most = min(_SITES, max(_VALUES // len(report.app_s), 1))
    nodes = {CallPathNode("program", Role.ROOT): ROOT}
    place: dict[Key, int] = {}
    for key in list(keys)[:most]:
        site = sites.get(key[1])
        place[key] = _add_call(nodes, _add_callers(nodes, site), key[0], site)
    if len(keys) > most:
        rest = nodes.setdefault(CallPathNode("other MPI calls", Role.COMM_OTHER, parent=ROOT), len(nodes))
        place |= dict.fromkeys(list(keys)[most:], rest)
    return tuple(nodes), place, max(len(keys) - most, 0)


def _add_callers(nodes: dict[CallPathNode, int], site: CallSite | None) -> int:
    """Return the node of the function that holds a call site, added with all that call it where they are not there."""
    parent = ROOT
    for frame in reversed(site.frames if site else ()):
        if frame.function is not None:
            parent = nodes.setdefault(CallPathNode(frame.function, Role.USER, frame.file, None, parent), len(nodes))
    return parent


def _add_call(nodes: dict[CallPathNode, int], parent: int, call: str, site: CallSite | None) -> int:
    name, role = classify_region(f"MPI_{call}")
    if role == Role.USER:
        role = Role.COMM_OTHER
    innermost = site.frames[0] if site else None
    file, line = (innermost.file, innermost.line) if innermost else (None, None)
    return nodes.setdefault(CallPathNode(name, role, file, line, parent), len(nodes))
