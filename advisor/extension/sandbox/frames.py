"""JSON documents on a pipe: four bytes of length, most significant first, then the text."""

from __future__ import annotations

import json
import os
import select
import struct
from time import monotonic
from typing import Final

LENGTH: Final = struct.Struct(">I")
#: Longer documents are refused by who receives them.
MOST_BYTES: Final = 64 << 20

Document = dict[str, object]


class FrameError(Exception):
    """What came through the pipe is no frame."""


class LateError(FrameError):
    """No frame came in time."""


class EndedError(FrameError):
    """The other end is gone."""


def send_frame(descriptor: int, document: Document) -> None:
    """Write ``document``; raises ``OSError`` where nobody reads any more."""
    text = json.dumps(document).encode("ascii")
    rest = memoryview(LENGTH.pack(len(text)) + text)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def receive_frame(descriptor: int, seconds: float | None = None) -> Document:
    """Return the next document; raises ``FrameError``, also when it is not complete within ``seconds``."""
    end = None if seconds is None else monotonic() + seconds
    (length,) = LENGTH.unpack(_read_bytes(descriptor, LENGTH.size, end))
    if length > MOST_BYTES:
        raise FrameError(f"an answer of {length:,} bytes; at most {MOST_BYTES:,} are taken")
    try:
        document = json.loads(_read_bytes(descriptor, length, end))
    except (ValueError, RecursionError) as error:
        raise FrameError("an answer that is not JSON") from error
    if not isinstance(document, dict):
        raise FrameError("an answer that is not a JSON object")
    return document


def _read_bytes(descriptor: int, size: int, end: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if end is not None and not select.select([descriptor], [], [], max(end - monotonic(), 0.0))[0]:
            raise LateError("no answer in time")
        part = os.read(descriptor, min(size - len(parts), 1 << 16))
        if not part:
            raise EndedError("the process ended without an answer")
        parts += part
    return bytes(parts)
