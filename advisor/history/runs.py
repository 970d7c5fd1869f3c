"""The runs and their advice."""

from __future__ import annotations

import json
import os
import zlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import msgspec

from advisor.analysis import fingerprints
from advisor.model.errors import StoreError
from advisor.model.records import Advice, Phase
from advisor.support import record_json
from advisor.support.contract import ContractError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

#: So many bytes of packed advice stay unpacked, which takes some ten times as much memory.
_KEPT_B: Final = 6 << 20
#: Parts of advice that no comparison asks for.
_NOT_COMPARED: Final = (
    "efficiencies", "recommendations", "steps_to_revisit", "needs", "problems", "dismissed",
)  # fmt: skip
#: Stands in no path: before the number of a run that was read from one at which another run's content lies now.
_PAST: Final = b"\0"
_COLUMNS: Final = "id, program, run, build, started, added, ranks, actual_s, reader, grade, verdict"


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


def strip_arrays(advice: Advice) -> Advice:
    """Return ``load_advice`` without the arrays of its profile, which the files of the profile hold."""
    profile = advice.profile
    phases = tuple(Phase(phase.name, phase.kind, phase.regions[:0], {}, phase.closed_by) for phase in profile.phases)
    return replace(advice, profile=replace(profile, phases=phases, counts={}, outside={}, causes=None))


