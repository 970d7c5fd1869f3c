"""Files that are read whole, as far as they are no larger than such a file can be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol

from advisor.model.errors import InputError

_PART_B: Final = 1 << 20


class _Stream(Protocol):
    """A file, packed or not."""

    def read(self, size: int, /) -> bytes:
        """Return the next ``size`` bytes, or fewer at the end."""


def read_stream(stream: _Stream, limit: int) -> bytes:
    """Return the content of a stream; if it exceeds ``limit``, one byte more than that, as a sign.

    ``stream.read(limit)`` would take room for so many bytes first, which a process of little memory does not have.
    """
    parts = []
    left = limit + 1
    while left and (part := stream.read(min(left, _PART_B))):
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_limited(path: Path, limit: int) -> bytes:
    """Return a file's content; raises ``InputError`` where it can't be read, or is larger than ``limit`` bytes."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size  # 0 for a pipe
            content = read_stream(stream, limit) if size <= limit else b""
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
    if max(size, len(content)) > limit:
        raise InputError(path, f"is larger than {limit:,} bytes, the limit for this kind of file")
    return content
