"""The loop: look, wait until files are quiet, have them read, remember what came of them.

One thread decides; the others wait for children. Whatever ends this process, the ledger knows which files still wait,
and the next process goes on with them.
"""

from __future__ import annotations

from threading import Event as Flag
from time import monotonic
from typing import TYPE_CHECKING, Final

from advisor import __version__
from advisor.errors import AdvisorError
from advisor.store import filesystems
from advisor.store.database import Writer
from advisor.store.ledger import Ledger
from advisor.store.runs import Runs
from advisor.watch import manners, scan
from advisor.watch.announcements import Announcements
from advisor.watch.events import Backlog, FileSettled, Remark, RunTaken
from advisor.watch.reading import Readers
from advisor.watch.settling import Settling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from advisor.store.ledger import Signature, State
    from advisor.watch.config import Config
    from advisor.watch.events import Event
    from advisor.watch.intake import Candidate, Outcome
    from advisor.watch.reading import Served

#: The loop turns at least this often, to see stop flags and roots that changed (seconds).
_TURN_S: Final = 1.0
#: A file whose writer closed it is read after this moment, in which its neighbours may be closed too.
_CLOSED_S: Final = 0.1
#: A profile that could not be read yet is tried again after this many times the quiet time.
_AGAIN: Final = 5
#: Directories handed to the readers at a time; the rest waits in the ledger.
_QUEUE: Final = 64
#: Old runs are dropped after so many new ones.
_PRUNE_EVERY: Final = 1000


