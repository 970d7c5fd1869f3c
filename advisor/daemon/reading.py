"""The threads that have settled directories read: each asks a child of its own and waits for it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock, local
from time import monotonic
from typing import TYPE_CHECKING, Final

from advisor.collect import sidecar
from advisor.daemon.breaker import TRIES, Breaker
from advisor.daemon.intake import Intake, Outcome, identify
from advisor.extension.host.discovery import versions
from advisor.extension.sandbox import Limits, TaskFailed, Worker
from advisor.history.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from advisor.daemon.config import Config
    from advisor.daemon.intake import Candidate
    from advisor.daemon.settling import Settling
    from advisor.history.database import Writer
    from advisor.history.ledger import Signature

_MODULE: Final = "advisor.daemon.work"
#: Tells the children where plugin files are.
PLUGINS_VARIABLE: Final = "GAPWATCH_PLUGINS"
_UNKNOWN: Final = "in no format that is known"
_STAMP: Final = "says of the profiles beside it which build they are of"


@dataclass(frozen=True, slots=True)
class Served:
    """What became of ``files`` of a directory: those that found their state at once, and of each unit the outcome.

    Files ``out_of_reach`` could not be looked into for now, for a reason. Files that are in none of these belong to a
    unit that was not complete yet, or that another thread was reading.
    """

    files: Mapping[bytes, Signature]
    settled: Mapping[bytes, Signature]
    units: tuple[tuple[Candidate, Outcome], ...] = ()
    out_of_reach: Mapping[bytes, str] = field(default_factory=dict)


class Readers:
    """A pool of threads with a child each."""

    def __init__(self, config: Config, writer: Writer, settling: Settling) -> None:
        self._config, self._writer, self._settling = config, writer, settling
        self._intake = Intake(writer, _options(config, writer), config.source)
        self._breaker = Breaker(writer, versions(config.plugins))
        self._pool = ThreadPoolExecutor(config.jobs, thread_name_prefix="reader")
        self._lock = Lock()
        self._own = local()
        self._workers: list[Worker] = []
        self._taken: set[Path] = set()
        self._closed = False
        self._failures: dict[Path, int] = {}

    def submit(self, root: Path, folder: Path, files: Mapping[bytes, Signature]) -> Future[Served]:
        """Have the files of a settled directory read."""
        return self._pool.submit(self._serve, root, folder, files)

    def close(self) -> None:
        """End all children; what they were reading stays as it was."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop()
        self._pool.shutdown(wait=True)

    def _ask(self, task: dict[str, object]) -> object:
        if self._closed:
            raise _ended()
        worker: Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            limits = Limits(self._config.memory_B, self._config.task_s, max(int(self._config.task_s), 1))
            folders = os.pathsep.join(map(str, self._config.plugins))
            worker = self._own.worker = Worker(_MODULE, limits, {PLUGINS_VARIABLE: folders})
            self._workers.append(worker)
        return self._without_the_deadly(worker, task)

    def _without_the_deadly(self, worker: Worker, task: dict[str, object]) -> object:
        """Ask a child; where a plugin ends it, ask again without that plugin, which is left out for good in the end."""
        blocked = set(self._breaker.blocked)
        while True:
            try:
                answer = worker.ask({**task, "blocked": sorted(blocked)})
            except TaskFailed as failed:
                if self._closed:
                    raise _ended() from failed
                if failed.at is None or failed.at in blocked:
                    raise
                self._breaker.died(failed.at, failed.reason)
                blocked.add(failed.at)
                continue
            if isinstance(answer, dict) and isinstance(answer.get("failed"), dict):
                self._breaker.answered({str(name): str(why) for name, why in answer["failed"].items()})
            return answer

    def _serve(self, root: Path, folder: Path, files: Mapping[bytes, Signature]) -> Served:
        try:
            found = identify(self._ask, root, folder, files)
        except TaskFailed as failed:
            if failed.kind == "unreachable":
                return Served(files, {}, out_of_reach=dict.fromkeys(files, failed.reason))
            return self._one_by_one(root, folder, files, failed)
        self._failures.pop(folder, None)
        if found.foreign:
            stamps = {name: each for name, each in found.foreign.items() if name == os.fsencode(sidecar.NAME)}
            others = {name: each for name, each in found.foreign.items() if name not in stamps}
            with self._writer.transaction() as connection:
                Ledger(connection).put(folder, others, "ignored", _UNKNOWN)
                Ledger(connection).put(folder, stamps, "ignored", _STAMP)
        units = tuple(done for candidate in found.units if (done := self._take(candidate)) is not None)
        return Served(files, found.foreign, units, found.out_of_reach)

    def _one_by_one(self, root: Path, folder: Path, files: Mapping[bytes, Signature], failed: TaskFailed) -> Served:
        """Find the file of a directory over which a child fell; the others are served."""
        if len(files) > 1:
            parts = [self._serve(root, folder, {name: each}) for name, each in files.items()]
            settled = {name: each for part in parts for name, each in part.settled.items()}
            hidden = {name: why for part in parts for name, why in part.out_of_reach.items()}
            return Served(files, settled, tuple(unit for part in parts for unit in part.units), hidden)
        [name] = files
        place = folder / os.fsdecode(name)
        tries = self._failures[place] = self._failures.get(place, 0) + 1
        if tries < TRIES:
            return self._serve(root, folder, files)
        del self._failures[place]
        with self._writer.transaction() as connection:
            Ledger(connection).put(folder, files, "quarantined", f"looking at it failed {tries} times: {failed.reason}")
        return Served(files, files)

    def _take(self, candidate: Candidate) -> tuple[Candidate, Outcome] | None:
        """Read a unit, a directory with all its waiting files; None where it is not complete, or being read."""
        whole = self._whole(candidate)
        with self._lock:
            if whole is None or whole.path in self._taken:
                return None
            self._taken.add(whole.path)
        try:
            outcome = self._intake.take(whole, self._ask, datetime.now(UTC))
            if outcome.state != "waiting":
                for folder, files in whole.files.items():
                    self._settling.done(folder, files)
            return whole, outcome
        finally:
            with self._lock:
                self._taken.discard(whole.path)

    def _whole(self, candidate: Candidate) -> Candidate | None:
        [folder] = candidate.files
        pending = self._settling.below(folder).get(folder, {})
        if not candidate.files[folder].keys() <= pending.keys():
            return None  # another directory of the same unit came first, and took these along
        if candidate.path.parent == folder:
            return candidate
        if self._settling.busy_below(candidate.path, monotonic()):
            return None
        return replace(candidate, files={**self._settling.below(candidate.path), **candidate.files})


def _ended() -> TaskFailed:
    """Return what says that a task was left to the next process; that speaks against nobody."""
    return TaskFailed("unreachable", "")


def _options(config: Config, writer: Writer) -> dict[str, object]:
    rules = [str(path) for path in config.rules]
    return {"machine": config.machine, "rules": rules, "cores": config.cores, "state": str(writer.path.parent)}
