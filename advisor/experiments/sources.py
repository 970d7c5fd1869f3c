"""The files that the builds of a session read: what of them changed since it began, and what its runs wrote.

What a run writes is no input of a build. A file that was not there when the session began is none either.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: Directories that are no part of a build.
LEFT_OUT: Final = (".git", ".hg", ".svn", "__pycache__")
_LIST: Final = "sources.json"

#: Files by their paths below a directory, each with its size (bytes) and the time of its last change (ns).
FileList = dict[str, list[int]]


class SourceFiles:
    """The files below ``root`` as they were when the session began, apart from those in or at ``left_out``."""

    def __init__(self, root: Path, session: Path, left_out: Collection[Path] = ()) -> None:
        self._root, self._file = root, session / _LIST
        self._left_out = {path.resolve() for path in (session, *left_out)}
        self._names = {path.name for path in self._left_out}
        if self._file.exists():
            stated = json.loads(self._file.read_text("utf-8"))
            self._files: FileList = stated["files"]
            self._written: set[str] = set(stated["written"])
        else:
            self._files, self._written = self._list_files(), set()
            self._save()

    def find_changed(self) -> list[str]:
        """Return the files that changed or went since the session began, without those that its runs wrote."""
        now = self._list_files()
        return [name for name, stamp in self._files.items() if name not in self._written and now.get(name) != stamp]

    @contextmanager
    def watch_run(self) -> Iterator[None]:
        """Note the files that change while a run goes on as written by it."""
        before = self._list_files()
        try:
            yield
        finally:
            after = self._list_files()
            written = {name for name, stamp in before.items() if after.get(name) != stamp} - self._written
            if written:
                self._written |= written
                self._save()

    def _save(self) -> None:
        self._file.write_text(json.dumps({"files": self._files, "written": sorted(self._written)}), "utf-8")

    def _list_files(self) -> FileList:
        found: FileList = {}
        for place, folders, files in os.walk(self._root):
            here = Path(place)
            folders[:] = [
                name for name in folders if name not in LEFT_OUT and (here / name).resolve() not in self._left_out
            ]
            for name in files:
                path = here / name
                try:
                    if name in self._names and path.resolve() in self._left_out:
                        continue
                    status = path.stat()
                except OSError:  # a link to nothing, or gone meanwhile
                    continue
                found[str(path.relative_to(self._root))] = [status.st_size, status.st_mtime_ns]
        return found
