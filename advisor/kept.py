"""What was found out once, kept in the user's cache directory: as JSON, under a key, with the state it was found in.

Nothing that is kept is needed: what does not fit any more, is damaged, or can't be written is found out again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from advisor.whole_files import replacing


def read(kind: str, key: object, state: object) -> object:
    """Return what was kept of a ``kind`` under a ``key``; None if there is nothing, or it was kept in another state."""
    try:
        head, check, body = _place(kind, key).read_bytes().split(b"\n", 2)
        if head != _head(key, state) or int(check) != crc32(body):
            return None
        found: object = json.loads(body)
    except (OSError, ValueError, RecursionError):
        return None
    return found


def keep(kind: str, key: object, state: object, content: object) -> None:
    """Keep ``content``, numbers and texts in lists and dicts, in the place of what was kept under the key before."""
    place, body = _place(kind, key), json.dumps(content).encode()
    with suppress(OSError):  # a home that can't be written
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(place) as partial:
            partial.write_bytes(b"%b\n%d\n%b" % (_head(key, state), crc32(body), body))


def changed_ns(path: str) -> int:
    """Return when a file or directory changed, nanoseconds; 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return 0


def _head(key: object, state: object) -> bytes:
    return json.dumps([key, state]).encode()


def _place(kind: str, key: object) -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(folder, "gapwatch", f"{kind}-{crc32(json.dumps(key).encode()):08x}.json")
