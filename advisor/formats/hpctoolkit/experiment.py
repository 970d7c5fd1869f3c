"""``experiment.xml`` with ``*.metric-db``: what hpcprof-mpi of HPCToolkit before 2022 wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats import safe_xml
from advisor.formats.hpctoolkit import metric_db
from advisor.formats.hpctoolkit.database import NODE_LIMIT, CallFrames, Database, MeasuredThread, parse_time_metric
from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

DOCUMENT: Final = "experiment.xml"
_DOCUMENT_LIMIT: Final = 1 << 30  # bytes
_NUMBER: Final = re.compile(r"\d{1,9}")
_VALUE: Final = re.compile(r"\d{1,30}(\.\d{0,30})?(e[+-]?\d{1,3})?", re.IGNORECASE)
#: Frames of functions, called and inlined ones, and what lies inside of them: call sites, loops, statements.
_FRAMES: Final = frozenset({"PF", "P", "Pr"})
_INSIDE: Final = frozenset({"C", "L", "S", "A"})
_UNKNOWN_FILE: Final = "<unknown file>"
#: Sums of which six digits are printed, relative.
_PRINTED: Final = 2e-5


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """A metric in the metric-db files: its name, and its place among the values of a node."""

    name: str
    place: int
    metrics: int


@dataclass(slots=True)
class Experiment:
    """What the document says. ``node`` is each frame's node number, ``printed_values`` the values by metric and frame.

    ``statistics`` are the names of the metrics that stand in the document, by their numbers there.
    """

    program: str = ""
    names: dict[str, dict[str, str]] = field(default_factory=lambda: {"lm": {}, "f": {}, "n": {}})
    columns: list[MetricColumn] = field(default_factory=list)
    statistics: dict[str, str] = field(default_factory=dict)
    frames: CallFrames = field(default_factory=CallFrames)
    node: list[int] = field(default_factory=list)
    printed_values: dict[str, dict[int, float]] = field(default_factory=dict)


def read_experiment(place: Path) -> Database:
    """Return the database in a directory, or that of the document at ``place``, whatever its name.

    Raises ``InputError`` with file and line or byte of what is damaged.
    """
    directory = place if place.is_dir() else place.parent
    path = place if place.suffix == ".xml" and place.is_file() else directory / DOCUMENT
    if not path.is_file():
        raise InputError(directory, f"holds neither meta.db nor {DOCUMENT}")
    handler = _ExperimentHandler()
    safe_xml.parse_xml(read_limited(path, _DOCUMENT_LIMIT), handler, path, document_type=True)
    found = handler.found
    if not handler.ended:
        raise InputError(path, "is not an HPCToolkit experiment")
    if not found.frames.name:
        raise InputError(path, "holds no call paths")
    files = metric_db.find_files(directory)
    node = np.array(found.node, dtype=np.int64)
    if files:
        threads = metric_db.parse_threads(files)
        columns = [column for column in found.columns if column.name.endswith("(I)") and parse_time_metric(column.name)]
        inclusive = {_time_kind(column.name): _read_values(files, column, node) for column in columns}
        return Database(found.program, found.frames, threads, inclusive, tuple(_find_contradictions(found, inclusive)))
    inclusive = _printed_values(found, path)
    return Database(found.program, found.frames, (MeasuredThread(0, 0, None),), inclusive, ())


def _time_kind(name: str) -> str:
    found = parse_time_metric(name)
    return "" if found is None else found[0]


def _read_values(files: list[Path], column: MetricColumn, node: IntArray) -> FloatArray:
    found = parse_time_metric(column.name)
    unit = 1.0 if found is None else found[1]
    return np.column_stack([metric_db.read_values(file, column.place, column.metrics, node) for file in files]) * unit


def _find_contradictions(found: Experiment, inclusive: Mapping[str, FloatArray]) -> list[str]:
    """Return where the sums over all threads, of which the document states six digits, are others than in the files."""
    doubts = []
    for number, name in found.statistics.items():
        time = parse_time_metric(name)
        if time is None or not name.endswith(":Sum (I)") or time[0] not in inclusive:
            continue
        printed = np.zeros(len(found.node))
        for frame, value in found.printed_values.get(number, {}).items():
            printed[frame] = value * time[1]
        summed = inclusive[time[0]].sum(axis=1)
        wrong = np.flatnonzero(np.abs(printed - summed) > _PRINTED * np.maximum(printed, summed) + 1e-9)
        if len(wrong):
            first = int(wrong[0])
            doubts.append(
                f"{found.frames.name[first][:60]} took {printed[first]:.6g} s on all threads, "
                f"{summed[first]:.6g} s in the files that are there"
            )
    return doubts


def _printed_values(found: Experiment, path: Path) -> dict[str, FloatArray]:
    """Return the values of a run with a single thread, which stand in the document itself."""
    inclusive: dict[str, FloatArray] = {}
    for number, name in found.statistics.items():
        time = parse_time_metric(name)
        if time is None or not name.endswith("(I)"):
            continue
        if ":" in name:
            raise InputError(path, "holds sums over all threads only: hpcprof-mpi --metric-db yes …")
        values = np.zeros((len(found.node), 1))
        for frame, value in found.printed_values.get(number, {}).items():
            values[frame, 0] = value * time[1]
        inclusive[time[0]] = values
    return inclusive


class _ExperimentHandler:
    """Fills an ``Experiment`` from the elements of the document."""

    def __init__(self) -> None:
        self.found = Experiment()
        self.ended = False
        self._path: list[str] = []
        self._open: list[int] = []  # frames
        self._seen: set[int] = set()

    def start_element(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take the beginning of an element."""
        if not self._path and name != "HPCToolkitExperiment":
            raise ValueError(f"the document is a {name[:40]}")
        self._path.append(name)
        if name in _FRAMES:
            self._open_frame(attributes)
        elif name in _INSIDE:
            self._register_node(attributes)
        elif name == "M":
            self._add_value(attributes)
        elif name in ("Metric", "MetricDB"):
            self._add_metric(name, attributes)
        elif name in ("LoadModule", "File", "Procedure"):
            table = {"LoadModule": "lm", "File": "f", "Procedure": "n"}[name]
            self.found.names[table][attributes.get("i", "")] = attributes.get("n", "")
        elif name == "Header":
            self.found.program = attributes.get("n", "")

    def end_element(self, name: str, _text: str) -> None:
        """Take the end of an element."""
        self._path.pop()
        if name in _FRAMES:
            self._open.pop()
        elif name == "HPCToolkitExperiment":
            self.ended = True

    def _register_node(self, attributes: Mapping[str, str]) -> int:
        """Return the number of a node, which occurs once."""
        text = attributes.get("i", "")
        if not _NUMBER.fullmatch(text) or int(text) == 0:
            raise ValueError(f"a node without number: {text[:40]!r}")
        number = int(text)
        if number in self._seen:
            raise ValueError(f"node {number} occurs twice")
        if len(self._seen) >= NODE_LIMIT:
            raise ValueError(f"more than {NODE_LIMIT:,} nodes")
        self._seen.add(number)
        return number

    def _open_frame(self, attributes: Mapping[str, str]) -> None:
        file: str | None = self._resolve_name("f", attributes)
        line = attributes.get("l", "0").split("-")[0]
        if not _NUMBER.fullmatch(line):
            raise ValueError(f"no line number: {line[:40]!r}")
        frame = self.found.frames.add_frame(
            self._resolve_name("n", attributes),
            self._resolve_name("lm", attributes),
            None if file in ("", _UNKNOWN_FILE) else file,
            int(line),
            self._open[-1] if self._open else -1,
        )
        self.found.node.append(self._register_node(attributes))
        self._open.append(frame)

    def _resolve_name(self, table: str, attributes: Mapping[str, str]) -> str:
        """Return what a number in a table stands for; older versions write the name itself."""
        text = attributes.get(table, "")
        known = self.found.names[table]
        if known and text not in known and _NUMBER.fullmatch(text):
            raise ValueError(f"{table}={text} is in no table")
        return known.get(text, text)

    def _add_metric(self, name: str, attributes: Mapping[str, str]) -> None:
        called = attributes.get("n", "")
        if name == "Metric":
            self.found.statistics[attributes.get("i", "")] = called
            return
        place, metrics = attributes.get("db-id", ""), attributes.get("db-num-metrics", "")
        if not _NUMBER.fullmatch(place) or not _NUMBER.fullmatch(metrics) or int(place) >= int(metrics):
            raise ValueError(f"metric {called[:60]} has no place among {metrics[:20]} metrics")
        self.found.columns.append(MetricColumn(called, int(place), int(metrics)))

    def _add_value(self, attributes: Mapping[str, str]) -> None:
        """Take a value of the frame around it; those of call sites and statements are parts of it."""
        text = attributes.get("v", "")
        if not _VALUE.fullmatch(text):
            raise ValueError(f"no value: {text[:40]!r}")
        if len(self._path) > 1 and self._path[-2] in _FRAMES:
            self.found.printed_values.setdefault(attributes.get("n", ""), {})[self._open[-1]] = float(text)
