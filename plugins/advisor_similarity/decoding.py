"""Answers the tracers: the steps of the instructions that they meet, queried once for each sequence of bytes.

And which files and functions are of interest, asked once for each file (``regions``).
"""

from __future__ import annotations

import hashlib
import os
import selectors
import socket
import struct
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import msgspec

from advisor_similarity.steps import Template, encode_template

if TYPE_CHECKING:
    from types import TracebackType

    from advisor_similarity.instructions import Decoder
    from advisor_similarity.regions import Region

_CODE: Final = 16
_MOST_CODES: Final = 512
_LONGEST_PATH: Final = 4096
_COUNT: Final = struct.Struct("<I")
_HEAD: Final = struct.Struct("<II")
_STEP: Final = 16
_MOST_KEPT: Final = 100_000


class DecodingCache:
    """The templates met so far, numbered in the order of their first appearance."""

    def __init__(self, decoder: Decoder, kept: Path | None = None) -> None:
        self._decoder = decoder
        self._kept = kept
        self._seen_before = _load_templates(kept)
        self._numbers: dict[bytes, int] = {}
        self.templates: list[Template] = []
        self.wired: list[bytes] = []
        self.codes: list[bytes] = []

    def template_number(self, code: bytes) -> int:
        """Return the number of the template for the bytes of an instruction."""
        known = self._numbers.get(code)
        if known is not None:
            return known
        template = self._seen_before.get(code) or self._decoder.decode_instruction(code)
        self._numbers[code] = len(self.templates)
        self.templates.append(template)
        self.codes.append(code)
        self.wired.append(encode_template(template))
        return len(self.templates) - 1

    def write_cache(self) -> None:
        """Write what was decoded to the file, for the next run; a file that can't be written is no loss."""
        new = {code: self.templates[number] for code, number in self._numbers.items() if code not in self._seen_before}
        if self._kept is None or not new or len(self._seen_before) + len(new) > _MOST_KEPT:
            return
        part = self._kept.with_name(f"{self._kept.name}.{os.getpid()}")
        try:
            part.write_bytes(msgspec.msgpack.encode(self._seen_before | new))
            part.replace(self._kept)
        except OSError:
            part.unlink(missing_ok=True)

    def encode_answer(self, code: bytes) -> bytes:
        """Return number, count of steps and steps, as the tracer reads them."""
        number = self.template_number(code)
        steps = self.wired[number]
        return _HEAD.pack(number, len(steps) // _STEP) + steps


def _load_templates(kept: Path | None) -> dict[bytes, Template]:
    """Return what an earlier run decoded; nothing where that can't be read."""
    try:
        return msgspec.msgpack.decode(kept.read_bytes(), type=dict[bytes, Template]) if kept else {}
    except (OSError, msgspec.MsgspecError):
        return {}


def cache_file(cache: Path, architecture: str, follow_stack: bool) -> Path:
    """Return the file for decoded instructions, another one for each version of what decodes them."""
    folder = resources.files("advisor_similarity")
    sources = [folder / "steps.py", *(folder / "instructions").iterdir()]
    digest = hashlib.sha256(version("capstone").encode())
    for source in sorted(sources, key=lambda entry: entry.name):
        digest.update(source.read_bytes() if source.name.endswith(".py") else b"")
    return cache / f"instructions-{architecture}-{'' if follow_stack else 'stackless-'}{digest.hexdigest()[:16]}"


class DecodingServer:
    """Listens on a socket in the file system for the tracers of one run."""

    def __init__(self, path: Path, decodings: DecodingCache, region: Region) -> None:
        self._decodings = decodings
        self._region = region
        self._selector = selectors.DefaultSelector()
        self._buffers: dict[socket.socket, bytearray] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(128)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in list(self._buffers):
            self._close_connection(connection)
        self._selector.close()
        self._listener.close()

    @property
    def connection_count(self) -> int:
        """How many processes hold a connection."""
        return len(self._buffers)

    def serve_requests(self, timeout_s: float) -> None:
        """Answer requests; return after ``timeout_s`` without one, or after a round of answers."""
        for key, _ in self._selector.select(timeout_s):
            source = key.fileobj
            if source is self._listener:
                connection, _ = self._listener.accept()
                self._buffers[connection] = bytearray()
                self._selector.register(connection, selectors.EVENT_READ)
            elif isinstance(source, socket.socket):
                self._read_requests(source)

    def _read_requests(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._close_connection(connection)
            return
        buffer = self._buffers[connection]
        buffer += data
        while (asked := _take_request(buffer)) is not None:
            try:
                connection.sendall(self._answer_request(asked))
            except OSError:
                self._close_connection(connection)
                return

    def _answer_request(self, asked: list[bytes] | bytes) -> bytes:
        if isinstance(asked, bytes):
            skipped, entries = self._region.judge_file(os.fsdecode(asked))
            return _HEAD.pack(skipped, len(entries)) + struct.pack(f"<{len(entries)}Q", *entries)
        return b"".join(map(self._decodings.encode_answer, asked))

    def _close_connection(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._buffers[connection]
        connection.close()


def _take_request(buffer: bytearray) -> list[bytes] | bytes | None:
    """Take one whole question off the buffer: the bytes of each instruction, or the path of a file."""
    if len(buffer) < _COUNT.size:
        return None
    (count,) = _COUNT.unpack_from(buffer)
    if not count:
        return _take_path(buffer)
    size = _COUNT.size + _CODE * min(count, _MOST_CODES)
    if len(buffer) < size:
        return None
    records = bytes(buffer[_COUNT.size : size])
    del buffer[:size]
    return [record[1 : 1 + record[0]] for record in (records[at : at + _CODE] for at in range(0, len(records), _CODE))]


def _take_path(buffer: bytearray) -> bytes | None:
    if len(buffer) < _HEAD.size:
        return None
    size = _HEAD.size + min(_HEAD.unpack_from(buffer)[1], _LONGEST_PATH)
    if len(buffer) < size:
        return None
    path = bytes(buffer[_HEAD.size : size])
    del buffer[:size]
    return path
