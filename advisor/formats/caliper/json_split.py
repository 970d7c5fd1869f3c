"""JSON in the layout ``json-split``: rows of numbers, the names of the columns, and the nodes that rows refer to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from advisor.formats.caliper.json_parts import decode_json, decode_sections, parse_number_rows, split_array
from advisor.formats.caliper.metrics import is_wanted_metric
from advisor.formats.caliper.number_checks import check_finite, to_whole_numbers
from advisor.formats.caliper.tables import ACTIVITIES, END, RANK, THREAD, RecordTable, RegionPaths
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.events import Role

#: What a global may be; a union is no type to the checker.
_SCALAR: Final[Any] = str | float | bool | None
_SECTIONS: Final = ("data", "columns", "column_metadata", "nodes")
#: Columns that hold the path of regions; the first that is there counts.
_PATHS: Final = ("path", "source.function#callpath.address")


class _LabelNode(msgspec.Struct):
    """A label in one of the hierarchies, and the index of the node above it."""

    label: str
    column: str
    parent: int | None = None


class _SplitLayout(msgspec.Struct):
    """What stands beside the rows."""

    columns: list[str]
    column_metadata: list[dict[str, str | bool | float | None]]
    nodes: list[_LabelNode]


def read_split_table(path: Path, data: bytes) -> RecordTable:
    """Return the rows of the file at ``path`` with the content ``data``; raises ``InputError`` with the place."""
    found = decode_sections(path, data)
    missing = [name for name in _SECTIONS if name not in found]
    if missing:
        raise InputError(path, f"has no {' and no '.join(missing)}: no json-split of Caliper, or cut off")
    layout = _SplitLayout(
        columns=decode_json(path, found["columns"], list[str], "columns"),
        column_metadata=decode_json(
            path, found["column_metadata"], list[dict[str, str | bool | float | None]], "metadata"
        ),
        nodes=decode_json(path, found["nodes"], list[_LabelNode], "nodes"),
    )
    if len(layout.column_metadata) != len(layout.columns) or len(set(layout.columns)) != len(layout.columns):
        raise InputError(path, f"{len(layout.columns)} columns, {len(layout.column_metadata)} descriptions", "columns")
    return _build_table(path, layout, _read_columns(path, layout, found["data"]), _decode_globals(path, found))


def _decode_globals(path: Path, found: Mapping[str, msgspec.Raw]) -> dict[str, str]:
    """Return what was recorded once for the run."""
    known = {}
    for name, raw in found.items():
        if name not in _SECTIONS:
            value = decode_json(path, raw, _SCALAR, name)
            known[name] = value if isinstance(value, str) else f"{value:g}"
    return known


def _read_columns(path: Path, layout: _SplitLayout, text: msgspec.Raw) -> dict[str, FloatArray]:
    """Return the columns (rows,) that can matter, NaN where a row has null."""
    width = len(layout.columns)
    used = [n for n, name in enumerate(layout.columns) if _is_relevant_column(layout, n, name)]
    types = tuple(float | None if n in used else str | float | bool | None for n in range(width))
    row: Any = GenericAlias(list, (GenericAlias(tuple, types),))
    parts: list[FloatArray] = [np.zeros((len(used), 0))]
    count = 0
    for piece in split_array(text, b"]"):
        table = parse_number_rows(piece, width)
        if table is None:
            rows = decode_json(path, piece, row, f"rows from {count + 1} on")
            found = np.array([[each[n] for n in used] for each in rows], dtype=np.float64).reshape(-1, len(used)).T
        else:
            found = table.T[used]
        parts.append(found)
        count += found.shape[1]
    columns = np.concatenate(parts, axis=1)
    return {layout.columns[n]: column for n, column in zip(used, columns, strict=True)}


def _is_relevant_column(layout: _SplitLayout, column: int, name: str) -> bool:
    if name in (RANK, THREAD, *ACTIVITIES, *_PATHS) or END.fullmatch(name):
        return True
    return layout.column_metadata[column].get("is_value") is not False and is_wanted_metric(name)


def _build_table(path: Path, layout: _SplitLayout, rows: dict[str, FloatArray], found: dict[str, str]) -> RecordTable:
    column = next((name for name in _PATHS if name in rows), None)
    if column is None:
        raise InputError(path, "has no column with the path of regions: nothing to advise on", "columns")
    count = len(rows[column])
    paths = RegionPaths()
    known = _number_paths(path, layout, paths)
    at = _node_indices(path, layout, rows.pop(column), column)
    where = np.where(at >= 0, known[at], -1)
    for name, role in ACTIVITIES.items():
        if name in rows:
            where = _extend_with_activities(
                paths, layout, where, _node_indices(path, layout, rows.pop(name), name), role
            )
    ends = [rows.pop(name) for name in list(rows) if END.fullmatch(name)]
    labels = layout.column_metadata
    for name in (RANK, THREAD):
        if name in rows and labels[layout.columns.index(name)].get("is_value") is False:
            rows[name] = _label_numbers(path, layout, rows[name], name)
    for name, values in rows.items():
        check_finite(values, path, name)
    units = {
        name: str(facts["attribute.unit"])
        for name, facts in zip(layout.columns, labels, strict=True)
        if "attribute.unit" in facts
    }
    return RecordTable(
        file=path,
        places=tuple(paths.places),
        path=where,
        rank=to_whole_numbers(rows.pop(RANK, None), count, path, RANK),
        thread=to_whole_numbers(rows.pop(THREAD, None), count, path, THREAD),
        ends=np.any([~np.isnan(each) for each in ends], axis=0) if ends else None,
        values=rows,
        units=units,
        globals=found,
    )


def _number_paths(path: Path, layout: _SplitLayout, paths: RegionPaths) -> IntArray:
    """Return the number of the path of each node (nodes + 1,); parents stand before their children."""
    numbers = np.full(len(layout.nodes) + 1, -1, dtype=np.int64)
    for n, node in enumerate(layout.nodes):
        if node.parent is not None and not 0 <= node.parent < n:
            raise InputError(path, f"the parent {node.parent} does not stand before its child", f"nodes[{n}]")
        if node.column in _PATHS:
            numbers[n] = paths.add_label(-1 if node.parent is None else int(numbers[node.parent]), node.label)
    return numbers


def _node_indices(path: Path, layout: _SplitLayout, column: FloatArray, name: str) -> IntArray:
    """Return the nodes that a column refers to (rows,), -1 for none."""
    known = ~np.isnan(column)
    bad = np.flatnonzero(known & ((column < 0) | (column >= len(layout.nodes)) | (column != np.floor(column))))
    if len(bad):
        raise InputError(path, f"{column[bad[0]]:g} is not a node for {name}", f"row {bad[0] + 1}")
    return np.where(known, column, -1.0).astype(np.int64)


def _extend_with_activities(
    paths: RegionPaths, layout: _SplitLayout, where: IntArray, labels: IntArray, role: Role
) -> IntArray:
    """Return ``where``, led on to the activity of each row that has one."""
    found = where.copy()
    pairs, inverse = np.unique(np.stack([where, labels]), axis=1, return_inverse=True)
    for n, (parent, label) in enumerate(pairs.T.tolist()):
        if label >= 0:
            found[inverse.ravel() == n] = paths.add_label(parent, layout.nodes[label].label, role)
    return found


def _label_numbers(path: Path, layout: _SplitLayout, column: FloatArray, name: str) -> FloatArray:
    """Return the numbers that nodes are labelled with, for columns that refer to nodes."""
    at = _node_indices(path, layout, column, name)
    labels = [node.label for node in layout.nodes]
    used = {n: labels[n] for n in np.unique(at[at >= 0]).tolist()}
    bad = next((label for label in used.values() if not (label.isascii() and label.isdigit() and len(label) < 9)), None)
    if bad is not None:
        raise InputError(path, f"{bad[:40]!r} is not a number for {name}", "nodes")
    numbers = np.array([float(used.get(n, "nan")) for n in range(len(labels))] + [np.nan])
    return numbers[at]
