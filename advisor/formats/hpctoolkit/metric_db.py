"""``*.metric-db``: the values of one thread for every node of ``experiment.xml``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.hpctoolkit.database import NODE_LIMIT, SIZE_LIMIT, MeasuredThread
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

FILE_LIMIT: Final = 1_000_000  # threads
_MARK: Final = b"HPCPROF-metricdb__"
_VERSION: Final = b"00.10"
_HEADER: Final = 32  # bytes: mark, version, byte order, numbers of nodes and metrics
#: Program, rank, thread, node, process and a count, by which hpcprof names the files.
_NAME: Final = re.compile(r"-(\d{6,9})-(\d{3,9})-([0-9a-fA-F]{1,16})-\d{1,12}-\d{1,9}\.metric-db")


def find_files(directory: Path) -> list[Path]:
    """Return the files of all threads in ``directory``, by name."""
    return sorted(path for path in directory.glob("*.metric-db") if path.is_file())


def parse_threads(files: list[Path]) -> tuple[MeasuredThread, ...]:
    """Return the threads of the files, which stand in their names; raises ``InputError`` where one has no such name."""
    if len(files) > FILE_LIMIT:
        raise InputError(files[0].parent, f"holds more than {FILE_LIMIT:,} metric-db files")
    found = []
    for path in files:
        name = _NAME.search(path.name)
        if not name:
            raise InputError(path, "the name tells neither rank nor thread")
        found.append(MeasuredThread(int(name[1]), int(name[2]), name[3].lower()))
    return tuple(found)


def read_values(path: Path, place: int, metrics: int, nodes: IntArray) -> FloatArray:
    """Return the values of one metric, at ``place`` among ``metrics``, for the ``nodes`` by their numbers, from 1.

    Raises ``InputError`` with the byte for a file that is damaged or belongs to another document.
    """
    with path.open("rb") as stream:
        head = stream.read(_HEADER)
    if len(head) < _HEADER or not head.startswith(_MARK):
        raise InputError(path, "is not a metric-db file", "byte 0")
    if head[18:23] != _VERSION or head[23:24] not in (b"b", b"l"):
        raise InputError(path, f"unsupported version {head[18:24].decode('latin-1')!r}", "byte 18")
    order = ">" if head[23:24] == b"b" else "<"
    rows, columns = (int(number) for number in np.frombuffer(head, dtype=order + "u4", offset=24))
    if columns != metrics or rows > NODE_LIMIT:
        raise InputError(path, f"holds {columns} metrics of {rows:,} nodes, the document tells of {metrics}", "byte 24")
    size = path.stat().st_size
    if size != _HEADER + 8 * rows * columns or size > SIZE_LIMIT:
        raise InputError(path, f"is {size:,} bytes, and {_HEADER + 8 * rows * columns:,} by its header")
    values = np.fromfile(path, dtype=order + "f8", offset=_HEADER).reshape(rows, columns)[:, place]
    wrong = np.flatnonzero(~(values >= 0) | np.isinf(values))
    if len(wrong):
        node = int(wrong[0])
        where = f"byte {_HEADER + 8 * (node * columns + place)}"
        raise InputError(path, f"the value of node {node + 1} is {values[node]:g}", where)
    result = np.zeros(len(nodes))
    known = nodes <= rows
    result[known] = values[nodes[known] - 1]
    return result
