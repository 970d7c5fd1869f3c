"""Concise reports of mpiP (``-c``): of the tasks only the extremes and the means are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.mpip.sections import TASK_LIMIT, ReportRow, ReportSection

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

_COLUMNS: Final = {"Max": 5, "Mean": 3, "Min": 5, "Stddev": 3, "Aggregate": 4}


def estimate_tasks(section: ReportSection) -> tuple[FloatArray, FloatArray, FloatArray, tuple[float, float]]:
    """Return the seconds of each task in the application and in MPI, the share of MPI (unknown), and both sums.

    Tasks that are not extreme are given the mean of what the extreme ones leave of the sum.
    """
    rows: dict[str, tuple[ReportRow, list[str]]] = {}
    for row in section.rows:
        name = row.text.split()[0]
        rows[name] = (row, row.split_cells(_COLUMNS.get(name, 0)))
    missing = _COLUMNS.keys() - rows.keys()
    if missing:
        raise section.place.make_error(f"no line {min(missing)}")
    app, app_total = _estimate_column(rows, 1)
    mpi, mpi_total = _estimate_column(rows, 2)
    return app, mpi, np.full(len(app), np.nan), (app_total, mpi_total)


def _estimate_column(rows: dict[str, tuple[ReportRow, list[str]]], column: int) -> tuple[FloatArray, float]:
    """Return the seconds of each task in a column, and their sum."""
    value = {name: row.parse_number(words[column]) for name, (row, words) in rows.items()}
    row, words = rows["Aggregate"]
    mean_row, mean_words = rows["Mean"]
    app_mean = mean_row.parse_number(mean_words[1])
    count = round(row.parse_number(words[1]) / app_mean) if app_mean > 0 else 0
    if not 0 < count <= TASK_LIMIT:
        raise row.make_error("the number of tasks can't be told from sum and mean")
    known = {}
    for name in ("Min", "Max"):
        line, cells = rows[name]
        known[line.parse_whole(cells[column + 2])] = value[name]
        if max(known) >= count:
            raise line.make_error(f"there is no task {max(known)}")
    rest = max(value["Aggregate"] - sum(known.values()), 0.0)
    found = np.full(count, rest / max(count - len(known), 1))
    for task, seconds in known.items():
        found[task] = seconds
    return found, value["Aggregate"]