class Daemon:
    """Watches the roots of a configuration; ``tell`` is called with every event, in the thread of ``run``."""

    def __init__(self, config: Config, state: Path, tell: Callable[[Event], None]) -> None:
        self._config, self._state, self._tell = config, state, tell
        self._wake, self._stopped = Flag(), Flag()
        self._settling = Settling(config.quiet_s)
        self._serving: dict[Path, Future[Served]] = {}
        self._reload: Callable[[], Config] | None = None

    def reload(self, read: Callable[[], Config]) -> None:
        """Go on with another configuration soon, if it can be read; safe to call from a signal handler."""
        self._reload = read
        self._wake.set()

    def stop(self) -> None:
        """End ``run`` soon; safe to call from a signal handler."""
        self._stopped.set()
        self._wake.set()

    def run(self, *, once: bool = False) -> None:
        """Watch until stopped, or, ``once``, until nothing waits any more; raises ``StoreError``."""
        self._writer = Writer(self._state)
        self._announced = Announcements(self._config.roots, self._wake)
        self._readers = Readers(self._config, self._writer, self._settling)
        try:
            self._begin()
            self._loop(once)
        finally:
            manners.tell_service("STOPPING=1")
            self._announced.stop()
            self._readers.close()
            self._writer.close()

    def _begin(self) -> None:
        """Take up what an earlier process left; what an older version could not read gets another try."""
        if self._writer.set_aside:
            self._tell(Remark(f"the history was set aside: {self._writer.set_aside}; all profiles are read anew"))
        for root, why in self._announced.silent.items():
            self._tell(Remark(f"{root} is scanned every {self._config.poll_s:g} s: {why}"))
        with self._writer.transaction() as connection:
            (known,) = connection.execute("SELECT max(value) FROM meta WHERE name = 'version'").fetchone()
            if known != __version__:
                connection.execute("UPDATE files SET state = 'waiting' WHERE state = 'quarantined'")
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('version', ?)", (__version__,))
            waiting = Ledger(connection).waiting()
        for folder, name, signature in waiting:
            self._settling.observe(folder, {name: signature}, monotonic())

    def _loop(self, once: bool) -> None:
        due = dict.fromkeys(self._config.roots, 0.0)
        manners.tell_service("READY=1")
        while not self._stopped.is_set():
            due = self._reconfigured(due)
            self._announced.arm()
            self._look(due)
            self._take_in(once)
            self._hand_out()
            self._tell(Backlog(len(self._settling), len(self._serving)))
            if once and not len(self._settling) and not self._serving:
                return
            manners.tell_service("WATCHDOG=1")
            self._wake.wait(self._pause(min(due.values(), default=0.0)))
            self._wake.clear()

    def _reconfigured(self, due: dict[Path, float]) -> dict[Path, float]:
        """Return when each root is to be scanned, after a change of the configuration; a broken one changes nothing."""
        read, self._reload = self._reload, None
        if read is None:
            return due
        try:
            config = read()
        except AdvisorError as error:
            self._tell(Remark(f"the configuration stays as it was: {error}"))
            return due
        self._announced.stop()
        self._announced = Announcements(config.roots, self._wake)
        self._readers.close()
        self._readers = Readers(config, self._writer, self._settling)
        self._serving.clear()
        self._settling.quiet_time_s = config.quiet_s
        self._config = config
        self._tell(Remark("the configuration was read again"))
        return dict.fromkeys(config.roots, 0.0)

    def _pause(self, next_scan: float) -> float:
        settled = self._settling.next_due()
        moment = next_scan if settled is None or self._serving else min(next_scan, settled)
        return min(max(moment - monotonic(), 0.01), _TURN_S)

    def _look(self, due: dict[Path, float]) -> None:
        """Scan the roots that are due, and the directories in which something was announced."""
        folders, closed = self._announced.take()
        for root, moment in due.items():
            if moment <= monotonic():
                self._scan(root)
                hears = root not in self._announced.silent and filesystems.announces(root)
                due[root] = monotonic() + (self._config.scan_s if hears else self._config.poll_s)
        for folder in sorted(folders):
            if self._root_of(folder) is not None:
                self._note_all(folder)
        for folder, name in closed:
            self._settling.hurry(folder, name, monotonic() + _CLOSED_S)

    def _root_of(self, folder: Path) -> Path | None:
        return next((root for root in self._config.roots if root == folder or root in folder.parents), None)

    def _scan(self, root: Path) -> None:
        """Look at everything below a root; of one that is not there nothing is forgotten: it may come back."""
        seen = self._note_all(root)
        if not seen:
            return
        with self._writer.transaction() as connection:
            ledger = Ledger(connection)
            for folder in ledger.folders(root) - seen:
                gone = set(ledger.known(folder))
                ledger.forget(folder, gone)
                self._settling.done(folder, gone)

    def _note_all(self, top: Path) -> set[Path]:
        """Note what is new or changed at and below a directory; return the directories that are there."""
        seen = set()
        for folder in scan.walk(top, without=[self._state]):
            seen.add(folder.path)
            self._note(folder)
        return seen

    def _note(self, folder: scan.Folder) -> None:
        with self._writer.reading() as connection:
            known = Ledger(connection).known(folder.path)
        gone = known.keys() - folder.files.keys() - folder.special.keys()
        changed = {n: s for n, s in folder.files.items() if n not in known or known[n][0] != s}
        special = {n: s for n, s in folder.special.items() if n not in known or known[n][0] != s[0]}
        if not (gone or changed or special):
            return
        with self._writer.transaction() as connection:
            ledger = Ledger(connection)
            ledger.forget(folder.path, gone)
            ledger.put(folder.path, changed, "waiting")
            for name, (signature, kind) in special.items():
                ledger.put(folder.path, {name: signature}, "ignored", kind)
        self._settling.done(folder.path, gone)
        self._settling.observe(folder.path, changed, monotonic())

    def _hand_out(self) -> None:
        """Have the directories read in which everything is quiet, unless others need the machine now."""
        if self._serving and manners.is_crowded(self._config.jobs + 1):
            return
        for folder, files in self._settling.ready(monotonic()):
            root = self._root_of(folder)
            if len(self._serving) >= _QUEUE:
                return
            if folder in self._serving or root is None:
                continue
            empty = {name: signature for name, signature in files.items() if not signature.size}
            if empty:
                self._settle(folder, empty, "ignored", "is empty")
            full = {name: signature for name, signature in files.items() if signature.size}
            if full:
                self._serving[folder] = self._readers.submit(root, folder, full)
                self._serving[folder].add_done_callback(lambda _: self._wake.set())

    def _take_in(self, once: bool) -> None:
        """Take in what the readers have done."""
        for folder in [folder for folder, future in self._serving.items() if future.done()]:
            served = self._serving.pop(folder).result()
            self._settling.done(folder, set(served.settled))
            left = served.files.keys() - served.settled.keys()
            for unit, outcome in served.units:
                self._conclude(unit, outcome, once)
                left -= unit.files.get(folder, {}).keys()
            for name in left:
                self._settling.postpone(folder, name, monotonic() + self._config.quiet_s)

    def _conclude(self, unit: Candidate, outcome: Outcome, once: bool) -> None:
        """Let the files of a unit go that found their state; one that could not be read yet waits on, for a while."""
        reason = outcome.reason or ""
        if outcome.state != "waiting":
            if outcome.run is not None and outcome.advice is not None:
                self._tell(RunTaken(outcome.run, outcome.path, outcome.advice))
                if outcome.run % _PRUNE_EVERY == 0:
                    self._prune()
            else:
                self._tell(FileSettled(outcome.path, outcome.state, reason))
            return
        now = monotonic()
        quiet = min(self._settling.quiet_s(folder, name, now) for folder, files in unit.files.items() for name in files)
        if once or quiet >= self._config.patience_s:
            for folder, files in unit.files.items():
                self._settle(folder, files, "quarantined", reason)
            self._tell(FileSettled(outcome.path, "quarantined", reason))
            return
        for folder, files in unit.files.items():
            for name in files:
                self._settling.postpone(folder, name, now + _AGAIN * self._config.quiet_s)

    def _settle(self, folder: Path, files: Mapping[bytes, Signature], state: State, reason: str) -> None:
        with self._writer.transaction() as connection:
            Ledger(connection).put(folder, files, state, reason)
        self._settling.done(folder, set(files))

    def _prune(self) -> None:
        with self._writer.transaction() as connection:
            Runs(connection).prune(self._config.keep_runs)
