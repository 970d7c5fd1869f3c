"""The process that runs libotf2: writes what it reads as frames to its standard output; standard library only.

libotf2 trusts its input and takes the process down on some damaged traces; this process may die.
A frame is a letter, the length of its payload (8 bytes) and the payload: ``D`` ``Header`` (JSON);
then, after the wanted locations came in as a line of JSON, for each of them ``L`` (JSON: id), ``R`` rows of
``otf2_events.ROW`` and ``N`` (JSON: records read); ``Z`` the end (JSON: how many of each of ``otf2_events.COUNTED``),
or ``E`` an error (JSON: file, reason, place).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypedDict

from advisor.readers import otf2_definitions
from advisor.readers.otf2_events import COUNTED, EVENTS, PlainRows
from advisor.readers.otf2_library import SUCCESS, Library, LibraryError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Records read in one go; bounds the memory of this process.
BATCH = 1 << 14
#: What this process may take: damaged definitions can ask for anything.
MEMORY = 4 << 30
HEADER = struct.Struct("=cQ")


_UNCOMPRESSED = 1


class Header(TypedDict):
    """What is known before the events: definitions, how many were read and are declared, and of the files."""

    definitions: otf2_definitions.Definitions
    read: int
    declared: int
    creator: str
    chunk: int
    compressed: bool


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

    def __init__(self, library: Library, anchor: Path, output: BinaryIO) -> None:
        self.library = library
        self.anchor = anchor
        self.output = output
        reader = library.handle("Reader_Open", os.fsencode(anchor))
        if reader is None:
            raise Damaged(str(anchor), _reason(library), None)
        self.reader = reader
        library.must("Reader_SetSerialCollectiveCallbacks", reader)

    def definitions(self) -> None:
        """Write the global definitions."""
        try:
            definitions, count = otf2_definitions.read(self.library, self.reader)
        except LibraryError as error:
            raise Damaged(str(self.anchor.with_suffix(".def")), f"cannot be read: {error}", None) from error
        chunk, _ = self.library.numbers("Reader_GetChunkSize", self.reader, "QQ")
        header: Header = {
            "definitions": definitions,
            "read": count,
            "declared": self.library.numbers("Reader_GetNumberOfGlobalDefinitions", self.reader, "Q")[0],
            "creator": self.library.text("Reader_GetCreator", self.reader),
            "chunk": chunk,
            "compressed": self.library.numbers("Reader_GetCompression", self.reader, "B")[0] != _UNCOMPRESSED,
        }
        tell(self.output, b"D", header)
        self.output.flush()

    def locations(self, ids: list[int], rows: Rows) -> None:
        """Write the events of the locations ``ids``, collecting them in ``rows``."""
        for location in ids:
            self.library.must("Reader_SelectLocation", self.reader, ctypes.c_uint64(location))
        mapped = self.library.call("Reader_OpenDefFiles", self.reader) == SUCCESS
        self.library.must("Reader_OpenEvtFiles", self.reader)
        callbacks = self._callbacks(rows)
        for location in ids:
            tell(self.output, b"L", location)
            if mapped:
                self._read_mapping(location)
            records = self._read_events(location, rows, callbacks)
            tell(self.output, b"N", records)

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
        count = ctypes.c_uint64()
        if self.library.call("Reader_ReadAllLocalDefinitions", self.reader, definitions, ctypes.byref(count)):
            raise self._damaged(location, ".def", None)
        self.library.must("Reader_CloseDefReader", self.reader, definitions)

    def _read_events(self, location: int, rows: Rows, callbacks: int | None) -> int:
        events = self.library.handle("Reader_GetEvtReader", self.reader, ctypes.c_uint64(location))
        if events is None:
            raise self._damaged(location, ".evt", None)
        self.library.must("Reader_RegisterEvtCallbacks", self.reader, events, callbacks, rows.data)
        total, count = 0, ctypes.c_uint64(BATCH)
        arguments = (self.reader, events, ctypes.c_uint64(BATCH), ctypes.byref(count))
        while count.value == BATCH:
            code = self.library.call("Reader_ReadLocalEvents", *arguments)
            total += count.value
            send(self.output, b"R", rows.take())
            if code != SUCCESS:
                raise self._damaged(location, ".evt", f"event {total + 1}")
        self.library.must("Reader_CloseEvtReader", self.reader, events)
        return total

    def _damaged(self, location: int, suffix: str, place: str | None) -> Damaged:
        file = self.anchor.with_suffix("") / f"{location}{suffix}"
        return Damaged(str(file), _reason(self.library), place)


def send(output: BinaryIO, letter: bytes, payload: bytes | bytearray | memoryview) -> None:
    """Write one frame."""
    output.write(HEADER.pack(letter, len(payload)))
    output.write(payload)


def tell(output: BinaryIO, letter: bytes, values: object) -> None:
    """Write one frame of JSON."""
    send(output, letter, json.dumps(values).encode())


def main(arguments: dict[str, Any]) -> None:
    """Read the archive ``anchor`` with the shared library ``library`` and write the frames."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    output = sys.stdout.buffer
    try:
        library = Library(arguments["library"])
        archive = Archive(library, Path(arguments["anchor"]), output)
        archive.definitions()
        rows = _compiled() if arguments["compiled"] else PlainRows(library)
        archive.locations(json.loads(sys.stdin.readline()), rows)
        tell(output, b"Z", rows.counts)
    except Damaged as error:
        tell(output, b"E", error.args)
    except LibraryError as error:
        tell(output, b"E", (arguments["anchor"], f"cannot be read: {error}", None))
    output.flush()
    os._exit(0)  # the library's own clean-up of a damaged archive may crash or hang


def _reason(library: Library) -> str:
    return f"cannot be read: {library.reason('libotf2 gives no reason')}"


def _compiled() -> Rows:
    from advisor.readers import otf2_compiled

    otf2_compiled.keep_compiled()
    return otf2_compiled.CompiledRows(BATCH)
