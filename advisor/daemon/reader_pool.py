"""The threads that have settled directories read: each asks a child of its own and waits for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, local
from time import monotonic
from typing import TYPE_CHECKING, Final

from advisor.collect import sidecar
from advisor.daemon.breaker import TRIES, PluginBreaker
from advisor.daemon.intake import UnitCandidate, UnitIntake, UnitOutcome, identify_units
from advisor.extension.host.discovery import plugin_versions
from advisor.extension.sandbox import Limits, TaskFailed, Worker
from advisor.extension.suspects import Suspects
from advisor.history import access
from advisor.history.child_reads import answer_question
from advisor.history.file_states import FileSignature, FileStates
from advisor.history.location import HistoryServer
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from advisor.daemon.config import DaemonConfig
    from advisor.daemon.debounce import FileDebouncer
    from advisor.history.access import Writer

_MODULE: Final = "advisor.daemon.child_tasks"
#: Tells the children where plugin files are.
PLUGINS_VARIABLE: Final = "GAPWATCH_PLUGINS"
#: Why a file is ignored that no reader takes.
UNKNOWN: Final = "in no format that is known"
_STAMP: Final = "says of the profiles beside it which build they are of"


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What became of ``files`` of a directory: those that found their state at once, and of each unit the outcome.

    Files ``out_of_reach`` could not be looked into for now, for a reason. Files that are in none of these belong to a
    unit that was not complete yet, or that another thread was reading; or a ``problem`` kept them from being stored.
    """

    files: Mapping[bytes, FileSignature]
    settled: Mapping[bytes, FileSignature]
    units: tuple[tuple[UnitCandidate, UnitOutcome], ...] = ()
    out_of_reach: Mapping[bytes, str] = field(default_factory=dict)
    problem: StoreError | None = None


