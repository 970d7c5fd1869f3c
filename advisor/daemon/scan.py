"""One scan of a directory tree: every file with its signature; memory is bounded by one directory."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from advisor.history.file_states import FileSignature

_KINDS = (
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)
_GONE = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class FolderScan:
    """The files of one directory by name; ``special`` says of those that are no files what they are.

    Of ``unclear`` names the system could not say what they are; where the directory itself could not be read that is
    true of all names in and below it, and ``closed`` says so.
    """

    path: Path
    files: dict[bytes, FileSignature] = field(default_factory=dict)
    special: dict[bytes, tuple[FileSignature, str]] = field(default_factory=dict)
    unclear: set[bytes] = field(default_factory=set)
    closed: bool = False


def walk_folders(root: Path, without: Collection[Path] = ()) -> Iterator[FolderScan]:
    """Yield the directories at and below ``root``, except hidden ones and those ``without``; each only once.

    Links to directories are not followed. What vanishes while looking is left out; what is there and cannot be looked
    at (stale handles, errors of the disk, no right to enter) is told as it is: it is not gone.
    """
    seen: set[tuple[int, int]] = set()
    rest = [root]
    left_out = {path.resolve() for path in without}
    while rest:
        path = rest.pop()
        try:
            status = path.stat()
            if (status.st_dev, status.st_ino) in seen or path.resolve() in left_out:
                continue
            seen.add((status.st_dev, status.st_ino))
            folder, inside = _scan_folder(path)
        except OSError as error:
            if error.errno not in _GONE:
                yield FolderScan(path, closed=True)
            continue
        yield folder
        rest += sorted(inside, reverse=True)


def list_folder_files(path: Path) -> FolderScan:
    """Return the files of a directory, without those in directories in it; one that is not there is ``closed``, too."""
    try:
        return _scan_folder(path)[0]
    except OSError:
        return FolderScan(path, closed=True)


def list_named_files(path: Path, names: Collection[bytes]) -> FolderScan:
    """Return the files of these names in a directory, as ``list_folder_files`` does; nothing else is examined."""
    folder = FolderScan(path, closed=not path.is_dir())
    for name in () if folder.closed else names:
        if name.startswith(b"."):
            continue
        place = os.path.join(os.fsencode(path), name)
        try:
            if not os.path.isdir(place):
                _record_status(folder, name, os.stat(place))
        except OSError as error:
            if error.errno not in _GONE:
                folder.unclear.add(name)
    return folder


def _scan_folder(path: Path) -> tuple[FolderScan, list[Path]]:
    """Return the files of a directory and the directories in it."""
    folder, inside = FolderScan(path), []
    with os.scandir(os.fsencode(path)) as entries:
        for entry in entries:
            if entry.name.startswith(b"."):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    inside.append(path / os.fsdecode(entry.name))
                elif not (entry.is_symlink() and entry.is_dir()):
                    _record_status(folder, entry.name, entry.stat())
            except OSError as error:
                if error.errno not in _GONE:
                    folder.unclear.add(entry.name)
    return folder, inside


def _record_status(folder: FolderScan, name: bytes, status: os.stat_result) -> None:
    signature = FileSignature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if stat.S_ISREG(status.st_mode):
        folder.files[name] = signature
    else:
        kind = next((words for test, words in _KINDS if test(status.st_mode)), "is not a file")
        folder.special[name] = signature, kind
