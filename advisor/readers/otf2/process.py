"""Runs ``libotf2.child`` and hands over what it reads; whatever goes wrong in there becomes an ``InputError``."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import marshal
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from advisor.errors import InputError
from advisor.readers.libotf2.child import HEADER, Header, Message
from advisor.readers.otf2 import archive
from advisor.readers.otf2.contents import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


#: Takes this very package, even where another one of its name comes first on the path.
_START = (
    "import marshal, sys; arguments = marshal.load(sys.stdin.buffer); sys.path[:] = arguments['root']; import advisor; "
    "sys.path[:] = arguments['path']; from advisor.readers.libotf2.child import main; main(arguments)"
)
#: Seconds without a sign of life after which the reading process is given up.
SILENCE_S = 60.0
_PIPE_BYTES = 1 << 20


class Reading:
    """A reading process; as a context manager it never outlives its block."""

    def __init__(self, anchor: Path, compiled: bool) -> None:
        self._file = anchor
        arguments = {
            "root": [str(Path(__file__).parents[3])],
            "path": sys.path,
            "anchor": str(anchor),
            "library": _library(),
            "compiled": compiled,
        }
        command = [sys.executable, "-I", "-S", "-c", _START]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _widen(_open(self._child.stdout))
        self._send(arguments)
        self._anchor = anchor
        self._buffer = memoryview(bytearray(1 << 12))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
            with contextlib.suppress(BrokenPipeError):  # what was not sent is no longer wanted
                _open(stream).close()

    def header(self) -> Header:
        """Return the definitions and what the anchor file says; raises ``InputError`` where some are missing."""
        self._file = self._anchor.with_suffix(".def")
        _, payload = self._frame()
        header: Header = marshal.loads(payload)
        if header["read"] < header["declared"]:
            reason = f"holds {header['read']} of {header['declared']} definitions: the file is damaged"
            raise InputError(self._file, reason)
        return header

    def locations(self, wanted: Mapping[int, int]) -> Iterator[tuple[bytes, memoryview]]:
        """Yield letter and payload of the frames of the ``wanted`` locations (id: most records), one after the other.

        A payload is valid until the next one is asked for.
        """
        self._send(list(wanted.items()))
        while True:
            letter, payload = self._frame()
            if letter == b"L":
                self._file = archive.events(self._anchor, marshal.loads(payload))
            yield letter, payload
            if letter == b"Z":
                return

    def _send(self, values: Message) -> None:
        source = _open(self._child.stdin)
        try:
            source.write(marshal.dumps(values))
            source.flush()
        except BrokenPipeError as error:
            raise InputError(self._file, self._obituary()) from error

    def _frame(self) -> tuple[bytes, memoryview]:
        letter, length = HEADER.unpack(self._bytes(HEADER.size))
        payload = self._bytes(length)
        if letter == b"E":
            file, reason, place = marshal.loads(payload)
            raise InputError(file, printable(reason), place)
        return letter, payload

    def _bytes(self, length: int) -> memoryview:
        source = _open(self._child.stdout)
        if length > len(self._buffer):
            self._buffer = memoryview(bytearray(length))
        view = data = self._buffer[:length]
        poll = select.poll()
        poll.register(source, select.POLLIN)
        while view:
            if not poll.poll(SILENCE_S * 1000):
                raise InputError(self._file, f"libotf2 did not get on for {SILENCE_S:.0f} s: the file is damaged")
            count = os.readv(source.fileno(), [view])
            if not count:
                raise InputError(self._file, self._obituary())
            view = view[count:]
        return data

    def _obituary(self) -> str:
        code = self._child.wait()
        if code < 0:
            return f"libotf2 crashed ({signal.Signals(-code).name}): the file is damaged"
        lines = _open(self._child.stderr).read().decode("utf-8", "replace").strip().splitlines()
        return f"the reading process failed: {printable(lines[-1]) if lines else f'exit code {code}'}"


def _open(stream: IO[Any] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("the reading process was started without pipes")
    return stream


def _widen(stream: IO[bytes]) -> None:
    """Ask for a larger pipe: fewer switches between the two processes (Linux only)."""
    import fcntl

    request = getattr(fcntl, "F_SETPIPE_SZ", None)
    if request is not None:
        try:
            fcntl.fcntl(stream, request, _PIPE_BYTES)
        except OSError:  # the system's limit is lower
            return


def _library() -> str:
    """Return the path of the ``otf2`` wheel's shared library, without importing the package."""
    spec = importlib.util.find_spec("_otf2")
    for folder in spec.submodule_search_locations or () if spec else ():
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            candidate = Path(folder, f"_otf2{suffix}")
            if candidate.is_file():
                return str(candidate)
    raise ModuleNotFoundError("the otf2 distribution is not installed", name="_otf2")