class RunStore:
    """The runs of the database; writing methods work inside the transaction that their caller opened."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add_run(self, advice: Advice, units: Sequence[ProfileUnit], now: datetime) -> int:
        """Store a run with the units that it was read from, and return its number.

        A run that any of these units was read into before is replaced: it keeps its number.
        """
        known = self.runs_of_paths([unit.path for unit in units])
        profile = advice.profile
        values = (
            profile.program, profile.run, profile.build, profile.started, now.astimezone(UTC).isoformat("T", "seconds"),
            profile.ranks, len(profile.processors), profile.actual_s if profile.has_run_time else None,
            profile.reader, advice.grade.letter, advice.verdict, _pack_advice(advice),
        )  # fmt: skip
        columns = "program, run, build, started, added, ranks, processors, actual_s, reader, grade, verdict, advice"
        marks = ", ".join("?" * len(values))
        if known:
            number = min(known)
            self._connection.execute(f"UPDATE runs SET ({columns}) = ({marks}) WHERE id = ?", (*values, number))
        else:
            made = self._connection.execute(f"INSERT INTO runs ({columns}) VALUES ({marks})", values)
            number = int(made.lastrowid or 0)
        for unit in units:
            self._store_unit(unit, number)
        return number

    def add_copy(self, unit: ProfileUnit) -> None:
        """Note a unit with the content of another one; a run that was read from its path before stays as it was."""
        path = os.fsencode(unit.path)
        asked = "SELECT id, digest, run FROM units WHERE path = ? AND run IS NOT NULL AND digest <> ?"
        for number, digest, run in self._connection.execute(asked, (path, unit.digest)).fetchall():
            if not self._hand_over(number, digest, run):
                past = path + _PAST + str(run).encode()
                self._connection.execute("UPDATE units SET path = ? WHERE id = ?", (past, number))
        self._store_unit(unit, None)

    def _store_unit(self, unit: ProfileUnit, run: int | None) -> None:
        self._connection.execute(
            "INSERT INTO units (path, reader, digest, run) VALUES (?, ?, ?, ?) ON CONFLICT (path) "
            "DO UPDATE SET reader = excluded.reader, digest = excluded.digest, run = excluded.run",
            (os.fsencode(unit.path), unit.reader, unit.digest, run),
        )

    def release_changed_units(self, units: Sequence[ProfileUnit]) -> None:
        """Keep what runs were read from that ``units`` would replace, as other content lies at their paths now.

        Where a copy of the old content is known, the run is the copy's from now on. Where there is none, the run is
        given up for the new one, and its recordings elsewhere, which are not of that, belong to none any more.
        """
        paths = {os.fsencode(one.path): one.digest for one in units}
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
        copy = self._find_copy(digest)
        if copy is not None:
            self._set_run(unit, None)
            self._set_run(copy, run)
            self._connection.execute(
                "UPDATE files SET state = 'ingested', reason = NULL WHERE unit = ? AND state = 'duplicate'", (copy,)
            )
        return copy is not None

    def _find_copy(self, digest: str) -> int | None:
        """Return the number of a unit with a content of which no run was read, that is there; None without one."""
        row = self._connection.execute(
            "SELECT id FROM units WHERE digest = ? AND run IS NULL AND EXISTS "
            "(SELECT 1 FROM files WHERE unit = units.id AND state = 'duplicate') ORDER BY id LIMIT 1",
            (digest,),
        ).fetchone()
        return None if row is None else int(row[0])

    def _set_run(self, unit: int, run: int | None) -> None:
        self._connection.execute("UPDATE units SET run = ? WHERE id = ?", (run, unit))

    def runs_of_paths(self, paths: Sequence[Path]) -> frozenset[int]:
        """Return the numbers of the runs that were read from any of these paths."""
        rows = self._connection.execute(
            f"SELECT run FROM units WHERE run IS NOT NULL AND path IN ({', '.join('?' * len(paths))})",
            [os.fsencode(path) for path in paths],
        )
        return frozenset(int(number) for (number,) in rows)

    def find_unit_number(self, path: Path) -> int | None:
        """Return the number of the unit at ``path``, None where there is none."""
        row = self._connection.execute("SELECT id FROM units WHERE path = ?", (os.fsencode(path),)).fetchone()
        return None if row is None else int(row[0])

    def find_duplicate(self, digest: str, path: Path) -> Path | None:
        """Return where the same content was read before from another path, None where it was not."""
        row = self._connection.execute(
            "SELECT path FROM units WHERE digest = ? AND path <> ? AND run IS NOT NULL", (digest, os.fsencode(path))
        ).fetchone()
        return None if row is None else Path(os.fsdecode(row[0].split(_PAST)[0]))

    def units_of_run(self, number: int) -> tuple[ProfileUnit, ...]:
        """Return what a run was read from, as far as no other content is known to lie there now."""
        rows = self._connection.execute(
            "SELECT path, reader, digest FROM units WHERE run = ? ORDER BY id", (number,)
        ).fetchall()
        return tuple(
            ProfileUnit(Path(os.fsdecode(path)), reader, digest) for path, reader, digest in rows if _PAST not in path
        )

    def list_entries(self, program: str | None = None, most: int = 1_000_000) -> tuple[RunEntry, ...]:
        """Return the newest runs, of one program if given, the oldest first."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM runs WHERE :program IS NULL OR program = :program ORDER BY id DESC LIMIT :limit",
            {"program": program, "limit": most},
        )
        return tuple(RunEntry(*row) for row in rows.fetchall()[::-1])

    def list_programs(self) -> tuple[str, ...]:
        """Return the programs of all runs, the one that ran last first."""
        rows = self._connection.execute("SELECT program FROM runs GROUP BY program ORDER BY max(id) DESC")
        return tuple(program for (program,) in rows)

    def load_advice(self, number: int) -> Advice:
        """Return the advice on a run, slim; raises ``StoreError`` where there is none or it is damaged."""
        row = self._connection.execute("SELECT advice FROM runs WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise StoreError(f"no run {number} in the history")
        return _require_sound(number, row[0])

    def load_compared(self, numbers: Sequence[int]) -> tuple[Advice, ...]:
        """Return what comparisons ask of runs: their names, times and bounds, and their gaps by region; nothing else.

        That takes a fraction of the time of ``load_advice``. Raises ``StoreError`` for damaged ones.
        """
        found = []
        for number in numbers:
            row = self._connection.execute("SELECT advice FROM runs WHERE id = ?", (number,)).fetchone()
            if row is None:
                raise StoreError(f"no run {number} in the history")
            try:
                found.append(record_json.unpack_record(Advice, _keep_compared(_parse_json(zlib.decompress(row[0])))))
            except (ValueError, TypeError, LookupError, zlib.error, ContractError) as error:
                raise StoreError(f"the advice on run {number} is damaged: {error}") from error
        return tuple(found)

    def load_latest_advice(self, program: str, most: int, without: Collection[int], until: int) -> tuple[Advice, ...]:
        """Return the advice on the newest runs ``until`` one of a program, the oldest first, without some.

        Raises ``StoreError``.
        """
        rows = self._connection.execute(
            "SELECT id, advice FROM runs WHERE program = ? AND id <= ? ORDER BY id DESC LIMIT ?", (program, until, most)
        )
        return tuple(_require_sound(*row) for row in rows.fetchall()[::-1] if row[0] not in without)

    def find_runs_without_reader(self, program: str, reader: str, most: int) -> tuple[int, ...]:
        """Return the runs without a recording by a reader among the newest of a program, the newest first."""
        rows = self._connection.execute(
            "SELECT id FROM (SELECT id, reader FROM runs WHERE program = ? ORDER BY id DESC LIMIT ?) "
            "WHERE instr('+' || reader || '+', '+' || ? || '+') = 0",
            (program, most, reader),
        )
        return tuple(number for (number,) in rows)

    def count_runs(self, program: str | None = None) -> int:
        """Return how many runs there are, of one program if given."""
        asked = "SELECT count(*) FROM runs WHERE :program IS NULL OR program = :program"
        return int(self._connection.execute(asked, {"program": program}).fetchone()[0])

    def size_B(self) -> int:
        """Return the size of the whole history in bytes, pages that are free left out."""
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        (size,) = self._connection.execute("PRAGMA page_size").fetchone()
        return int((pages - free) * size)

    def drop_oldest(self, many: int) -> int:
        """Drop the oldest runs, so many, and return how many were dropped; their files stay known."""
        oldest = [row[0] for row in self._connection.execute("SELECT id FROM runs ORDER BY id LIMIT ?", (many,))]
        if not oldest:
            return 0
        self._connection.execute("UPDATE units SET run = NULL WHERE run <= ?", (oldest[-1],))
        return self._connection.execute("DELETE FROM runs WHERE id <= ?", (oldest[-1],)).rowcount


def _parse_json(text: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:  # it takes neither NaN nor infinity, which Python writes as such
        return json.loads(text)


def _keep_compared(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document of advice without what no comparison asks for."""
    gaps = [{**gap, "processors": (), "iterations": (), "causes": ()} for gap in document["gaps"]]
    profile = {**document["profile"], "regions": (), "phases": (), "notes": ()}
    findings = [finding for finding in document["findings"] if finding["kind"] == fingerprints.KIND]
    return {**document, **dict.fromkeys(_NOT_COMPARED, ()), "findings": findings, "gaps": gaps, "profile": profile}


def _require_sound(number: int, packed: bytes) -> Advice:
    try:
        return _unpacked.unpack_advice(packed)
    except (ValueError, zlib.error, ContractError) as error:
        raise StoreError(f"the advice on run {number} is damaged: {error}") from error


class _UnpackedAdvice:
    """The advice that was asked for last, unpacked, up to so many packed bytes; threads may share it.

    Each run that comes asks for the latest hundred of its program: what stays unpacked is that of some ten programs.
    """

    def __init__(self, most_B: int) -> None:
        self._most_B, self._size_B = most_B, 0
        self._known: OrderedDict[bytes, Advice] = OrderedDict()
        self._lock = Lock()

    def unpack_advice(self, packed: bytes) -> Advice:
        """Return the advice that ``_pack_advice`` wrote."""
        with self._lock:
            if (known := self._known.get(packed)) is not None:
                self._known.move_to_end(packed)
                return known
        found = record_json.unpack_record(Advice, json.loads(zlib.decompress(packed)))
        with self._lock:
            self._size_B += len(packed) if packed not in self._known else 0
            self._known[packed] = found
            while self._size_B > self._most_B:
                self._size_B -= len(self._known.popitem(last=False)[0])
        return found


_unpacked: Final = _UnpackedAdvice(_KEPT_B)


def _pack_advice(advice: Advice) -> bytes:
    return zlib.compress(json.dumps(record_json.pack_record(strip_arrays(advice))).encode("ascii"), level=1)
