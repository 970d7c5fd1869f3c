"""Tables of a model: numbers written out, read from a file, computed, or the neighbours in a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import DocumentError
from advisor_simulation.model import records

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.model.records import Computed, FromFile, Grid, Model, Table

LARGEST = 50_000_000
LARGEST_FILE = 256 * 2**20


@dataclass(frozen=True, slots=True)
class RaggedTable:
    """Rows of different lengths: row r holds ``values[first[r]:first[r + 1]]``."""

    first: IntArray
    values: IntArray

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.first) - 1


def build_ragged(rows: Sequence[Sequence[float]]) -> RaggedTable:
    """Return rows of whole numbers as one array."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    values = np.array([number for row in rows for number in row], dtype=np.float64)
    if not np.array_equal(values, np.rint(values)):
        raise ValueError("rows of different lengths hold indices: expected whole numbers")
    return RaggedTable(np.r_[0, np.cumsum(lengths)], values.astype(np.int64))


def read_tables(
    model: Model, folder: Path, names: Mapping[str, object]
) -> tuple[dict[str, FloatArray], dict[str, RaggedTable]]:
    """Return the rectangular and the ragged tables of a model; DocumentError with the place of what is wrong."""
    flat: dict[str, FloatArray] = {}
    lists: dict[str, RaggedTable] = {}
    for name, table in model.tables.items():
        try:
            found = _build_table(table, folder, {**names, **flat})
        except (ValueError, OSError) as error:
            raise DocumentError([table.mark.make_problem(f"{name}: {error}")]) from None
        if isinstance(found, RaggedTable):
            lists[name] = found
            flat[f"{name}_count"] = np.diff(found.first).astype(np.float64)
        else:
            flat[name] = found
    return flat, lists


def _build_table(table: Table, folder: Path, names: Mapping[str, object]) -> FloatArray | RaggedTable:
    if isinstance(table, records.Values):
        return _build_written(table.values)
    if isinstance(table, records.FromFile):
        return _read_table_file(table, folder)
    return _build_grid(table, names) if isinstance(table, records.Grid) else _compute_table(table, names)


def _build_written(values: Sequence[float | Sequence[float]]) -> FloatArray | RaggedTable:
    rows = [row for row in values if isinstance(row, tuple)]
    if not rows:
        return np.array(values, dtype=np.float64)
    if len(rows) < len(values):
        raise ValueError("expected either numbers or rows of numbers")
    if len({len(row) for row in rows}) == 1:
        return np.array(rows, dtype=np.float64)
    return build_ragged(rows)


def _read_table_file(table: FromFile, folder: Path) -> FloatArray | RaggedTable:
    path = folder / table.file
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{table.file}: expected a file next to the model")
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"{table.file}: expected at most {LARGEST_FILE:,} bytes")
    if path.suffix == ".npz":
        return _read_packed(path)
    lines = path.read_text(encoding="ascii").splitlines()
    rows = [[float(word) for word in line.split()] for line in lines if not line.startswith("#")]
    if table.ragged or len({len(row) for row in rows}) > 1:
        return build_ragged(rows)
    values = np.array(rows, dtype=np.float64)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _read_packed(path: Path) -> FloatArray | RaggedTable:
    """Return a table of a file of arrays: ``values``, and ``first`` of each row where it is ragged."""
    with np.load(path, allow_pickle=False) as packed:
        values = packed["values"]
        if "first" not in packed:
            return np.asarray(values, dtype=np.float64)
        return RaggedTable(packed["first"].astype(np.int64), values.astype(np.int64))


def _compute_table(table: Computed, names: Mapping[str, object]) -> FloatArray:
    size = table.size.value.evaluate_whole(names)
    if not 1 <= size <= LARGEST:
        raise ValueError(f"size: expected 1 to {LARGEST:,}, found {size:,}")
    scope = {**names, "i": np.arange(size, dtype=np.float64)}
    return np.broadcast_to(table.formula.value.evaluate_values(scope), (size,)).copy()


def _build_grid(table: Grid, names: Mapping[str, object]) -> RaggedTable:
    """Return the neighbours of each cell across its faces, in rising order."""
    sides = [side.value.evaluate_whole(names) for side in table.grid]
    size = int(np.prod(sides))
    if min(sides, default=0) < 1 or size > LARGEST // 6:
        raise ValueError("expected sides of at least 1 and not too many cells")
    cell = np.arange(size)
    pairs, stride = [], 1
    for side in sides:
        place = cell // stride % side
        lower = cell[place > 0]
        upper = cell[place < side - 1]
        pairs += [np.c_[lower, lower - stride], np.c_[upper, upper + stride]]
        stride *= side
    both = np.concatenate(pairs)
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    first = np.searchsorted(both[:, 0], np.arange(size + 1))
    return RaggedTable(first.astype(np.int64), both[:, 1].astype(np.int64))
