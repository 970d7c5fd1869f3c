"""How many operations the cycles hold: the parallelism vector and the parallelism matrix of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.reports import Axis, Column, Line, Part, Series, Table, Text
from advisor_similarity.measures import Cells, Matrix, build_parallelism_matrix, select_most_frequent
from advisor_similarity.steps import COARSE, UNKNOWN

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor_similarity.parallelism import Observation

#: Cycles that are kept apart for a histogram: 24 bytes each.
ROWS: Final = 20_000_000
#: Cells of a parallelism matrix that a library keeps.
CELLS: Final = 32
_MOST_ROWS: Final = 15


def build_histogram(observed: Observation) -> list[Part]:
    """Return the parts of the report for a run whose single cycles were kept, none for others."""
    rows = read_rows(observed)
    if rows is None or not len(rows):
        return []
    totals, instances = np.unique(rows.sum(axis=1), return_counts=True)
    shares = instances / instances.sum()
    x = tuple(float(total) for total in totals)
    line = Line("share of the cycles", x, tuple(shares.tolist()), joined=False)
    axes = Axis("operations per cycle"), Axis("share of the cycles", "share")
    parts: list[Part] = [Series("Parallelism vector", *axes, (line,)), _frequent_table(compute_matrix(rows))]
    if len(rows) < observed.workload.cycles:
        parts.append(Text(f"The histogram covers the first {len(rows):,} of {observed.workload.cycles:,} cycles."))
    return parts


def read_rows(observed: Observation) -> IntArray | None:
    """Return operations by component in each cycle (cycles, 6) of the longest thread, None if they were not kept."""
    stream = max(observed.image.streams, key=lambda stream: stream.cycles)
    if stream.rows is None:
        return None
    return np.fromfile(stream.rows, dtype=np.uint32).reshape(-1, UNKNOWN + 1).astype(np.int64)


def frequent_cells(observed: Observation) -> Cells:
    """Return the most frequent cells of the run's parallelism matrix; none where single cycles were not kept."""
    rows = read_rows(observed)
    return select_most_frequent(compute_matrix(rows), CELLS) if rows is not None and len(rows) else ()


def compute_matrix(rows: IntArray) -> Matrix:
    """Return the parallelism matrix of cycles (n, 6): the share of each combination of the five components."""
    distinct, instances = np.unique(rows[:, :UNKNOWN], axis=0, return_counts=True)
    return build_parallelism_matrix(distinct, instances)


def _frequent_table(matrix: Matrix) -> Table:
    cells = select_most_frequent(matrix, _MOST_ROWS)
    columns = (*(Column(name) for name in COARSE), Column("share of the cycles", "share"))
    title = f"Most frequent of {len(matrix):,} parallel instructions"
    return Table(title, columns, tuple((*cell, share) for cell, share in cells))