class ReaderPool:
    """A pool of threads with a child each."""

    def __init__(self, config: DaemonConfig, writer: Writer, settling: FileDebouncer) -> None:
        self._config, self._writer, self._settling = config, writer, settling
        self._read: SimpleQueue[tuple[UnitCandidate, UnitOutcome]] = SimpleQueue()
        self._intake = UnitIntake(writer, _build_options(config, writer), config.source)
        self._breaker = PluginBreaker(writer, plugin_versions(config.plugins))
        self._pool = ThreadPoolExecutor(config.jobs, thread_name_prefix="reader")
        self._lock = Lock()
        self._own = local()
        self._workers: list[Worker] = []
        self._taken: set[Path] = set()
        self._closed = False
        self._failures: dict[Path, int] = {}

    def warm_up(self) -> None:
        """Have the children started and let them load what most profiles need, while nothing is there to be read."""
        for _ in range(self._config.jobs):
            self._pool.submit(self._warm_reader)

    def _warm_reader(self) -> None:
        with suppress(TaskFailed):
            self._ask_worker({"do": "warm"})

    def submit_files(self, root: Path, folder: Path, files: Mapping[bytes, FileSignature]) -> Future[ReadResult]:
        """Have the files of a settled directory read."""
        return self._pool.submit(self._read_folder, root, folder, files)

    def take_read_units(self) -> Iterator[tuple[UnitCandidate, UnitOutcome]]:
        """Yield each unit once that was read meanwhile, long before all files are that were submitted with it."""
        while True:
            try:
                yield self._read.get_nowait()
            except Empty:
                return

    def close(self) -> None:
        """End all children; what they were reading stays as it was."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.close()
        self._pool.shutdown(wait=True)

    def _ask_worker(self, task: dict[str, object]) -> object:
        worker: Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            task_s = self._config.task_s
            limits = Limits(
                self._config.memory_B, task_s, max(int(task_s), 1), plugin_s=min(self._config.plugin_s, task_s)
            )
            folders = os.pathsep.join(map(str, self._config.plugins))
            worker = self._own.worker = Worker(
                _MODULE, limits, {PLUGINS_VARIABLE: folders}, access.list_marked_files(self._writer.location)
            )
            self._workers.append(worker)
        if self._closed:  # asked after the worker is in the list that ``close`` goes through
            raise _make_closed_failure()
        return self._ask_without_killers(worker, task)

    def _ask_without_killers(self, worker: Worker, task: dict[str, object]) -> object:
        """Ask a child; where a plugin ends it, ask again without that plugin, which is left out for good in the end.

        Where nobody was asked just then, it may be what an earlier task left behind: it is tried in a fresh child, then
        without each that was asked there.
        """
        if not hasattr(self._own, "lost"):
            self._own.lost = set()
        lost: set[str] = self._own.lost  # those that ended a child over this unit: one is enough
        suspects = Suspects(lost | self._breaker.blocked_plugins)
        losses: dict[str, TaskFailed] = {}
        while True:
            try:
                answer = worker.run_task({**task, "blocked": sorted(suspects.left_out)}, self._answer_question)
            except TaskFailed as failed:
                if self._closed:
                    raise _make_closed_failure() from failed
                if failed.kind not in ("killed", "fault"):
                    raise
                if not failed.at and not failed.fresh:
                    continue
                retry = suspects.record_loss(failed.at, failed.asked, failed.reason, late=failed.late)
                losses[failed.at or ""] = losses[""] = failed
                if not retry:
                    self._record_deaths(suspects, losses)
                    raise
                continue
            self._record_deaths(suspects, losses)
            lost |= suspects.left_out
            if isinstance(answer, dict) and isinstance(answer.get("failed"), dict):
                self._breaker.record_answer({str(name): str(why) for name, why in answer["failed"].items()})
            return answer

    def _record_deaths(self, suspects: Suspects, losses: Mapping[str, TaskFailed]) -> None:
        for name in sorted(suspects.killers):
            loss = losses.get(name) or losses[""]
            self._breaker.record_death(name, loss.reason, late=loss.late and loss.at == name)

    def _answer_question(self, question: object) -> dict[str, object]:
        """Return what a child asks of a history on a server."""
        with self._writer.lend_connection() as connection:
            return answer_question(connection, question)

    def _read_folder(self, root: Path, folder: Path, files: Mapping[bytes, FileSignature]) -> ReadResult:
        try:
            found = identify_units(self._ask_worker, root, folder, files)
        except TaskFailed as failed:
            if failed.kind == "unreachable":
                return ReadResult(files, {}, out_of_reach=dict.fromkeys(files, failed.reason))
            return self._read_one_by_one(root, folder, files, failed)
        self._failures.pop(folder, None)
        if found.foreign:
            stamps = {name: each for name, each in found.foreign.items() if name == os.fsencode(sidecar.NAME)}
            others = {name: each for name, each in found.foreign.items() if name not in stamps}
            with self._writer.transaction(lasting=False) as connection:
                FileStates(connection).store_files(folder, others, "ignored", UNKNOWN)
                FileStates(connection).store_files(folder, stamps, "ignored", _STAMP)
        units: list[tuple[UnitCandidate, UnitOutcome]] = []
        for document, outcome, program in found.documents:
            self._announce_unit(units, (document, self._store_document(folder, document, outcome)))
            self._announce_unit(units, self._repeat_advice(root, program) if program else None)
        for candidate in found.units:
            try:
                self._announce_unit(units, self._read_unit(candidate))
            except StoreError as error:  # what was stored before is there, and told
                return ReadResult(files, found.foreign, tuple(units), found.out_of_reach, error)
        return ReadResult(files, found.foreign, tuple(units), found.out_of_reach)

    def _announce_unit(
        self, units: list[tuple[UnitCandidate, UnitOutcome]], read: tuple[UnitCandidate, UnitOutcome] | None
    ) -> None:
        """Add a unit to those of its directory, and have it told with the next turn: others may take minutes."""
        if read is not None:
            units.append(read)
            self._read.put(read)

    def _read_one_by_one(
        self, root: Path, folder: Path, files: Mapping[bytes, FileSignature], failed: TaskFailed
    ) -> ReadResult:
        """Find the file of a directory over which a child fell; the others are served."""
        if len(files) > 1:
            parts = [self._read_folder(root, folder, {name: each}) for name, each in files.items()]
            settled = {name: each for part in parts for name, each in part.settled.items()}
            hidden = {name: why for part in parts for name, why in part.out_of_reach.items()}
            return ReadResult(files, settled, tuple(unit for part in parts for unit in part.units), hidden)
        [name] = files
        place = folder / os.fsdecode(name)
        tries = self._failures[place] = self._failures.get(place, 0) + 1
        if tries < TRIES:
            return self._read_folder(root, folder, files)
        del self._failures[place]
        with self._writer.transaction(lasting=False) as connection:
            FileStates(connection).store_files(
                folder, files, "quarantined", f"looking at it failed {tries} times: {failed.reason}"
            )
        return ReadResult(files, files)

    def _read_unit(self, candidate: UnitCandidate) -> tuple[UnitCandidate, UnitOutcome] | None:
        """Read a unit, a directory with all its waiting files; None where it is not complete, or being read."""
        self._own.lost = set()
        whole = self._complete_unit(candidate)
        with self._lock:
            if whole is None or whole.path in self._taken:
                return None
            self._taken.add(whole.path)
        try:
            outcome = self._intake.ingest_unit(whole, self._ask_worker, datetime.now(UTC))
            if outcome.state != "waiting":
                for folder, files in whole.files.items():
                    self._settling.forget_files(folder, files)
            return whole, outcome
        finally:
            with self._lock:
                self._taken.discard(whole.path)

    def _store_document(self, folder: Path, document: UnitCandidate, outcome: UnitOutcome) -> UnitOutcome:
        """Note of a file that plugins know what it is."""
        with self._writer.transaction(lasting=False) as connection:
            FileStates(connection).store_files(folder, document.files[folder], outcome.state, outcome.reason)
        self._settling.forget_files(folder, document.files[folder])
        return outcome

    def _repeat_advice(self, root: Path, program: str) -> tuple[UnitCandidate, UnitOutcome] | None:
        """Renew the advice on the newest run of a program that a document describes."""
        self._own.lost = set()
        found = self._intake.repeat_advice(root, program, self._ask_worker, datetime.now(UTC))
        return found if found is not None and found[1].run is not None else None

    def _complete_unit(self, candidate: UnitCandidate) -> UnitCandidate | None:
        [folder] = candidate.files
        pending = self._settling.files_below(folder).get(folder, {})
        if not candidate.files[folder].keys() <= pending.keys():
            return None  # another directory of the same unit came first, and took these along
        if candidate.path.parent == folder:
            return candidate
        if self._settling.is_busy_below(candidate.path, monotonic()):
            return None
        return replace(candidate, files={**self._settling.files_below(candidate.path), **candidate.files})


def _make_closed_failure() -> TaskFailed:
    """Return the failure of a task that was left to the next process, which blames no plugin."""
    return TaskFailed("unreachable", "")


def _build_options(config: DaemonConfig, writer: Writer) -> dict[str, object]:
    rules = [str(path) for path in config.rules]
    place = writer.location
    past = {"writer": place.writer} if isinstance(place, HistoryServer) else {"state": str(place)}
    return {"machine": config.machine, "target": config.target, "rules": rules, "cores": config.cores, **past}
