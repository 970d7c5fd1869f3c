"""The daemon on a machine that is simulated: files, clock, announcements, children, crashes and power, all by one seed.

What decides is the real code (loop, settling, look at roots, intake, history); what it asks of the system is here. The
machine does things between any two steps: files are written in pieces, overwritten, copied, moved and deleted, so are
whole directories, announcements are late or lost, children die, the disk is full for a while, the process is stopped
and goes on, it is killed, the power goes. In the end a reference that is as small as the promise looks at what became
of each file and each run that was told of.
"""

from __future__ import annotations

import os
import random
import sqlite3
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from stored_runs import ADVICE

from advisor.daemon import daemon, intake, reader_pool, root_scanner, scan
from advisor.daemon.config import DaemonConfig
from advisor.daemon.daemon import Daemon
from advisor.daemon.events import RunIngested
from advisor.daemon.inotify_events import AnnouncedChanges
from advisor.extension.sandbox import TaskFailed
from advisor.history import access, database, run_packing
from advisor.history.database import HistoryWriter
from advisor.history.file_states import FileSignature, FileStates
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path("/simulated/runs")
STATE: Final = Path("/simulated/state")
CONFIG: Final = DaemonConfig(
    roots=(ROOT,), scan_s=20.0, poll_s=5.0, quiet_s=1.5, patience_s=10.0, jobs=2, nice=0, max_load=inf
)
RUN: Final = replace(ADVICE, recommendations=(), gaps=(), findings=(), needs=())
FOLDERS: Final = (ROOT, ROOT / "a", ROOT / "a" / "deep", ROOT / "b")
KINDS: Final = ("run", "run", "run", "run", "half", "other", "empty", "kills")


class Ended(BaseException):
    """The process was killed, or the machine lost its power."""


@dataclass(frozen=True)
class Content:
    """What a file holds: a whole or half a profile, one over which children die, something else, or nothing."""

    kind: str
    name: str


@dataclass
class Machine:
    """The system that a daemon runs on; everything that happens comes from ``chance``."""

    chance: random.Random
    now: float = 0.0
    files: dict[Path, tuple[Content, FileSignature]] = field(default_factory=dict)
    announced: AnnouncedChanges = field(default_factory=AnnouncedChanges)
    tasks: list[tuple[Future[Any], Callable[[], Any]]] = field(default_factory=list)
    disk: bytes = b""
    unsynced: list[bytes] = field(default_factory=list)
    told: dict[int, tuple[str, Path]] = field(default_factory=dict)
    last: dict[Path, str] = field(default_factory=dict)
    made: int = 0
    kills: int = 0
    calm: bool = False
    full: bool = False

    def write(self, path: Path, content: Content, *, closed: bool = True) -> None:
        """Write a file, and say so, as a rule."""
        self.made += 1
        inode = self.files[path][1].inode if path in self.files else self.made
        size = 0 if content.kind == "empty" else 100
        self.files[path] = content, FileSignature(1, inode, size, self.made, self.made)
        self.last[path] = content.name
        self._announce(path, closed=closed)

    def _announce(self, path: Path, *, closed: bool) -> None:
        if self.chance.random() < 0.8:
            self.announced.add_file(path, closed=closed)

    def act(self) -> None:
        """Do what users and their programs do to files."""
        if self.calm:
            return
        act, path = self.chance.random(), self.chance.choice(FOLDERS) / f"f{self.chance.randrange(5)}"
        if act < 0.45 or not self.files:
            kind = self.chance.choice(KINDS)
            self.write(path, Content(kind, f"r{self.made}"), closed=kind != "half")
        elif act < 0.6:
            source = self.chance.choice(list(self.files))
            if source != path:
                self.write(path, self.files[source][0])
        elif act < 0.75:
            half = [name for name, (content, _) in self.files.items() if content.kind == "half"]
            if half:
                done = self.chance.choice(half)
                self.write(done, Content("run", self.files[done][0].name))
        elif act < 0.85:
            source = self.chance.choice(list(self.files))
            content, signature = self.files.pop(source)
            self.files[path] = content, replace_change(signature, self.made)
            self.last[path] = content.name
            self._announce(path, closed=True)
        elif act < 0.97:
            self.files.pop(self.chance.choice(list(self.files)))
        else:
            self._move_folder(*self.chance.sample(FOLDERS, 2))

    def _move_folder(self, source: Path, target: Path) -> None:
        """Move what lies in a directory to another one, over what lies there."""
        for path in [path for path in self.files if path.parent == source]:
            content, signature = self.files.pop(path)
            self.files[target / path.name] = content, replace_change(signature, self.made)
            self.last[target / path.name] = content.name
        self.announced.folders.add(target)

    def step(self) -> None:
        """Let something happen between two steps of the daemon, perhaps its end."""
        if self.chance.random() < 0.25:
            self.act()
        if not self.calm and self.chance.random() < 0.02:
            self.kills += 1
            raise Ended
        if not self.calm and self.chance.random() < 0.01:
            self.full = not self.full
        if not self.calm and self.chance.random() < 0.005:  # stopped, and what was announced meanwhile is lost
            self.now += self.chance.choice((5.0, 500.0))
            self.announced = AnnouncedChanges()

    def lose_power(self) -> None:
        """Keep what was synced, and some of what was written after that."""
        if self.unsynced and self.chance.random() < 0.7:
            self.disk = self.chance.choice([self.disk, *self.unsynced])
        self.unsynced.clear()


