"""Scans the roots, each in a thread of its own: a hanging file server stops only its own root.

What a look finds goes to the ledger first, as waiting, and to the files that settle as far as there is room.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from threading import Condition, Thread
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Final

from advisor.daemon import scan
from advisor.daemon.inotify_events import root_identity
from advisor.history.file_states import FileStates
from advisor.model.errors import StoreError
from advisor.model.lists import join_names

if TYPE_CHECKING:
    from advisor.daemon.debounce import FileDebouncer
    from advisor.history.access import Writer

#: A file whose writer closed it is read after this moment, in which its neighbours may be closed too.
_CLOSED_S: Final = 0.1

#: Looks take at most one part in so many of a core: where the system announces changes, and where it does not.
_HEARD: Final = 250
_SILENT: Final = 20

#: Why a link is left alone that leads out of what is watched.
_OUTSIDE: Final = "is a link to a file outside of the watched directory"

#: Where more files of a directory were announced, all of it is looked at.
_MANY: Final = 200

Files = dict["Path", set[bytes]]
Closed = set[tuple["Path", bytes]]


class RootScanner:
    """Scans one root on request; ``identity`` is that of the directory at the last scan, None without one.

    ``took_s`` is the CPU time that the last look at the whole root took.
    """

    def __init__(
        self, root: Path, writer: Writer, settling: FileDebouncer, without: Path, done: Callable[[], None]
    ) -> None:
        self.root = root
        self.identity = root_identity(root)
        self.took_s = 0.0
        self._begun = -inf
        self._writer, self._settling, self._without, self._done = writer, settling, without, done
        self._told = Condition()
        self._due, self._glance, self._ended = False, False, False
        self._folders: set[Path] = set()
        self._files: Files = {}
        self._closed: Closed = set()
        self._since: float | None = None
        self._problem: StoreError | None = None
        self._failure = ""
        self._unreadable: set[Path] = set()
        Thread(target=self._run_thread, name=f"look at {root}", daemon=True).start()

    def request_scan(self) -> None:
        """Have a look at the whole root soon."""
        with self._told:
            self._due, self._begun = True, monotonic()
            self._told.notify()

    def request_folder_scan(
        self, folders: Iterable[Path], files: Mapping[Path, set[bytes]], closed: Iterable[tuple[Path, bytes]]
    ) -> None:
        """Have a look soon at directories, and at files by directory; some were ``closed`` by their writers."""
        with self._told:
            self._folders.update(folders)
            for folder, names in files.items():
                self._files.setdefault(folder, set()).update(names)
            self._closed.update(closed)
            self._told.notify()

    def request_root_check(self) -> None:
        """Have a look soon at what lies at the root itself."""
        with self._told:
            self._glance = True
            self._told.notify()

    def stop_scanning(self) -> None:
        """Look no more; a look that hangs is left to itself."""
        with self._told:
            self._ended = True
            self._told.notify()

    @property
    def busy_s(self) -> float:
        """How long ago the look under way got to its last directory; 0 where none is under way or to be done."""
        with self._told:
            if self._since is not None:
                return max(monotonic() - self._since, 1e-9)
            return 1e-9 if self._due or self._folders or self._files else 0.0

    def next_scan_s(self, least_s: float, *, hears: bool) -> float:
        """Return when to look at the whole root again, by the monotonic clock: the later, the longer that took."""
        return self._begun + max(least_s, (_HEARD if hears else _SILENT) * self.took_s)

    def take_problem(self) -> StoreError | None:
        """Return, once, what kept the last scans from being recorded."""
        with self._told:
            problem, self._problem = self._problem, None
        return problem

    def take_failure(self) -> str:
        """Return, once, the unexpected failure of the last scans; '' without one.

        What they did not get to is found by the next look at the whole root.
        """
        with self._told:
            failure, self._failure = self._failure, ""
        return failure

    def _run_thread(self) -> None:
        while True:
            with self._told:
                self._told.wait_for(lambda: self._ended or self._due or self._glance or self._folders or self._files)
                if self._ended:
                    return
            self._serve_requests()

    def _serve_requests(self) -> None:
        """Serve the requests since the last call."""
        with self._told:
            whole, folders, files, closed = self._due, self._folders, self._files, self._closed
            self._due, self._glance, self._folders, self._files, self._closed = False, False, set(), {}, set()
            self._since = monotonic()
        try:
            self._scan_requested(whole, folders, files)
        except StoreError as error:
            with self._told:
                self._problem = error
        except Exception as error:  # else this thread would end, and with it every look at this root
            self._note_failure(self.root, error)
        for folder, name in closed:
            self._settling.advance_file(folder, name, monotonic() + _CLOSED_S)
        with self._told:
            self._since = None
        if whole or folders or files:
            self._done()

    def _note_failure(self, place: Path, error: Exception) -> None:
        with self._told:
            self._failure = f"looking at {place} failed: {type(error).__name__}: {error}"

    def _scan_requested(self, whole: bool, folders: set[Path], files: Files) -> None:
        self.identity = root_identity(self.root)
        if whole:
            begin = thread_time()
            self._scan_root()
            self.took_s = thread_time() - begin
            return
        folders = {folder for folder in folders if not self._is_left_out(folder)}
        for folder in sorted(folders):
            if not any(above in folders for above in folder.parents):
                self._record_tree(folder)
        for folder, names in files.items():
            if self._is_left_out(folder) or folder in folders or any(above in folders for above in folder.parents):
                continue
            found = scan.list_named_files(folder, names) if len(names) <= _MANY else scan.list_folder_files(folder)
            if not found.closed:
                self._record_folder(found, names if len(names) <= _MANY else None)

    def _is_left_out(self, folder: Path) -> bool:
        """Return whether scans pass a directory by: it is hidden or the history's, or below such a one."""
        hidden = any(part.startswith(".") for part in folder.relative_to(self.root).parts)
        return hidden or folder.resolve().is_relative_to(self._without.resolve())

    def _scan_root(self) -> None:
        """Look at everything below the root; of one that is not there nothing is forgotten: it may come back."""
        seen = self._record_tree(self.root)
        if not any(seen.values()):
            return
        with self._writer.lend_connection() as connection:
            gone = FileStates(connection).known_folders(self.root) - seen.keys()
        hidden = [folder for folder, there in seen.items() if not there]
        for folder in gone:
            if self._ended or any(place in folder.parents for place in hidden):
                continue
            with self._writer.transaction(lasting=False) as connection:
                ledger = FileStates(connection)
                names = set(ledger.known_files(folder))
                ledger.forget_files(folder, names)
            self._settling.forget_files(folder, names)

    def _record_tree(self, top: Path) -> dict[Path, bool]:
        """Note what is new or changed at and below a directory; return those that are there, False for hidden ones."""
        seen: dict[Path, bool] = {}
        for folder in scan.walk_folders(top, without=[self._without]):
            if self._ended:
                break
            with self._told:
                self._since = monotonic()
            seen[folder.path] = not folder.closed
            if folder.closed:
                continue
            try:
                self._record_folder(folder)
            except StoreError:
                raise
            except Exception as error:  # one directory; the others are looked at
                self._note_failure(folder.path, error)
        # say once of directories that they can't be read, for as long as that is so
        closed = {folder for folder, there in seen.items() if not there}
        if new := sorted(closed - self._unreadable):
            with self._told:
                self._failure = f"{join_names([*map(str, new)], most=1)} can't be read"
        self._unreadable = (self._unreadable - seen.keys()) | closed
        return seen

    def _record_folder(self, folder: scan.FolderScan, names: Collection[bytes] | None = None) -> None:
        """Note what is new, changed or gone in a directory, or of ``names`` in it."""
        with self._writer.lend_connection() as connection:
            known = FileStates(connection).known_files(folder.path, names)
        gone = known.keys() - folder.files.keys() - folder.special.keys() - folder.unclear
        nothing = (None, None)
        changed = {n: s for n, s in folder.files.items() if known.get(n, nothing)[0] != s}
        special = {n: s for n, s in folder.special.items() if n not in known or known[n][0] != s[0]}
        outside = {n: s for n, s in changed.items() if self._leads_outside(folder.path / os.fsdecode(n))}
        special |= {n: (s, _OUTSIDE) for n, s in outside.items()}
        changed = {n: s for n, s in changed.items() if n not in outside}
        if not (gone or changed or special):
            return
        with self._writer.transaction(lasting=False) as connection:
            ledger = FileStates(connection)
            ledger.forget_files(folder.path, gone)
            ledger.store_files(folder.path, changed, "waiting")
            for name, (signature, kind) in special.items():
                ledger.store_files(folder.path, {name: signature}, "ignored", kind)
        self._settling.forget_files(folder.path, gone | outside.keys())
        self._settling.observe_files(folder.path, changed, monotonic())

    def _leads_outside(self, path: Path) -> bool:
        """Return whether a file is a link to one that does not lie below the root."""
        with suppress(OSError, RuntimeError):  # a link that leads to itself is no error everywhere
            return path.is_symlink() and not path.resolve().is_relative_to(self.root.resolve())
        return True


def list_scanned_identities(lookers: Mapping[Path, RootScanner]) -> dict[Path, tuple[int, int]]:
    """Return what lay at each root at its last look, without those where nothing did."""
    return {root: looker.identity for root, looker in lookers.items() if looker.identity is not None}
