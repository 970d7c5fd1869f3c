"""The process that runs libotf2: writes what it reads as frames to its standard output; standard library only.

libotf2 trusts its input and takes the process down on some damaged traces; this process may die.
A frame is a letter, the length of its payload (8 bytes) and the payload: ``D`` the ``Header``; then, after the wanted
locations came in, for each of them ``L`` (its id), ``R`` rows of ``events.ROW`` and ``N`` (records read);
``Z`` the end (how many of each of ``events.COUNTED``), or ``E`` an error (file, reason, place). All but rows
are marshalled: ``json`` would take as long to import as this process takes to start.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import struct
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypedDict

from advisor.readers.libotf2.definitions import Definitions
from advisor.readers.libotf2.definitions import read as read_definitions
from advisor.readers.libotf2.events import COUNTED, EVENTS, PlainRows
from advisor.readers.libotf2.library import BATCH, SUCCESS, Library, LibraryError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What this process may take: damaged definitions can ask for anything.
MEMORY = 4 << 30
HEADER = struct.Struct("=cQ")


#: What the two processes tell each other.
Message = dict[Any, Any] | list[Any] | tuple[Any, ...] | int | str | None
_UNCOMPRESSED = 1
_SMALLEST_CHUNK, _LARGEST_CHUNK = 1 << 18, 1 << 24


class Header(TypedDict):
    """What is known before the events: definitions, how many were read and are declared, and of the files."""

    definitions: Definitions
    read: int
    declared: int
    creator: str
    chunk: int


class Rows(Protocol):
    """Where callbacks put the rows of events: plain or compiled."""

    @property
    def data(self) -> object:
        """What the library hands to each callback."""

    @property
    def callbacks(self) -> Sequence[object]:
        """The callback of each of ``EVENTS``."""

    @property
    def counters(self) -> Sequence[object]:
        """The callback of each of ``COUNTED``."""

    @property
    def counts(self) -> Sequence[int]:
        """How many events of each of ``COUNTED`` have been read."""

    def take(self) -> bytearray | memoryview:
        """Return the rows since the last call, packed."""


class Damaged(Exception):
    """The archive cannot be read: file, reason, place (or None)."""


class Archive:
    """An open archive, written out frame by frame."""

    def __init__(self, library: Library, anchor: str, output: BinaryIO) -> None:
        self.library = library
        self.anchor = anchor
        self.output = output
        reader = library.handle("Reader_Open", os.fsencode(anchor))
        if reader is None:
            raise Damaged(anchor, f"cannot be read: {library.reason('unreadable')}", None)
        self.reader = reader
        library.must("Reader_SetSerialCollectiveCallbacks", reader)
        if library.numbers("Reader_GetCompression", reader, "B") != [_UNCOMPRESSED]:
            raise Damaged(anchor, "cannot be read: its files are compressed, which libotf2 does not support", None)
        self.chunk, definitions = library.numbers("Reader_GetChunkSize", reader, "QQ")
        for size in (self.chunk, definitions):
            if not _SMALLEST_CHUNK <= size <= _LARGEST_CHUNK:
                raise Damaged(anchor, f"damaged: chunks of {size} bytes are impossible", None)

    def definitions(self) -> None:
        """Write the global definitions."""
        [declared] = self.library.numbers("Reader_GetNumberOfGlobalDefinitions", self.reader, "Q")
        try:
            definitions, count = read_definitions(self.library, self.reader, declared)
        except LibraryError as error:
            raise Damaged(os.path.splitext(self.anchor)[0] + ".def", f"cannot be read: {error}", None) from error
        header: Header = {
            "definitions": definitions,
            "read": count,
            "declared": declared,
            "creator": self.library.text("Reader_GetCreator", self.reader),
            "chunk": self.chunk,
        }
        tell(self.output, b"D", {**header})
        self.output.flush()

    def locations(self, wanted: list[list[int]], rows: Rows) -> None:
        """Write the events of the ``wanted`` locations (id, most records), collecting them in ``rows``."""
        for location, _ in wanted:
            self.library.must("Reader_SelectLocation", self.reader, ctypes.c_uint64(location))
        mapped = self.library.call("Reader_OpenDefFiles", self.reader) == SUCCESS
        self.library.must("Reader_OpenEvtFiles", self.reader)
        callbacks = self._callbacks(rows)
        for location, most in wanted:
            tell(self.output, b"L", location)
            if mapped:
                self._read_mapping(location)
            tell(self.output, b"N", self._read_events(location, most, rows, callbacks))

    def _callbacks(self, rows: Rows) -> int | None:
        callbacks = self.library.handle("EvtReaderCallbacks_New")
        pointers = {event.name: pointer for event, pointer in zip(EVENTS, rows.callbacks, strict=True)}
        for (_, names), counter in zip(COUNTED, rows.counters, strict=True):
            pointers.update(dict.fromkeys(names, counter))  # a C callee may leave further arguments alone
        for name, pointer in pointers.items():
            self.library.must(f"EvtReaderCallbacks_Set{name}Callback", callbacks, pointer)
        return callbacks

    def _read_mapping(self, location: int) -> None:
        definitions = self.library.handle("Reader_GetDefReader", self.reader, ctypes.c_uint64(location))
        if definitions is None:
            return
        most = os.path.getsize(self._file(location, ".def"))
        try:
            list(self.library.records("Reader_ReadLocalDefinitions", self.reader, definitions, most))
        except LibraryError as error:
            raise self._damaged(location, ".def", str(error)) from error
        self.library.must("Reader_CloseDefReader", self.reader, definitions)

    def _read_events(self, location: int, most: int, rows: Rows, callbacks: int | None) -> int:
        events = self.library.handle("Reader_GetEvtReader", self.reader, ctypes.c_uint64(location))
        if events is None:
            raise self._damaged(location, ".evt", self.library.reason("unreadable"))
        self.library.must("Reader_RegisterEvtCallbacks", self.reader, events, callbacks, rows.data)
        total = 0
        try:
            for read in self.library.records("Reader_ReadLocalEvents", self.reader, events, most):
                total = read
                send(self.output, b"R", rows.take())
        except LibraryError as error:
            raise self._damaged(location, ".evt", str(error), f"event {total + 1}") from error
        self.library.must("Reader_CloseEvtReader", self.reader, events)
        return total

    def _file(self, location: int, suffix: str) -> str:
        return os.path.join(os.path.splitext(self.anchor)[0], f"{location}{suffix}")

    def _damaged(self, location: int, suffix: str, reason: str, place: str | None = None) -> Damaged:
        return Damaged(self._file(location, suffix), f"cannot be read: {reason}", place)


def send(output: BinaryIO, letter: bytes, payload: bytes | bytearray | memoryview) -> None:
    """Write one frame."""
    output.write(HEADER.pack(letter, len(payload)))
    output.write(payload)


def tell(output: BinaryIO, letter: bytes, values: Message) -> None:
    """Write one frame of plain values."""
    send(output, letter, marshal.dumps(values))


def main(arguments: dict[str, Any]) -> None:
    """Read the archive ``anchor`` with the shared library ``library`` and write the frames."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, MEMORY)
    output = sys.stdout.buffer
    try:
        library = Library(arguments["library"])
        archive = Archive(library, arguments["anchor"], output)
        archive.definitions()
        rows = _compiled() if arguments["compiled"] else PlainRows(library)
        archive.locations(marshal.load(sys.stdin.buffer), rows)
        tell(output, b"Z", list(rows.counts))
    except Damaged as error:
        tell(output, b"E", error.args)
    except LibraryError as error:
        tell(output, b"E", (arguments["anchor"], f"cannot be read: {error}", None))
    output.flush()
    os._exit(0)  # the library's own clean-up of a damaged archive may crash or hang


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (least, least))


def _compiled() -> Rows:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # the buffers of a hundred threads that have nothing to do would exceed the limit
    from advisor.compiling import keep_compiled
    from advisor.readers.libotf2 import compiled

    keep_compiled()
    return compiled.CompiledRows(BATCH)