def replace_change(signature: FileSignature, change: int) -> FileSignature:
    """Return the signature of a file that was moved."""
    return signature._replace(ctime_ns=change + 1_000_000)


class SimulatedWriter(HistoryWriter):
    """The history in memory; what a commit leaves on the disk is kept by the machine."""

    machine: Machine

    def __init__(self, folder: Path) -> None:
        self._guard, self.path, self.set_aside, self.lost, self._local = RLock(), folder / "h", None, None, True
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        if self.machine.disk:
            self.connection.deserialize(self.machine.disk)
        self.connection.execute("PRAGMA foreign_keys = ON")
        database._migrate_schema(self.connection, self.path)

    def transaction(self, *, lasting: bool = True) -> Any:  # noqa: ANN401
        self.machine.step()
        return self._commit(lasting)

    @database.contextmanager
    def _commit(self, lasting: bool) -> Iterator[sqlite3.Connection]:
        if self.machine.full:
            raise StoreError("the disk is full")
        with self._guard, database.run_transaction(self.connection, self.path, None):
            yield self.connection
        self.machine.unsynced.append(self.connection.serialize())
        if lasting:
            self.machine.disk = self.machine.unsynced.pop()
            self.machine.unsynced.clear()
        self.machine.step()

    def close(self) -> None:
        self.connection.close()


class SimulatedExecutor:
    """Keeps tasks until the machine runs them."""

    machine: Machine

    def __init__(self, *_: object, **__: object) -> None: ...

    def submit(self, act: Callable[..., Any], *arguments: Any) -> Future[Any]:  # noqa: ANN401
        future: Future[Any] = Future()
        self.machine.tasks.append((future, lambda: act(*arguments)))
        return future

    def shutdown(self, **_: object) -> None:
        self.machine.tasks.clear()


class SimulatedWorker:
    """A child that knows what the files of the machine hold."""

    machine: Machine

    def __init__(self, *_: object) -> None: ...

    def close(self) -> None: ...

    def run_task(self, task: dict[str, Any], _: object) -> object:
        self.machine.step()
        files = self.machine.files
        if task["do"] == "identify":
            there = {name: Path(task["folder"]) / name for name in task["names"]}
            return {name: self._identify(path) for name, path in there.items()}
        path = Path(task["units"][0][0])
        if path not in files:
            raise TaskFailed("unreachable", "gone")
        content = files[path][0]
        if task["do"] == "digest":
            return [f"{content.kind} {content.name}"]
        if content.kind == "half":
            raise TaskFailed("refused", "cut off")
        if content.kind != "run":
            raise TaskFailed("killed", "was ended by SIGSEGV")
        profile = replace(RUN.profile, run=content.name)
        return {"advice": replace(RUN, profile=profile)}

    def _identify(self, path: Path) -> object:
        if path not in self.machine.files:
            return "gone"
        kind = self.machine.files[path][0].kind
        return [str(path), "native"] if kind in ("run", "half", "kills") else None


class SimulatedEvents:
    """Announcements, as far as the machine made them."""

    machine: Machine

    def __init__(self, _: object) -> None:
        self.silent: dict[Path, str] = {}
        self.incomplete = False

    def watch_roots(self, _: object) -> bool:
        return False

    def stop_watching(self) -> None: ...

    def take_changes(self) -> AnnouncedChanges:
        taken, self.machine.announced = self.machine.announced, AnnouncedChanges()
        return taken


class SimulatedThread:
    """A thread that does nothing by itself."""

    def __init__(self, **_: object) -> None: ...

    def start(self) -> None: ...


def simulate_daemon(seed: int) -> tuple[int, int]:
    """Run one history of a machine; return how many runs were told of, and how often the process was killed.

    Raises ``AssertionError`` with the seed.
    """
    machine = Machine(random.Random(seed))
    for kind in (SimulatedWriter, SimulatedExecutor, SimulatedWorker, SimulatedEvents):
        kind.machine = machine  # type: ignore[attr-defined]
    with ExitStack() as patched:
        for owner, name, new in _list_replacements(machine):
            patched.enter_context(patch.object(owner, name, new))
        for _ in range(machine.chance.randrange(1, 5)):
            with suppress(Ended, StoreError):  # a daemon that finds no room does not begin
                _run_process(machine, machine.chance.randrange(5, 60))
            if machine.chance.random() < 0.5:
                machine.lose_power()
            elif machine.unsynced:
                machine.disk = machine.unsynced.pop()
            machine.unsynced.clear()
        machine.calm, machine.full = True, False
        _run_process(machine, 400, until_done=True)
        check_history(machine, seed)
    return len(machine.told), machine.kills


