"""The loop: look, wait until files are quiet, have them read, remember what came of them.

One thread decides; the others look at roots, and wait for children. Whatever ends this process, the ledger knows which
files still wait, and the next process goes on with them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from threading import Event as Flag
from time import monotonic
from typing import TYPE_CHECKING, Final

from advisor import __version__
from advisor.daemon import throttling
from advisor.daemon.debounce import FileDebouncer
from advisor.daemon.events import Backlog, Event, FileSettled, Remark, RunIngested
from advisor.daemon.inotify_events import InotifyEvents
from advisor.daemon.reader_pool import UNKNOWN, ReaderPool, ReadResult
from advisor.daemon.retention import HistoryRetention
from advisor.daemon.root_scanner import RootScanner, list_scanned_identities
from advisor.extension.host.discovery import plugin_versions
from advisor.history import access
from advisor.history.file_states import FileSignature, FileStates, State
from advisor.history.location import HistoryLocation, working_folder
from advisor.history.remarks import RemarkStore
from advisor.model.errors import AdvisorError, StoreError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from advisor.daemon.config import DaemonConfig
    from advisor.daemon.intake import UnitCandidate, UnitOutcome

#: The loop turns at least this often, to see stop flags and roots that changed (seconds).
_TURN_S: Final = 1.0
#: A profile that could not be read yet is tried again after this many times the quiet time.
_AGAIN: Final = 5
#: Files handed to the readers at a time, and how many such parts at once; the rest waits in the ledger.
_PART: Final = 100
_PARTS: Final = 64
#: With ``once``, files that changed so often while they were read are left alone: a plugin may touch what it reads.
_CHANGES: Final = 10
#: A root that does not answer for so long is spoken of (seconds).
_HANGS_S: Final = 30.0


class Daemon:
    """Watches the roots of a configuration; ``tell`` is called with every event, in the thread of ``run_daemon``.

    What lay there before is read in the order of its writing; with ``once``, root by root as they were named.
    """

    def __init__(self, config: DaemonConfig, state: HistoryLocation, tell: Callable[[Event], None]) -> None:
        self._config, self._state, self._tell = config, state, tell
        self._wake, self._stopped = Flag(), Flag()
        self._settling = FileDebouncer(config.quiet_s)
        self._serving: dict[Future[ReadResult], tuple[Path, set[bytes]]] = {}
        self._lookers: dict[Path, RootScanner] = {}
        self._due: dict[Path, float] = {}
        self._reload: Callable[[], DaemonConfig] | None = None
        self._said: set[str] = set()
        self._changes: Counter[Path] = Counter()
        self._gone: set[Path] = set()
        self._pace = throttling.BacklogThrottle(config.max_load)
        self._anew = False
        self._begin_s = -inf

    def reload_config(self, read: Callable[[], DaemonConfig]) -> None:
        """Go on with another configuration soon, if it can be read; safe to call from a signal handler."""
        self._reload = read
        self._wake.set()

    def stop(self) -> None:
        """End ``run_daemon`` soon; safe to call from a signal handler."""
        self._stopped.set()
        self._wake.set()

    def run_daemon(self, *, once: bool = False) -> None:
        """Watch until stopped, or, ``once``, until nothing waits any more; raises ``StoreError``.

        A history that cannot be written, on a full disk, stops a daemon only ``once``; else it waits for room.
        """
        self._begin_s = inf if once else -inf
        self._writer = access.open_writer(self._state)
        self._announced = InotifyEvents(self._wake)
        self._retention = HistoryRetention(self._writer, self._config)
        self._readers = ReaderPool(self._config, self._writer, self._settling)
        try:
            self._begin_session()
            if not once:
                self._readers.warm_up()
            self._watch_roots(self._config.roots)
            self._run_loop(once)
        finally:
            throttling.notify_service("STOPPING=1")
            for looker in self._lookers.values():
                looker.stop_scanning()
            self._announced.stop_watching()
            self._readers.close()
            self._writer.close()

    def _begin_session(self) -> None:
        """Take up what an earlier process left; what older readers did not know or take gets another try."""
        with self._writer.transaction(lasting=False) as connection:
            RemarkStore(connection).clear_remarks()
        if self._writer.set_aside:
            self._publish_remark(f"the history was set aside: {self._writer.set_aside}; other profiles are read anew")
        if self._writer.lost:
            self._publish_remark(
                f"the history: {self._writer.lost}; profiles that were read in them are read again, and what was said "
                "of items since must be said again"
            )
        plugins = sorted(plugin_versions(self._config.plugins).items())
        version = " ".join((__version__, *(f"{name}={number}" for name, number in plugins)))
        with self._writer.transaction() as connection:
            if RemarkStore(connection).replace_version(version):
                FileStates(connection).retry_refused_files(UNKNOWN)
        self._load_waiting_files()
        self._retention.drop_excess_runs()

    def _load_waiting_files(self) -> None:
        """Queue the files below the roots that the history knows to be pending, as many as fit."""
        with self._writer.lend_connection() as connection:
            waiting = FileStates(connection).waiting_files(self._config.roots, 2 * self._settling.room)
        self._settling.overflowed = False
        for folder, name, signature in waiting:
            self._settling.observe_files(folder, {name: signature}, monotonic())

    def _watch_roots(self, roots: tuple[Path, ...]) -> None:
        """Look at these roots from now on: first listen, then look, so that nothing is missed in between."""
        for looker in self._lookers.values():
            looker.stop_scanning()
        without = working_folder(self._state)
        self._lookers = {
            root: RootScanner(root, self._writer, self._settling, without, self._wake.set) for root in roots
        }
        self._due = dict.fromkeys(roots, 0.0)
        self._announced.watch_roots(list_scanned_identities(self._lookers))
        for root, why in self._announced.silent.items():
            self._publish_remark(f"{root} is scanned every {self._config.poll_s:g} s: {why}")

    def _run_loop(self, once: bool) -> None:
        throttling.notify_service("READY=1")
        while not self._stopped.is_set():
            try:
                done = self._run_turn(once)
            except StoreError as error:
                if once:
                    raise
                self._remark_once(f"reading pauses: {error}")
                done = False
            if done:
                return
            throttling.notify_service("WATCHDOG=1")
            self._wake.wait(self._compute_pause())
            self._wake.clear()

    def _run_turn(self, once: bool) -> bool:
        """Do all that is to be done now; return whether ``once`` was enough."""
        self._apply_reload()
        self._scan_due_roots(once)
        self._collect_results(once)
        if self._settling.overflowed and len(self._settling) < self._settling.room // 2:
            self._load_waiting_files()
        looking = any(0.0 < looker.busy_s <= self._config.task_s for looker in self._lookers.values())
        if not looking and self._begin_s == inf:  # all that lies there is known, and due at the latest then
            self._begin_s = monotonic() + self._config.quiet_s
        if self._begin_s <= monotonic():
            self._submit_ready_files(once)
        self._tell(Backlog(len(self._settling), sum(len(names) for _, names in self._serving.values())))
        done = once and not (looking or len(self._settling) or self._serving or self._settling.overflowed)
        if done:
            self._report_failed_looks(once)  # a look may have ended since they were told
        return done

    def _apply_reload(self) -> None:
        """Take over a change of the configuration; a broken one changes nothing."""
        read, self._reload = self._reload, None
        if read is None:
            return
        try:
            config = read()
        except AdvisorError as error:
            self._publish_remark(f"the configuration stays as it was: {error}")
            return
        self._announced.stop_watching()
        self._announced = InotifyEvents(self._wake)
        self._readers.close()
        self._readers = ReaderPool(config, self._writer, self._settling)
        self._retention = HistoryRetention(self._writer, config)
        self._serving.clear()
        self._settling.forget_all()
        self._settling.quiet_time_s = config.quiet_s
        self._pace.max_load = config.max_load
        self._config = config
        self._watch_roots(config.roots)
        self._publish_remark("the configuration was read again")

    def _compute_pause(self) -> float:
        scan = min(self._due.values(), default=0.0)
        settled = None if self._serving else self._settling.next_due()
        moment = scan if settled is None else min(scan, max(settled, self._pace.resting_until, self._begin_s))
        return min(max(moment - monotonic(), 0.01), _TURN_S)

    def _scan_due_roots(self, once: bool) -> None:
        """Have the roots looked at that are due, and what was announced."""
        changes = self._announced.take_changes()
        if self._announced.incomplete:
            self._announced.incomplete, self._anew = False, True
            self._remark_once("more happened at once than the system can announce; everything is looked at again")
        self._report_missing_roots(once)
        self._report_failed_looks(once)
        for root, looker in self._lookers.items():
            if looker.busy_s > _HANGS_S:
                self._report_unread_root(root, f"has not answered for {_HANGS_S:g} s; everything else goes on", once)
                self._due[root] = monotonic() + self._config.poll_s
            elif self._anew or self._due[root] <= monotonic():
                hears = root not in self._announced.silent
                least = self._config.scan_s if hears else self._config.poll_s
                if self._anew or (not looker.busy_s and looker.next_scan_s(least, hears=hears) <= monotonic()):
                    looker.request_scan()
                self._due[root] = max(
                    looker.next_scan_s(least, hears=hears), monotonic() + (_TURN_S if looker.busy_s else 0.0)
                )
            looker.request_folder_scan(
                [folder for folder in changes.folders if self._find_root(folder) == root],
                {folder: names for folder, names in changes.files.items() if self._find_root(folder) == root},
                [(folder, name) for folder, name in changes.closed if self._find_root(folder) == root],
            )
            if not once:
                looker.request_root_check()
        self._anew = self._announced.watch_roots(list_scanned_identities(self._lookers))

    def _report_missing_roots(self, once: bool) -> None:
        """Tell of roots that went, or came back."""
        gone = {root for root, looker in self._lookers.items() if looker.identity is None}
        for root in sorted(gone - self._gone):
            self._publish_remark(f"{root} is not there" + ("" if once else "; it is waited for"))
            if once:
                self._tell(FileSettled(root, "waiting", "is not there"))
        for root in sorted((self._gone & self._lookers.keys()) - gone):
            self._publish_remark(f"{root} is there again")
        self._gone = gone

    def _report_failed_looks(self, once: bool) -> None:
        """Tell what went wrong in looks that ended; raises ``StoreError`` where what was found could not be noted."""
        for root, looker in self._lookers.items():
            if (problem := looker.take_problem()) is not None:
                raise problem
            if failure := looker.take_failure():
                self._report_unread_root(root, f"was not looked at in full: {failure}", once)

    def _report_unread_root(self, root: Path, reason: str, once: bool) -> None:
        """Report once that a root could not be scanned completely; with ``once`` there is no further scan."""
        text = f"{root} {reason}"
        if once and text not in self._said:
            self._tell(FileSettled(root, "waiting", reason))
        self._remark_once(text)

    def _find_root(self, folder: Path) -> Path | None:
        return next((root for root in self._config.roots if root == folder or root in folder.parents), None)

    def _rank_root(self, folder: Path) -> int:
        root = self._find_root(folder)
        return -1 if root is None else self._config.roots.index(root)

    def _submit_ready_files(self, once: bool) -> None:
        """Have the directories read in which everything is quiet; of a backlog less where others need the machine.

        With ``once``, and for a few files, somebody waits for what comes of them. While the readers have enough to do,
        nothing is looked for: that takes the longer the more files wait.
        """
        if len(self._serving) > _PARTS // 2:
            return
        backlog = not once and len(self._settling) > throttling.FEW
        if backlog and not self._pace.allows_part(bool(self._serving), self._config.jobs + 1):
            return
        handed: dict[Path, set[bytes]] = {}
        for folder, names in self._serving.values():
            handed[folder] = handed.get(folder, set()) | names
        ready = self._settling.ready_folders(monotonic())
        for folder, files in sorted(ready, key=lambda one: self._rank_root(one[0])) if once else ready:
            root = self._find_root(folder)
            if root is None:  # it was watched until the configuration changed
                self._settling.forget_files(folder, files)
                continue
            restless = {name: files[name] for name in files if self._changes[folder / os.fsdecode(name)] >= _CHANGES}
            if restless:
                self._postpone_files(folder, restless, f"changed {_CHANGES} times while it was read", leave=True)
            empty = {name: signature for name, signature in files.items() if not signature.size}
            if empty:
                self._settle_files(folder, empty, "ignored", "is empty")
            rest = [name for name in files if name not in empty | restless and name not in handed.get(folder, ())]
            for begin in range(0, len(rest), _PART):
                if len(self._serving) >= _PARTS:
                    return
                part = {name: files[name] for name in rest[begin : begin + _PART]}
                future = self._readers.submit_files(root, folder, part)
                self._serving[future] = folder, set(part)
                future.add_done_callback(lambda _: self._wake.set())
                if backlog and self._pace.begin_part():
                    return

    def _collect_results(self, once: bool) -> None:
        """Take in what the readers have done; raises ``StoreError`` where that could not be stored."""
        done = [future for future in self._serving if future.done()]
        for unit, outcome in self._readers.take_read_units():  # all those of what is done, and others
            self._settle_unit(unit, outcome, once)
        for future in done:
            folder, names = self._serving.pop(future)
            try:
                served = future.result()
            except StoreError:
                for name in names:
                    self._settling.postpone_file(folder, name, monotonic() + _AGAIN * self._config.quiet_s)
                raise
            except Exception as error:  # nobody expected it; else one file would end the daemon, again and again
                there = self._settling.files_in(folder)
                files = {name: there[name] for name in names & there.keys()}
                self._postpone_files(folder, files, f"reading failed: {type(error).__name__}: {error}", once)
                continue
            self._settling.forget_files(folder, served.settled)
            left = served.files.keys() - served.settled.keys()
            for unit, _ in served.units:
                left -= unit.files.get(folder, {}).keys()
            for name in left & served.out_of_reach.keys():
                self._postpone_files(folder, {name: served.files[name]}, served.out_of_reach[name], once)
            pause = self._config.quiet_s * (_AGAIN if served.problem else 1)
            for name in left - served.out_of_reach.keys():
                self._settling.postpone_file(folder, name, monotonic() + pause)
            if served.problem:
                raise served.problem

    def _settle_unit(self, unit: UnitCandidate, outcome: UnitOutcome, once: bool) -> None:
        """Let the files of a unit go that found their state; one that could not be read yet waits on, for a while."""
        reason = outcome.reason or ""
        if outcome.state != "waiting":
            self._said.clear()
            if outcome.run is not None and outcome.advice is not None:
                self._tell(RunIngested(outcome.run, outcome.path, outcome.advice))
                self._retention.count_new_run()
            else:
                self._tell(FileSettled(outcome.path, outcome.state, reason))
            return
        now = monotonic()
        quiet = min(self._settling.quiet_s(folder, name, now) for folder, files in unit.files.items() for name in files)
        if outcome.reachable and not outcome.again and (once or quiet >= self._config.patience_s):
            for folder, files in unit.files.items():
                self._settle_files(folder, files, "quarantined", reason)
            self._tell(FileSettled(outcome.path, "quarantined", reason))
            return
        if outcome.changed and once:
            self._changes.update(folder / os.fsdecode(name) for folder, files in unit.files.items() for name in files)
        if outcome.changed and unit.root in self._lookers:
            names = {folder: set(files) for folder, files in unit.files.items()}
            self._lookers[unit.root].request_folder_scan((), names, ())
        for folder, files in unit.files.items():
            self._postpone_files(folder, files, reason, once and not outcome.reachable and not outcome.changed)

    def _postpone_files(self, folder: Path, files: Mapping[bytes, FileSignature], reason: str, leave: bool) -> None:
        """Let files wait on for a reason, the longer the longer they do; or ``leave`` them to the next process."""
        with self._writer.transaction(lasting=False) as connection:
            FileStates(connection).store_files(folder, files, "waiting", reason)
        if leave:
            self._settling.forget_files(folder, files)
            for name in files:
                self._tell(FileSettled(folder / os.fsdecode(name), "waiting", reason))
        now = monotonic()
        for name in files:
            longer = min(self._settling.quiet_s(folder, name, now) / 2, self._config.scan_s)
            self._settling.postpone_file(folder, name, now + max(_AGAIN * self._config.quiet_s, longer))

    def _settle_files(self, folder: Path, files: Mapping[bytes, FileSignature], state: State, reason: str) -> None:
        with self._writer.transaction(lasting=False) as connection:
            FileStates(connection).store_files(folder, files, state, reason)
        self._settling.forget_files(folder, files)

    def _remark_once(self, text: str) -> None:
        """Report a persisting condition once until a profile is read again."""
        if text not in self._said:
            self._said.add(text)
            self._publish_remark(text)

    def _publish_remark(self, text: str) -> None:
        """Tell something about the daemon itself, and leave it to gapwatch status."""
        self._tell(Remark(text))
        with suppress(StoreError), self._writer.transaction(lasting=False) as connection:
            RemarkStore(connection).add_remark(text)
