"""One Caliper file as columns: what all its layouts become before call paths are made of them."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.caliper.number_checks import check_finite, to_whole_numbers
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray, Note

RANK: Final = "mpi.rank"
THREAD: Final = "omp.thread.id"
#: Attributes that are not part of the path of regions, and what the time is spent on where they are set.
ACTIVITIES: Final = {"omp.sync": Role.OMP_BARRIER, "omp.work": Role.OMP_WORK, "io.region": Role.IO}
#: What the begin and end of a region set; ends of iterations are no ends of regions.
END: Final = re.compile(r"event\.end#(?!iteration#).*")

_MPI_NAME: Final = re.compile(r"p?mpi_\w+", re.IGNORECASE)


def classify_label(label: str) -> tuple[str, Role]:
    """Return name and role of an annotated region: only MPI functions are library calls, whatever others are called."""
    return classify_region(label) if _MPI_NAME.fullmatch(label) else (label, Role.USER)


@dataclass(frozen=True, slots=True)
class RegionPath:
    """A path of regions: the last region's name and role, and ``parent``, the path above (-1: none)."""

    name: str
    role: Role
    parent: int


class RegionPaths:
    """Paths of regions, each once, parents before their children."""

    __slots__ = ("_numbers", "places")

    def __init__(self) -> None:
        self.places: list[RegionPath] = []
        self._numbers: dict[RegionPath, int] = {}

    def add_label(self, parent: int, label: str, role: Role | None = None) -> int:
        """Return the number of the path that leads from ``parent`` (-1: none) to ``label``."""
        name, known = classify_label(label)
        return self.add_path(RegionPath(label, role, parent) if role is not None else RegionPath(name, known, parent))

    def add_path(self, place: RegionPath) -> int:
        """Return the number of ``place``, which is added when it is new."""
        found = self._numbers.setdefault(place, len(self.places))
        if found == len(self.places):
            self.places.append(place)
        return found


@dataclass(frozen=True, slots=True)
class RecordTable:
    """The records of one file.

    All arrays have one entry per record: ``path`` the number of the path in ``places`` (-1: outside of all regions),
    ``rank`` and ``thread`` (-1: not recorded), ``ends`` whether the record was taken when a region ended (None: the
    file does not tell), ``values`` the metrics by attribute, NaN where a record has none. ``units`` holds what the file
    says the unit of an attribute is. ``globals`` is what was recorded once for the whole run.
    """

    file: Path
    places: tuple[RegionPath, ...]
    path: IntArray
    rank: IntArray
    thread: IntArray
    ends: npt.NDArray[np.bool_] | None
    values: Mapping[str, FloatArray]
    units: Mapping[str, str] = field(default_factory=dict)
    globals: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


class SparseColumns:
    """Columns of numbers that grow record by record; what a record does not set is NaN.

    Records that set the same names are kept together, as rows of a table each.
    """

    __slots__ = ("_tables", "count")

    def __init__(self) -> None:
        self.count = 0
        self._tables: dict[tuple[str, ...], tuple[array[int], array[float]]] = {}

    def add_record(self, names: tuple[str, ...], values: Sequence[float]) -> None:
        """Add a record with ``values`` for ``names``; the first value of a name counts."""
        table = self._tables.get(names)
        if table is None:
            table = self._tables.setdefault(names, (array("q"), array("d")))
        table[0].append(self.count)
        table[1].extend(values)
        self.count += 1

    def to_arrays(self) -> dict[str, FloatArray]:
        """Return the columns (records,) by name."""
        found: dict[str, FloatArray] = {}
        for names, (records, values) in self._tables.items():
            rows = np.array(values, dtype=np.float64).reshape(len(records), len(names))
            for n in range(len(names) - 1, -1, -1):
                found.setdefault(names[n], np.full(self.count, np.nan))[np.array(records)] = rows[:, n]
        return found


class RecordRows:
    """The records of a file as they come: where each belongs, whether a region ended with it, and its numbers."""

    __slots__ = ("_columns", "_ends", "_path_of", "paths")

    def __init__(self) -> None:
        self.paths = RegionPaths()
        self._columns = SparseColumns()
        self._path_of: list[int] = []
        self._ends: list[bool] = []

    @property
    def count(self) -> int:
        """How many records have come."""
        return self._columns.count

    def add_record(self, path: int, ends: bool, names: tuple[str, ...], values: Sequence[float]) -> None:
        """Add a record with ``values`` for ``names`` that belongs to a path (-1: to none)."""
        self._path_of.append(path)
        self._ends.append(ends)
        self._columns.add_record(names, values)

    def build_table(
        self, file: Path, units: Mapping[str, str], recorded_once: Mapping[str, str], notes: tuple[Note, ...] = ()
    ) -> RecordTable:
        """Return them as the table of ``file``; raises ``InputError`` for numbers that no run can give."""
        values = self._columns.to_arrays()
        for name, column in values.items():
            check_finite(column, file, name)
        ends = np.array(self._ends, dtype=bool)
        return RecordTable(
            file=file,
            places=tuple(self.paths.places),
            path=np.array(self._path_of, dtype=np.int64),
            rank=to_whole_numbers(values.pop(RANK, None), self.count, file, RANK),
            thread=to_whole_numbers(values.pop(THREAD, None), self.count, file, THREAD),
            ends=ends if ends.any() else None,
            values=values,
            units=units,
            globals=recorded_once,
            notes=notes,
        )
