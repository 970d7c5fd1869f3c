"""Results kept in the user's cache directory: as JSON, under a key, with the state that they depend on.

Nothing that is kept is needed: what does not fit any more, is damaged, or can't be written is found out again.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal
from zlib import crc32

from advisor.support.private_files import open_private_file

#: The variable that names each folder on Linux, and where it is otherwise (XDG Base Directory Specification 0.8).
_XDG: Final = {
    "cache": ("XDG_CACHE_HOME", "~/.cache"),
    "data": ("XDG_DATA_HOME", "~/.local/share"),
    "state": ("XDG_STATE_HOME", "~/.local/state"),
}


def load_cached(kind: str, key: object, state: object) -> object:
    """Return the cached content of a ``kind`` under a ``key``; None if there is none, or its state differs."""
    try:
        head, check, body = _read_own_file(_cache_path(kind, key)).split(b"\n", 2)
        if head != _header_line(key, state) or int(check) != crc32(body):
            return None
        found: object = json.loads(body)
    except (OSError, ValueError, RecursionError):
        return None
    return found


def _read_own_file(path: Path) -> bytes:
    """Return the content of a file that only the user can have written: it decides which code is loaded."""
    with open(open_private_file(path, os.O_RDONLY), "rb") as file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError
        return file.read()


def store_cached(kind: str, key: object, state: object, content: object) -> None:
    """Cache ``content`` (numbers and texts in lists and dicts), replacing the previous content of the key."""
    from advisor.support.atomic_write import atomic_write

    place, body = _cache_path(kind, key), json.dumps(content).encode()
    with suppress(OSError):  # a home that can't be written
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with atomic_write(place) as partial, open(open_private_file(partial, made), "wb") as file:
            file.write(b"%b\n%d\n%b" % (_header_line(key, state), crc32(body), body))


def change_time_ns(path: str) -> int:
    """Return when a file or directory changed, nanoseconds; 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return 0


def _header_line(key: object, state: object) -> bytes:
    return json.dumps([key, state]).encode()


def _cache_path(kind: str, key: object) -> Path:
    folder = user_folder("XDG_CACHE_HOME", "~/.cache")
    return folder / f"{kind}-{crc32(json.dumps(key).encode()):08x}.json"


def user_folder(variable: str, usual: str) -> Path:
    """Return the user's own directory of gapwatch, below what an environment variable names or else ``usual``.

    For a user without a home, as in a container under a foreign number, one that can neither be read nor made.
    """
    above = os.path.expanduser(os.environ.get(variable) or usual)
    return Path(above if os.path.isabs(above) else os.devnull, "gapwatch")


def system_folder(kind: Literal["cache", "data", "state"]) -> Path:
    """Return where this system keeps such files of gapwatch for the user; as ``user_folder`` for one without a home."""
    if os.uname().sysname == "Linux":
        return user_folder(*_XDG[kind])
    import platformdirs

    made = {
        "cache": platformdirs.user_cache_path,
        "data": platformdirs.user_data_path,
        "state": platformdirs.user_state_path,
    }
    with suppress(RuntimeError):  # older versions return a relative path instead
        found = made[kind]("gapwatch")
        if found.is_absolute():
            return found
    return Path(os.devnull, "gapwatch")
