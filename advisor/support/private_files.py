"""Private files of the user: those of others are not trusted, links are not followed, and writes are durable.

Among them are files with secrets, which nobody else may read. Each function raises ``OSError`` with the path and a
reason in words.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from advisor.model.errors import UsageError


def make_private_folder(folder: Path) -> None:
    """Make a directory that only the user may enter, also where it was there with a wider mode.

    It may be reached through links; what they lead to must be the user's own.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_foreign(folder, folder.stat())
    if stat.S_IMODE(folder.stat().st_mode) != 0o700:
        folder.chmod(0o700)
    for path in missing:
        sync_folder(path.parent)


def open_private_file(path: Path, flags: int) -> int:
    """Return a descriptor of a regular file of the user, made with mode 0600 where ``flags`` say so.

    No link is followed, and a pipe or a device in its place is refused without waiting for it.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise PermissionError(errno.EPERM, "is a symbolic link; remove it", str(path)) from error
    try:
        refuse_foreign_file(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def refuse_foreign_file(path: Path, status: os.stat_result) -> None:
    """Refuse what is no regular file of the user; ``status`` is that of the file itself, not of a link's target."""
    if not stat.S_ISREG(status.st_mode):
        what = "is a symbolic link; remove it" if stat.S_ISLNK(status.st_mode) else "is not a regular file; remove it"
        raise PermissionError(errno.EPERM, what, str(path))
    _refuse_foreign(path, status)


def _refuse_foreign(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise PermissionError(
            errno.EPERM, f"belongs to user {status.st_uid}, not to you (user {os.geteuid()})", str(path)
        )


def sync_folder(folder: Path) -> None:
    """Wait until the names in a directory are on the disk, where the file system can say so."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(descriptor)


def read_secret(file: Path) -> str:
    """Return the text of a file, stripped; raises ``UsageError`` where others may read it, or it is no text."""
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or 'is not text'}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{file}: others may read it; chmod 600 it")
    return text
