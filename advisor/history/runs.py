"""The runs and their advice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import randbits
from typing import TYPE_CHECKING, Any, Final

from advisor.history import dialect, run_packing
from advisor.history.dialect import HistoryConnection, StoreLost
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from advisor.model.records import Advice

#: Stands in no path: before the number of a run that was read from one at which another run's content lies now.
_PAST: Final = b"\0"
_summaries: Final = run_packing.SummaryCache()
#: Runs have smaller numbers, in any history.
LAST_NUMBER: Final = 2**63 - 1
_COLUMNS: Final = "id, program, run, build, started, added, ranks, actual_s, reader, grade, verdict"
#: What advice on a new run asks of the history; a child that reads asks for nothing else (``child_reads``).
ENTRIES: Final = f"SELECT {_COLUMNS} FROM runs WHERE id < ? ORDER BY id DESC LIMIT ?"
ENTRIES_OF_PROGRAM: Final = f"SELECT {_COLUMNS} FROM runs WHERE program = ? AND id < ? ORDER BY id DESC LIMIT ?"
LATEST_RUNS: Final = "SELECT id, stamp FROM runs WHERE program = ? AND id <= ? ORDER BY id DESC LIMIT ?"
ADVICE_OF_RUN: Final = "SELECT advice FROM runs WHERE id = ?"
STAMP_OF_RUN: Final = "SELECT stamp FROM runs WHERE id = ?"
SUMMARY_OF_RUN: Final = "SELECT content FROM summaries WHERE run = ?"
RUN_OF_PATH: Final = "SELECT run FROM units WHERE path = ? AND run IS NOT NULL"


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run in the history, without its advice; ``number`` grows with each run that was added."""

    number: int
    program: str
    run: str
    build: str | None
    started: str | None
    added: str
    ranks: int
    actual_s: float | None
    reader: str
    grade: str
    verdict: str


@dataclass(frozen=True, slots=True)
class ProfileUnit:
    """One profile as it lies on the disk: a file or a directory, the reader that takes it, a hash of its content."""

    path: Path
    reader: str
    digest: str


@dataclass(frozen=True, slots=True)
class LatestRuns:
    """The advice on the newest runs that can be read, the oldest first, and what to say of those that can't."""

    advice: tuple[Advice, ...]
    problem: str | None


