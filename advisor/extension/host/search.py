"""What lies at a path: each profile in it once, with the reader that is surest of it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError

#: How far below a directory profiles are looked for, and at how many files and directories at most.
DEPTH: Final = 6
MOST: Final = 20_000
#: How sure a reader must be of a directory to read it; of a part of a profile it is less.
PROFILE: Final = 0.5

#: Asks readers, all of them or those of the given names, who recognizes a path and how sure (0 to 1); the surest first.
Sniff = Callable[[Path, "Collection[str] | None"], tuple[tuple[str, float], ...]]


@dataclass(frozen=True, slots=True)
class FoundProfile:
    """A profile that was found: a file or directory, and the name of the reader to read it with."""

    path: Path
    reader: str


class ProfileSearch:
    """Looks through a directory once; ``seen`` counts the entries that were looked at."""

    def __init__(self, sniff: Sniff) -> None:
        self._sniff = sniff
        self.seen = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the search ended before it had covered everything."""
        return self.seen > MOST

    def find_profiles(self, path: Path, taken: frozenset[str] = frozenset(), depth: int = 0) -> Iterator[FoundProfile]:
        """Yield the profiles at ``path``.

        A reader that takes a directory as one profile (``taken``) reads everything of its format in it, and what it is
        less than sure of, file or folder, is part of that; other readers may have files there as well.
        """
        self.seen += 1
        folder = path.is_dir()
        own = self._sniff(path, taken) if taken else ()
        if own and (not folder or all(sure < PROFILE for _, sure in own)):
            return
        least = PROFILE if folder else 0.0
        claims = tuple(reader for reader, sure in self._sniff(path, None) if reader not in taken and sure >= least)
        if not folder:
            yield from (FoundProfile(path, reader) for reader in claims[:1])
            return
        yield from (FoundProfile(path, reader) for reader in claims)
        for entry in _list_entries(path) if depth < DEPTH else ():
            if self.is_exhausted:
                return
            yield from self.find_profiles(entry, taken.union(claims), depth + 1)


def _list_entries(folder: Path) -> list[Path]:
    """Return the directories and the files that hold anything in ``folder``, by name; no hidden and no linked ones."""
    try:
        with os.scandir(folder) as entries:
            found = [
                Path(entry.path) for entry in entries if not entry.name.startswith(".") and _is_worth_reading(entry)
            ]
    except OSError:
        return []
    return sorted(found)


def _is_worth_reading(entry: os.DirEntry[str]) -> bool:
    try:
        if entry.is_dir(follow_symlinks=False):
            return True
        return entry.is_file() and entry.stat().st_size > 0 and os.access(entry.path, os.R_OK)
    except OSError:
        return False


def refuse_unreadable(path: Path) -> None:
    """Raise ``InputError`` for what is neither a file nor a directory, or may not be read."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
    except ValueError as error:  # what Python says of it differs from version to version
        raise InputError(path, "no file has such a name: it holds a null byte") from error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(path, "is neither a file nor a directory")
    if not os.access(path, os.R_OK):
        denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        raise InputError(path, f"cannot be read: {denied.strerror}") from denied
