"""Advice as tables: columns of plain values, and data frames of the library that the user prefers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Literal

import numpy as np

from advisor.model.errors import AdvisorError, UsageError
from advisor.model.records import MEASURES, Advice, Gap, Profile, Share

TableName = Literal[
    "bounds", "gaps", "parts", "recommendations", "efficiencies", "findings", "explained", "times", "iterations"
]
Backend = Literal["pandas", "polars", "pyarrow"]
Cell = str | float | int | bool | None
Columns = dict[str, list[Cell]]

#: How each library makes a frame of columns.
_MAKERS: Final[Mapping[str, str]] = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def build_columns(advice: Advice, table: TableName) -> Columns:
    """Return a table of the advice by columns, seconds where the name ends in ``_s``; raises ``UsageError``."""
    if table not in _TABLES:
        raise UsageError(f"no table {table!r}; there are {', '.join(_TABLES)}")
    names, rows = _TABLES[table](advice)
    return {name: [row[number] for row in rows] for number, name in enumerate(names)}


def build_frame(columns: Columns, backend: Backend) -> Any:  # noqa: ANN401 - of the library that is chosen
    """Return the columns as a data frame; raises ``AdvisorError`` where the library is missing."""
    if backend not in _MAKERS:
        raise UsageError(f"no backend {backend!r}; there are {', '.join(_MAKERS)}")
    try:
        library = import_module(backend)
    except ImportError as error:
        raise AdvisorError(f"{backend} is not installed: pip install {backend}") from error
    return getattr(library, _MAKERS[backend])(columns)


Rows = list[tuple[Cell, ...]]


def _list_bounds(advice: Advice) -> tuple[tuple[str, ...], Rows]:
    rows: Rows = [(one.name, one.seconds, one.status, one.reason, one.collect) for one in advice.bounds]
    return ("bound", "seconds_s", "status", "reason", "collect"), rows


def _list_gaps(advice: Advice) -> tuple[tuple[str, ...], Rows]:
    rows: Rows = [
        (one.name, one.lower, one.upper, one.seconds, one.share, one.status, one.reason) for one in advice.gaps
    ]
    return ("gap", "lower", "upper", "seconds_s", "share", "status", "reason"), rows


def _list_parts(advice: Advice) -> tuple[tuple[str, ...], Rows]:
    """Return every part of every gap; within a gap the parts of one kind add up to it, causes aside."""
    rows = [row for gap in advice.gaps for row in _list_gap_parts(gap)]
    return ("gap", "by", "name", "phase", "file", "line", "seconds_s"), rows


def _list_gap_parts(gap: Gap) -> Rows:
    kinds: dict[str, tuple[Share, ...]] = {
        "region": gap.regions, "processor": gap.processors, "iteration": gap.iterations, "cause": gap.causes
    }  # fmt: skip
    return [
        (gap.name, kind, part.name, part.phase, part.file, part.line, part.seconds)
        for kind, parts in kinds.items()
        for part in parts
    ]


def _list_recommendations(advice: Advice) -> tuple[tuple[str, ...], Rows]:
    names = (
        "rank", "action", "title", "gaps", "phase", "region", "file", "line", "ceiling_s", "expected_s", "low_s",
        "high_s", "basis", "confidence", "effort", "state", "fingerprint",
    )  # fmt: skip
    rows: Rows = [
        (one.rank, one.action, one.title, " ".join(one.gaps), one.phase, one.region, one.file, one.line, one.ceiling_s,
         one.expected_s, *(one.interval_s or (None, None)), one.basis, one.confidence, one.effort, one.state,
         one.fingerprint)
        for one in advice.recommendations
    ]  # fmt: skip
    return names, rows


def _list_efficiencies(advice: Advice) -> tuple[tuple[str, ...], Rows]:
    rows: Rows = [(one.name, one.value, one.status, one.reason) for one in advice.efficiencies]
    return ("efficiency", "value", "status", "reason"), rows


def _list_findings(advice: Advice) -> tuple[tuple[str, ...], Rows]:
    rows: Rows = [
        (one.plugin, one.kind, one.subject, name, value)
        for one in advice.findings
        for name, value in one.measures.items()
    ]
    return ("plugin", "kind", "subject", "measure", "value"), rows


def _list_explained(advice: Advice) -> tuple[tuple[str, ...], Rows]:
    """Return the parts of gaps that findings explain, each second once."""
    rows: Rows = [
        (account.gap, part.gap, part.cause, ", ".join(part.regions), part.seconds,
         *(part.interval_s or (None, None)), part.basis, part.source)
        for account in advice.accounts
        for part in account.parts
    ]  # fmt: skip
    return ("account", "gap", "cause", "regions", "seconds", "low_s", "high_s", "basis", "source"), rows


def _list_times(advice: Advice) -> tuple[tuple[str, ...], Rows]:
    """Return the seconds of each region in each phase on each processor, all iterations added up."""
    return _list_seconds(advice.profile, by_iteration=False)


def _list_iterations(advice: Advice) -> tuple[tuple[str, ...], Rows]:
    return _list_seconds(advice.profile, by_iteration=True)


def _list_seconds(profile: Profile, *, by_iteration: bool) -> tuple[tuple[str, ...], Rows]:
    measures = [name for name in MEASURES if any(name in phase.arrays for phase in profile.phases)]
    rows: Rows = []
    for phase in profile.phases:
        arrays = {
            name: array if by_iteration else array.sum(axis=2, keepdims=True) for name, array in phase.arrays.items()
        }
        shape = next(iter(arrays.values())).shape if arrays else (0, 0, 0)
        for place in np.ndindex(*shape):
            region, processor = profile.regions[phase.regions[place[0]]], profile.processors[place[1]]
            values = [float(arrays[name][place]) if name in arrays else None for name in measures]
            number = (place[2],) if by_iteration else ()
            rows.append(
                (phase.name, region.name, region.file, region.line, processor.rank, processor.thread, *number, *values)
            )
    more = ("iteration",) if by_iteration else ()
    return ("phase", "region", "file", "line", "rank", "thread", *more, *measures), rows


_TABLES: Final[Mapping[str, Callable[[Advice], tuple[tuple[str, ...], Rows]]]] = {
    "bounds": _list_bounds,
    "gaps": _list_gaps,
    "parts": _list_parts,
    "recommendations": _list_recommendations,
    "efficiencies": _list_efficiencies,
    "findings": _list_findings,
    "explained": _list_explained,
    "times": _list_times,
    "iterations": _list_iterations,
}