class RunStore:
    """The runs of the database; writing methods work inside the transaction that their caller opened."""

    def __init__(self, connection: HistoryConnection) -> None:
        self._connection = connection

    def add_run(self, advice: Advice, units: Sequence[ProfileUnit], now: datetime) -> int:
        """Store a run with the units that it was read from, and return its number.

        A run that any of these units was read into before is replaced: it keeps its number.
        """
        known = self.runs_of_paths([unit.path for unit in units])
        profile = advice.profile
        packed, summary = run_packing.pack_advice(advice)
        values = (
            profile.program, profile.run, profile.build, profile.started, now.astimezone(UTC).isoformat("T", "seconds"),
            profile.ranks, len(profile.processors), profile.actual_s if profile.has_run_time else None,
            profile.reader, advice.grade.letter, advice.verdict, packed, randbits(63),
        )  # fmt: skip
        columns = (
            "program, run, build, started, added, ranks, processors, actual_s, reader, grade, verdict, advice, stamp"
        )
        marks = ", ".join("?" * len(values))
        if known:
            number = min(known)
            self._connection.execute(f"UPDATE runs SET ({columns}) = ({marks}) WHERE id = ?", (*values, number))
        else:
            made = self._connection.execute(f"INSERT INTO runs ({columns}) VALUES ({marks})", values)
            number = int(made.lastrowid or 0)
        self._connection.execute(
            "INSERT INTO summaries (run, content) VALUES (?, ?) ON CONFLICT (run) "
            "DO UPDATE SET content = excluded.content",
            (number, summary),
        )
        for unit in units:
            self._store_unit(unit, number)
        return number

    def add_copy(self, unit: ProfileUnit) -> None:
        """Note a unit with the content of another one; a run that was read from its path before stays as it was."""
        path = self._encode(unit.path)
        asked = "SELECT id, digest, run FROM units WHERE path = ? AND run IS NOT NULL AND digest <> ?"
        for number, digest, run in self._connection.execute(asked, (path, unit.digest)).fetchall():
            if not self._hand_over(number, digest, run):
                past = path + _PAST + str(run).encode()
                self._connection.execute("UPDATE units SET path = ? WHERE id = ?", (past, number))
        self._store_unit(unit, None)

    def _store_unit(self, unit: ProfileUnit, run: int | None) -> None:
        values = (unit.reader, unit.digest, run, self._encode(unit.path))
        changed = self._connection.execute("UPDATE units SET reader = ?, digest = ?, run = ? WHERE path = ?", values)
        if not changed.rowcount:
            self._connection.execute("INSERT INTO units (reader, digest, run, path) VALUES (?, ?, ?, ?)", values)

    def release_changed_units(self, units: Sequence[ProfileUnit]) -> None:
        """Keep what runs were read from that ``units`` would replace, as other content lies at their paths now.

        Where a copy of the old content is known, the run is the copy's from now on. Where there is none, the run is
        given up for the new one, and its recordings elsewhere, which are not of that, belong to none any more.
        """
        paths = {self._encode(unit.path): unit.digest for unit in units}
        asked = (
            f"SELECT id, path, digest, run FROM units WHERE run IS NOT NULL AND path IN ({', '.join('?' * len(paths))})"
        )
        rows = self._connection.execute(asked, list(paths)).fetchall()
        for number, path, digest, run in rows:
            if digest == paths[path] or self._hand_over(number, digest, run):
                continue
            others = self._connection.execute("SELECT id, path FROM units WHERE run = ?", (run,)).fetchall()
            for other, place in others:
                if place not in paths:
                    self._set_run(other, None)

    def _hand_over(self, unit: int, digest: str, run: int) -> bool:
        """Give a run to a copy of the unit that it was read from; return whether there is one."""
        # the number of a present unit with equal content that yielded no run; None without one
        row = self._connection.execute(
            "SELECT id FROM units WHERE digest = ? AND run IS NULL AND EXISTS "
            "(SELECT 1 FROM files WHERE unit = units.id AND state = 'duplicate') ORDER BY id LIMIT 1",
            (digest,),
        ).fetchone()
        copy = None if row is None else int(row[0])
        if copy is not None:
            self._set_run(unit, None)
            self._set_run(copy, run)
            self._connection.execute(
                "UPDATE files SET state = 'ingested', reason = NULL WHERE unit = ? AND state = 'duplicate'", (copy,)
            )
        return copy is not None

    def _set_run(self, unit: int, run: int | None) -> None:
        self._connection.execute("UPDATE units SET run = ? WHERE id = ?", (run, unit))

    def runs_of_paths(self, paths: Sequence[Path]) -> frozenset[int]:
        """Return the numbers of the runs that were read from any of these paths."""
        found = [self._connection.execute(RUN_OF_PATH, (self._encode(path),)).fetchone() for path in paths]
        return frozenset(int(row[0]) for row in found if row is not None)

    def find_unit_number(self, path: Path) -> int | None:
        """Return the number of the unit at ``path``, None where there is none."""
        row = self._connection.execute("SELECT id FROM units WHERE path = ?", (self._encode(path),)).fetchone()
        return None if row is None else int(row[0])

    def find_duplicate(self, digest: str, path: Path) -> Path | None:
        """Return where the same content was read before from another path, None where it was not."""
        row = self._connection.execute(
            "SELECT path FROM units WHERE digest = ? AND path <> ? AND run IS NOT NULL", (digest, self._encode(path))
        ).fetchone()
        return None if row is None else Path(self._decode(row[0].split(_PAST)[0]))

    def units_of_run(self, number: int) -> tuple[ProfileUnit, ...]:
        """Return what a run was read from, as far as no other content is known to lie there now."""
        rows = self._connection.execute(
            "SELECT path, reader, digest FROM units WHERE run = ? ORDER BY id", (number,)
        ).fetchall()
        return tuple(
            ProfileUnit(Path(self._decode(path)), reader, digest) for path, reader, digest in rows if _PAST not in path
        )

    def _encode(self, path: Path) -> bytes:
        return dialect.encode_path(self._connection, path)

    def _decode(self, path: bytes) -> str:
        return dialect.decode_path(self._connection, path)

    def list_entries(
        self, program: str | None = None, most: int = 1_000_000, before: int = LAST_NUMBER
    ) -> tuple[RunEntry, ...]:
        """Return the newest runs ``before`` the one of that number, of one program if given, the oldest first."""
        asked, values = (ENTRIES, ()) if program is None else (ENTRIES_OF_PROGRAM, (program,))
        rows = self._connection.execute(asked, (*values, before, most))
        return tuple(RunEntry(*row) for row in rows.fetchall()[::-1])

    def load_newest(self, programs: Sequence[str]) -> tuple[list[Advice], list[str]]:
        """Return the advice on the newest run of each of these programs, and what is said of those that can't be read.

        Raises ``StoreLost``.
        """
        found = [self.load_latest_advice(program, 1, (), LAST_NUMBER) for program in programs]
        return [advice for one in found for advice in one.advice], [one.problem for one in found if one.problem]

    def list_programs(self) -> tuple[str, ...]:
        """Return the programs of all runs, the one that ran last first."""
        rows = self._connection.execute("SELECT program FROM runs GROUP BY program ORDER BY max(id) DESC")
        return tuple(program for (program,) in rows)

    def has_program(self, program: str) -> bool:
        """Return whether there is a run of a program."""
        asked = "SELECT 1 FROM runs WHERE program = ? LIMIT 1"
        return self._connection.execute(asked, (program,)).fetchone() is not None

    def load_advice(self, number: int) -> Advice:
        """Return the advice on a run, slim; raises ``StoreError`` where there is none or it is damaged."""
        packed = self._read_value(ADVICE_OF_RUN, number)
        if packed is None:
            raise StoreError(f"no run {number} in the history")
        return run_packing.unpack_advice(number, packed)

    def load_summary(self, number: int) -> Advice:
        """Return of the advice on a run what ``run_packing`` keeps for later runs, in a fraction of the time.

        Raises ``StoreError`` where there is none or it is damaged.
        """
        stamp = self._read_value(STAMP_OF_RUN, number)
        if stamp is None:
            raise StoreError(f"no run {number} in the history")
        return self._load_stamped(number, stamp)

    def _load_stamped(self, number: int, stamp: int) -> Advice:
        known = _summaries.find_summary(number, stamp)
        if known is not None:
            return known
        for asked in (SUMMARY_OF_RUN, ADVICE_OF_RUN):
            try:
                packed = self._read_value(asked, number)
                if packed is not None:
                    found = run_packing.unpack_summary(number, packed)
                    _summaries.add_summary(number, stamp, found, len(packed))
                    return found
            except StoreLost:
                raise
            except StoreError as error:
                damage = error
        raise damage

    def _read_value(self, asked: str, number: int) -> Any:  # noqa: ANN401 - whatever the column holds
        """Return a value of a run, None where there is no such row; raises ``StoreError`` for a damaged page."""
        try:
            row = self._connection.execute(asked, (number,)).fetchone()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise StoreError(f"the advice on run {number} is damaged: {error}") from error
        return None if row is None else row[0]

    def load_latest_advice(self, program: str, most: int, without: Collection[int], until: int) -> LatestRuns:
        """Return the advice on the newest runs ``until`` one of a program, the oldest first, without some."""
        return self._load_latest(program, most, without, until, lambda number, _: self.load_advice(number))

    def load_latest_summaries(self, program: str, most: int, without: Collection[int], until: int) -> LatestRuns:
        """Return what ``load_latest_advice`` does, as far as ``load_summary`` tells it."""
        return self._load_latest(program, most, without, until, self._load_stamped)

    def _load_latest(
        self, program: str, most: int, without: Collection[int], until: int, load: Callable[[int, int], Advice]
    ) -> LatestRuns:
        rows = self._connection.execute(LATEST_RUNS, (program, until, most))
        found: list[Advice] = []
        damaged: list[StoreError] = []
        for number, stamp in rows.fetchall()[::-1]:
            if number not in without:
                try:
                    found.append(load(number, stamp))
                except StoreLost:
                    raise
                except StoreError as error:
                    damaged.append(error)
        return LatestRuns(tuple(found), _describe_damage(damaged))

    def find_runs_without_reader(self, program: str, reader: str, most: int) -> tuple[int, ...]:
        """Return the runs without a recording by a reader among the newest of a program, the newest first."""
        asked = "SELECT id, reader FROM runs WHERE program = ? ORDER BY id DESC LIMIT ?"
        rows = self._connection.execute(asked, (program, most))
        return tuple(number for number, readers in rows if f"+{reader}+" not in f"+{readers}+")

    def count_runs(self, program: str | None = None) -> int:
        """Return how many runs there are, of one program if given."""
        # the condition on a program, if one is given, in a form that finds it by an index
        where, asked = ("", ()) if program is None else (" WHERE program = ?", (program,))
        return int(self._connection.execute(f"SELECT count(*) FROM runs{where}", asked).fetchone()[0])

    def size_B(self) -> int:
        """Return the size of the whole history in bytes (``dialect.measure_size_B``)."""
        return dialect.measure_size_B(self._connection)

    def drop_oldest(self, many: int) -> int:
        """Drop this many of the oldest runs, and return how many were dropped; their files stay known."""
        oldest = [row[0] for row in self._connection.execute("SELECT id FROM runs ORDER BY id LIMIT ?", (many,))]
        if not oldest:
            return 0
        self._connection.execute("UPDATE units SET run = NULL WHERE run <= ?", (oldest[-1],))
        self._connection.execute("DELETE FROM summaries WHERE run <= ?", (oldest[-1],))
        return self._connection.execute("DELETE FROM runs WHERE id <= ?", (oldest[-1],)).rowcount


def _describe_damage(damaged: Sequence[StoreError]) -> str | None:
    if len(damaged) < 2:
        return f"{damaged[0]}; it is left out" if damaged else None
    return f"the advice on {len(damaged)} earlier runs is damaged and skipped; the last one: {damaged[-1]}"
