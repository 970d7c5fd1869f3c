"""The writer of a history: one process, whose lock ends with it, however it ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Final

from advisor.model.errors import StoreError
from advisor.support.private_files import open_private_file

LOCK: Final = "lock"
#: Whoever asks who writes holds the lock for a moment; so often, so many seconds apart, it is tried again.
_TRIES: Final = 10
_PAUSE_S: Final = 0.05


def find_writer(folder: Path) -> str | None:
    """Return the writer of the history, None without one."""
    try:
        descriptor = open_private_file(folder / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "somebody"
    finally:
        os.close(descriptor)
    return None


def acquire_lock(folder: Path) -> int:
    """Return the open lock file, which says who holds it; raises ``StoreError`` where another process does."""
    descriptor = open_private_file(folder / LOCK, os.O_RDWR | os.O_CREAT)
    for tries in range(_TRIES, -1, -1):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if tries:
                sleep(_PAUSE_S)
                continue
            holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
            os.close(descriptor)
            raise StoreError(f"{folder} is in use by another gapwatch{f' ({holder})' if holder else ''}") from None
        except OSError as error:
            os.close(descriptor)
            raise StoreError(f"{folder} cannot be locked ({error.strerror}): choose another with --state") from error
    with suppress(OSError):  # a full disk; the lock holds all the same
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)
    return descriptor