def _list_replacements(machine: Machine) -> list[tuple[Any, str, Any]]:
    def clock() -> float:
        return machine.now

    return [
        (access, "open_writer", SimulatedWriter), (daemon, "InotifyEvents", SimulatedEvents),
        (daemon, "plugin_versions", lambda _: {}), (reader_pool, "plugin_versions", lambda _: {}),
        (reader_pool, "ThreadPoolExecutor", SimulatedExecutor), (reader_pool, "Worker", SimulatedWorker),
        (root_scanner, "Thread", SimulatedThread), (root_scanner, "root_identity", lambda _: (1, 1)),
        (root_scanner, "thread_time", lambda: 0.0),
        *((module, "monotonic", clock) for module in (daemon, reader_pool, root_scanner)),
        (scan, "walk_folders", lambda *_, **__: _walk(machine)),
        (scan, "list_named_files", lambda path, names: _look(machine, path, names)),
        (scan, "list_folder_files", lambda path: _look(machine, path, None)),
        (intake.record_json, "unpack_record", lambda _, document: document),
        (run_packing, "pack_advice", lambda advice: (advice.profile.run.encode(), b"")),
    ]  # fmt: skip


def _walk(machine: Machine) -> Iterator[scan.FolderScan]:
    for folder in FOLDERS:
        yield _look(machine, folder, None)
        machine.step()


def _look(machine: Machine, folder: Path, names: set[bytes] | None) -> scan.FolderScan:
    there = {os.fsencode(path.name): one[1] for path, one in machine.files.items() if path.parent == folder}
    return scan.FolderScan(folder, {name: one for name, one in there.items() if names is None or name in names})


def _run_process(machine: Machine, turns: int, *, until_done: bool = False) -> None:
    """Let a daemon run for so many turns of its loop, or until nothing is left to be done."""

    def tell(event: object) -> None:
        if isinstance(event, RunIngested):
            machine.told[event.number] = event.advice.profile.run, event.path

    machine.tasks.clear()
    machine.announced = AnnouncedChanges()
    made = Daemon(CONFIG, STATE, tell)
    made._writer = writer = SimulatedWriter(STATE)
    try:
        made._announced = made._retention = None  # type: ignore[assignment]
        made._announced = SimulatedEvents(None)  # type: ignore[assignment]
        made._retention = daemon.HistoryRetention(writer, CONFIG)
        made._readers = reader_pool.ReaderPool(CONFIG, writer, made._settling)
        made._begin_session()
        made._watch_roots(CONFIG.roots)
        looked = 0.0
        for _ in range(turns):
            machine.step()
            with suppress(StoreError):  # as the loop does, which says so and goes on
                made._run_turn(once=False)
            for looker in made._lookers.values():
                if machine.calm or machine.chance.random() < 0.7:
                    looker._serve_requests()
                    looked = looker._begun
            while machine.tasks and (machine.calm or machine.chance.random() < 0.6):
                future, act = machine.tasks.pop(machine.chance.randrange(len(machine.tasks)))
                try:
                    future.set_result(act())
                except StoreError as error:
                    future.set_exception(error)
            idle = not (len(made._settling) or made._serving or machine.tasks)
            if until_done and idle and looked > 2 * CONFIG.scan_s:
                return
            machine.now += machine.chance.choice((0.05, 0.3, 1.0, 3.0))
        assert not until_done, "something waits for ever"
    finally:
        writer.close()


def check_history(machine: Machine, seed: int) -> None:
    """Compare the history with the files, and with what was told: the reference."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(machine.unsynced[-1] if machine.unsynced else machine.disk)
        there = dict(connection.execute("SELECT id, run FROM runs"))
        known = {
            folder / os.fsdecode(name): (state, signature)
            for folder in FOLDERS
            for name, (signature, state) in FileStates(connection).known_files(folder).items()
        }
    assert known.keys() == machine.files.keys(), (seed, "each file in one state")
    names = sorted(there.values())
    assert names == sorted(set(names)), (seed, "a run twice", names)
    expected = {"run": ("ingested", "duplicate"), "half": ("quarantined",), "kills": ("quarantined",)}
    for path, (content, signature) in machine.files.items():
        state, seen = known[path]
        assert seen == signature, (seed, path, "an older file")
        assert state in expected.get(content.kind, ("ignored",)), (seed, path, content, state)
        assert content.kind != "run" or content.name in names, (seed, path, "a run is lost", content)
    for number, (name, path) in machine.told.items():
        assert there.get(number) == name or machine.last[path] != name, (seed, number, "what was told is lost", name)
