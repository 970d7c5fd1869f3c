"""From files that have settled to runs in the history: which reader gets what, and the state of each file.

The steps of one unit (a file, or a directory that is one profile): identify, hash, advise, store. Between any two of
them the process may be killed: what is not stored waits in the ledger and is done again; what is stored is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.collect import builds
from advisor.daemon import scan
from advisor.daemon.breaker import TRIES
from advisor.extension.sandbox import TaskFailed
from advisor.history.dialect import LONGEST_NAME_B, HistoryConnection
from advisor.history.file_states import FileSignature, FileStates, State
from advisor.history.run_storage import store_run
from advisor.history.runs import ProfileUnit, RunStore
from advisor.model.records import Advice
from advisor.support import record_json
from advisor.support.contract import ContractError

if TYPE_CHECKING:
    from datetime import datetime

    from advisor.history.access import Writer

#: Asks a child: a task in, its result out, or ``TaskFailed``.
Ask = Callable[[dict[str, object]], object]
#: Among so many runs of a program, the latest, another recording of the same run is looked for.
_LATEST: Final = 50
#: Units of more bytes are read before they are hashed.
_LARGE_B: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class UnitOutcome:
    """What became of one unit: the state of its files, why, and the run that came of it.

    What is not ``reachable`` could not be read for now; that says nothing about it. What is to be read ``again`` lost
    its child, which may be nobody's fault. Of what ``changed`` meanwhile, the files have to be looked at again. A
    duplicate is a ``copy`` of what another run was read from.
    """

    path: Path
    state: State
    reason: str | None = None
    run: int | None = None
    advice: Advice | None = None
    reachable: bool = True
    changed: bool = False
    again: bool = False
    copy: ProfileUnit | None = None


@dataclass(frozen=True, slots=True)
class UnitCandidate:
    """A unit that settled, to be read by ``reader``: its files by directory; ``root`` is the watched one above it."""

    root: Path
    path: Path
    reader: str
    files: Mapping[Path, Mapping[bytes, FileSignature]]


@dataclass(frozen=True, slots=True)
class IdentifiedFiles:
    """The units that files of a directory belong to, those that are no profiles, and why others can't be seen now.

    ``documents`` are files that plugins know though they are no runs, each with its outcome and its program.
    """

    units: tuple[UnitCandidate, ...]
    foreign: Mapping[bytes, FileSignature]
    out_of_reach: Mapping[bytes, str]
    documents: tuple[tuple[UnitCandidate, UnitOutcome, str | None], ...] = ()


def identify_units(ask: Ask, root: Path, folder: Path, files: Mapping[bytes, FileSignature]) -> IdentifiedFiles:
    """Return what the files of a directory are; raises ``TaskFailed``."""
    names = [os.fsdecode(name) for name in files]
    answer = ask({"do": "identify", "root": str(root), "folder": str(folder), "names": names})
    if not isinstance(answer, dict):
        raise TaskFailed("fault", "identified nothing")
    units: dict[tuple[str, str], dict[bytes, FileSignature]] = {}
    foreign: dict[bytes, FileSignature] = {}
    hidden: dict[bytes, str] = {}
    documents = []
    for name, signature in files.items():
        unit = answer.get(os.fsdecode(name))
        if isinstance(unit, list) and len(unit) == 2:
            units.setdefault((str(unit[0]), str(unit[1])), {})[name] = signature
        elif isinstance(unit, dict):
            path, program = folder / os.fsdecode(name), unit.get("program")
            known = UnitCandidate(root, path, str(unit.get("plugin")), {folder: {name: signature}})
            outcome = UnitOutcome(path, "ingested", str(unit.get("words")))
            documents.append((known, outcome, program if isinstance(program, str) else None))
        elif isinstance(unit, str):
            hidden[name] = unit
        else:
            foreign[name] = signature
    found = [UnitCandidate(root, Path(path), reader, {folder: mine}) for (path, reader), mine in units.items()]
    units_in_order = tuple(sorted(found, key=lambda unit: (_first_write_ns(unit), unit.path)))
    return IdentifiedFiles(units_in_order, foreign, hidden, tuple(documents))


def _first_write_ns(unit: UnitCandidate) -> int:
    """Return when the first file of a unit was written, by the clock of the file system: only an order."""
    return min(signature.mtime_ns for files in unit.files.values() for signature in files.values())


@dataclass(frozen=True, slots=True)
class _NewRun:
    """A run to be stored: what it was read from, the advice on it, and the actions that its build carries out."""

    units: tuple[ProfileUnit, ...]
    advice: Advice
    applied: tuple[tuple[str, str | None], ...]


class UnitIntake:
    """Reads units in children and writes what comes of them; several threads may take units, each asking its child."""

    def __init__(self, writer: Writer, options: Mapping[str, object], source: Path | None = None) -> None:
        self._writer = writer
        self._source = source
        self._options = dict(options)
        self._failures: dict[Path, int] = {}

    def ingest_unit(self, unit: UnitCandidate, ask: Ask, now: datetime) -> UnitOutcome:
        """Read a unit and store its run; the files of the unit are in the state of the outcome afterwards."""
        read = self._read_unchanged(unit, ask)
        lasting = isinstance(read, _NewRun) or read.state == "duplicate"
        with self._writer.transaction(lasting=lasting) as connection:
            runs, states = RunStore(connection), FileStates(connection)
            if isinstance(read, _NewRun):  # another thread or daemon may have stored the same meanwhile
                read = _find_duplicate(runs, read.units[-1]) or read
            if isinstance(read, _NewRun):
                runs.release_changed_units(read.units)
            outcome = read if isinstance(read, UnitOutcome) else _store_run(connection, unit.path, read, now)
            if outcome.copy is not None:
                runs.add_copy(outcome.copy)
            place = runs.find_unit_number(unit.path)
            for folder, files in unit.files.items():
                states.store_files(folder, files, outcome.state, outcome.reason, place)
        return outcome

    def repeat_advice(
        self, root: Path, program: str, ask: Ask, now: datetime
    ) -> tuple[UnitCandidate, UnitOutcome] | None:
        """Renew the advice on the newest run of a program, about which more is known now; None without one."""
        with self._writer.lend_connection() as connection:
            runs = RunStore(connection)
            newest = runs.list_entries(program, 1)
            units = runs.units_of_run(newest[0].number) if newest else ()
        unit = next((UnitCandidate(root, one.path, one.reader, {}) for one in units if one.path.exists()), None)
        return None if unit is None else (unit, self.ingest_unit(unit, ask, now))

    def _read_unchanged(self, unit: UnitCandidate, ask: Ask) -> _NewRun | UnitOutcome:
        """Return what a unit is that stays as it had settled; what came of one that did not says nothing about it.

        Many programs set modes and times of a file after they have closed it.
        """
        changed = UnitOutcome(unit.path, "waiting", "changed before it was read", reachable=False, changed=True)
        if not _is_unchanged(unit):
            return changed
        try:
            read = self._read_unit(unit, ask)
        except TaskFailed as failed:
            return self._record_failure(unit, failed) if _is_unchanged(unit) else changed
        self._failures.pop(unit.path, None)
        return read if _is_unchanged(unit) else changed  # what was hashed and what was read may not be the same

    def _read_unit(self, unit: UnitCandidate, ask: Ask) -> _NewRun | UnitOutcome:
        """Return the run that a unit belongs to, or that it is a duplicate.

        Of what is very large it is seen first whether a reader takes it: hashing it may take longer than refusing it.
        """
        mine = ProfileUnit(unit.path, unit.reader, "")
        size = sum(signature.size for files in unit.files.values() for signature in files.values())
        advice = self._request_advice(unit.root, (mine,), ask) if size > _LARGE_B else None
        mine = replace(mine, digest=_request_digest(unit, ask))
        with self._writer.lend_connection() as connection:
            duplicate = _find_duplicate(RunStore(connection), mine)
        if duplicate is not None:
            return duplicate
        advice = advice or self._request_advice(unit.root, (mine,), ask)
        if advice is None:
            raise TaskFailed("fault", "no advice came back")
        if len(advice.profile.program.encode("utf-8", "replace")) > LONGEST_NAME_B:
            raise TaskFailed("refused", f"the name of its program is longer than {LONGEST_NAME_B:,} bytes")
        units, advice = self._find_other_recording(unit.root, mine, advice, ask) or ((mine,), advice)
        return _NewRun(units, advice, self._find_applied_actions(advice))

    def _find_applied_actions(self, advice: Advice) -> tuple[tuple[str, str | None], ...]:
        """Return the actions that commits of a new build carry out; the build is one of the source that is watched."""
        profile = advice.profile
        if self._source is None or profile.build is None:
            return ()
        with self._writer.lend_connection() as connection:
            before = [entry.build for entry in RunStore(connection).list_entries(profile.program, 1)]
        return (
            ()
            if before == [profile.build]
            else builds.find_applied_actions(self._source, profile.build, *before or [None])
        )

    def _record_failure(self, unit: UnitCandidate, failed: TaskFailed) -> UnitOutcome:
        if failed.kind == "refused":
            return UnitOutcome(unit.path, "waiting", failed.reason)
        if failed.kind == "unreachable":
            return UnitOutcome(unit.path, "waiting", failed.reason or None, reachable=False)
        tries = self._failures[unit.path] = self._failures.get(unit.path, 0) + 1
        state: State = "quarantined" if tries >= TRIES else "waiting"
        many = "once" if tries == 1 else f"{tries} times"
        reason = f"reading it with {unit.reader!r} failed {many}: {failed.reason}"
        return UnitOutcome(unit.path, state, reason, again=tries < TRIES and not failed.late)

    def _request_advice(self, top: Path, units: Sequence[ProfileUnit], ask: Ask) -> Advice | None:
        """Return the advice on the run of ``units``; None where they are of several runs."""
        places = [[str(unit.path), unit.reader] for unit in units]
        build = builds.identify_build(self._source) if self._source is not None else None
        options = {**self._options, "build": build}
        answer = ask({"do": "advise", "units": places, "top": str(top), "options": options})
        if not isinstance(answer, dict):
            raise TaskFailed("fault", "advised nothing")
        if answer.get("advice") is None:
            return None
        try:
            return record_json.unpack_record(Advice, answer["advice"])
        except ContractError as error:
            raise TaskFailed("fault", f"the advice is unsound: {error}") from error

    def _find_other_recording(
        self, top: Path, mine: ProfileUnit, advice: Advice, ask: Ask
    ) -> tuple[tuple[ProfileUnit, ...], Advice] | None:
        """Return a known run that ``mine`` is another recording of: its units, mine included, and the advice on it."""
        with self._writer.lend_connection() as connection:
            runs = RunStore(connection)
            others = runs.find_runs_without_reader(advice.profile.program, advice.profile.reader, _LATEST)
            known = [runs.units_of_run(number) for number in others]
        for units in known:
            if mine.path in {unit.path for unit in units} or not _is_near(mine.path, units):
                continue
            merged = self._request_advice(top, (*units, mine), ask)
            if merged is not None:
                return (*units, mine), merged
        return None


def _find_duplicate(runs: RunStore, mine: ProfileUnit) -> UnitOutcome | None:
    """Return that the content of a unit was read before from elsewhere, None where it was not."""
    held = runs.find_duplicate(mine.digest, mine.path)
    return None if held is None else UnitOutcome(mine.path, "duplicate", f"the same as {held}", copy=mine)


def _is_unchanged(unit: UnitCandidate) -> bool:
    """Return whether the files of a unit are unchanged since they settled."""
    return all(scan.list_named_files(folder, files.keys()).files == dict(files) for folder, files in unit.files.items())


def _request_digest(unit: UnitCandidate, ask: Ask) -> str:
    answer = ask({"do": "digest", "units": [[str(unit.path), unit.reader]]})
    if not (isinstance(answer, list) and len(answer) == 1 and isinstance(answer[0], str)):
        raise TaskFailed("fault", "hashed nothing")
    return answer[0]


def _is_near(path: Path, units: Sequence[ProfileUnit]) -> bool:
    """Return whether a path lies above or below the directory of one of the units, or beside it."""
    return any(
        path.parent.is_relative_to(unit.path.parent)
        or unit.path.parent.is_relative_to(path.parent)
        or path.parent.parent == unit.path.parent.parent
        for unit in units
    )


def _store_run(connection: HistoryConnection, path: Path, run: _NewRun, now: datetime) -> UnitOutcome:
    number = store_run(connection, run.advice, run.units, now, run.applied)
    return UnitOutcome(path, "ingested", None, number, run.advice)
