"""Caliper files made of recorded ones, in the layouts of which none was recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def as_split(records: Sequence[dict[str, Any]], file: Path, **told: str) -> Path:
    """Write ``records`` as Caliper's json-split, the ends of regions and the path as columns that refer to nodes."""
    names = [*sorted({name for record in records for name in record if name != "path"}), "path"]
    nodes: list[dict[str, Any]] = []
    numbers: dict[tuple[Any, ...], int] = {}

    def node(label: str, column: str, parent: int | None) -> int:
        key = (label, column, parent)
        if key not in numbers:
            numbers[key] = len(nodes)
            nodes.append({"label": label, "column": column} | ({} if parent is None else {"parent": parent}))
        return numbers[key]

    def cell(record: dict[str, Any], name: str) -> object:
        value = record.get(name)
        if not isinstance(value, str):
            return value
        parent = None
        for label in value.split("/") if name == "path" else [value]:
            parent = node(label, name, parent)
        return parent

    rows = [[cell(record, name) for name in names] for record in records]
    return write_split(file, rows, names, nodes, [not name.startswith(("event.", "path")) for name in names], **told)


def write_split(
    file: Path,
    rows: Sequence[Sequence[object]],
    names: Sequence[str],
    nodes: Sequence[dict[str, Any]],
    values: Sequence[bool],
    **told: str,
) -> Path:
    """Write a json-split with the line breaks and blanks that Caliper puts there."""
    lines = ",\n    ".join(f"[ {', '.join(json.dumps(value) for value in row)} ]" for row in rows)
    facts = [{"is_value": value} for value in values]
    beside = {
        "columns": names,
        "column_metadata": facts,
        "nodes": nodes,
        **{k.replace("_", "."): told[k] for k in told},
    }
    text = ",\n  ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in beside.items())
    file.write_text(f'{{\n  "data": [\n    {lines}\n  ],\n  {text}\n}}\n')
    return file


#: Attributes of the small ``.cali`` files that tests write: the region path, MPI calls, ranks, and an unit-less time.
DEFINITIONS = """\
__rec=node,id=18,attr=10,data=276,parent=3
__rec=node,id=20,attr=8,data=region,parent=18
__rec=node,id=92,attr=8,data=mpi.function,parent=18
__rec=node,id=93,attr=10,data=77,parent=1
__rec=node,id=94,attr=8,data=mpi.rank,parent=93
__rec=node,id=39,attr=10,data=85,parent=2
__rec=node,id=106,attr=8,data=sum#time.duration.ns,parent=39
"""
END = "__rec=globals,ref=3\n"


def native(file: Path, body: str, end: str = END) -> Path:
    """Write a ``.cali`` file with the common definitions."""
    file.write_bytes((DEFINITIONS + body + end).encode("utf-8", "surrogateescape"))
    return file
