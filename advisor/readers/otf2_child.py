"""The process that runs libotf2: writes what it reads as frames to its standard output; standard library only.

libotf2 trusts its input and takes the process down on some damaged traces; this process may die.
A frame is a letter, the length of its payload (8 bytes) and the payload: ``D`` definitions and creator (JSON);
then, after the wanted locations came in as a line of JSON, for each of them ``L`` (JSON: id), ``R`` rows of
``otf2_events.ROW`` and ``N`` (JSON: records read); ``Z`` the end, or ``E`` an error (JSON: file, reason, place).
"""

from __future__ import annotations

import ctypes
import json
import resource
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

from advisor.readers import otf2_definitions
from advisor.readers.otf2_events import EVENTS, LEADING, appender
from advisor.readers.otf2_library import SUCCESS, Library, LibraryError

#: Records read in one go; bounds the memory of this process.
BATCH = 1 << 16
HEADER = struct.Struct("=cQ")


class Damaged(Exception):
    """The archive cannot be read: file, reason, place (or None)."""


class Archive:
    """An open archive, written out frame by frame."""

    def __init__(self, library: Library, anchor: Path, output: BinaryIO) -> None:
        self.library = library
        self.anchor = anchor
        self.output = output
        reader = library.handle("Reader_Open", str(anchor).encode())
        if reader is None:
            raise Damaged(str(anchor), library.reason("Reader_Open"), None)
        self.reader = reader
        library.must("Reader_SetSerialCollectiveCallbacks", reader)

    def definitions(self) -> None:
        """Write the global definitions."""
        try:
            definitions = otf2_definitions.read(self.library, self.reader)
        except LibraryError as error:
            raise Damaged(str(self.anchor.with_suffix(".def")), str(error), None) from error
        creator = self.library.text("Reader_GetCreator", self.reader)
        tell(self.output, b"D", {"definitions": definitions, "creator": creator})
        self.output.flush()

    def locations(self, ids: list[int]) -> None:
        """Write the events of the locations ``ids``."""
        for location in ids:
            self.library.must("Reader_SelectLocation", self.reader, ctypes.c_uint64(location))
        mapped = self.library.call("Reader_OpenDefFiles", self.reader) == SUCCESS
        self.library.must("Reader_OpenEvtFiles", self.reader)
        rows = bytearray()
        callbacks = self._callbacks(rows)
        for location in ids:
            tell(self.output, b"L", location)
            if mapped:
                self._read_mapping(location)
            records = self._read_events(location, rows, callbacks)
            tell(self.output, b"N", records)

    def _callbacks(self, rows: bytearray) -> int | None:
        callbacks = self.library.handle("EvtReaderCallbacks_New")
        for index, event in enumerate(EVENTS):
            pointer = self.library.callback(LEADING + event.arguments, appender(rows, index))
            self.library.must(f"EvtReaderCallbacks_Set{event.name}Callback", callbacks, pointer)
        return callbacks

    def _read_mapping(self, location: int) -> None:
        definitions = self.library.handle("Reader_GetDefReader", self.reader, ctypes.c_uint64(location))
        if definitions is None:
            return
        count = ctypes.c_uint64()
        if self.library.call("Reader_ReadAllLocalDefinitions", self.reader, definitions, ctypes.byref(count)):
            raise self._damaged(location, ".def", None)
        self.library.must("Reader_CloseDefReader", self.reader, definitions)

    def _read_events(self, location: int, rows: bytearray, callbacks: int | None) -> int:
        events = self.library.handle("Reader_GetEvtReader", self.reader, ctypes.c_uint64(location))
        if events is None:
            raise self._damaged(location, ".evt", None)
        self.library.must("Reader_RegisterEvtCallbacks", self.reader, events, callbacks, None)
        total, count = 0, ctypes.c_uint64(BATCH)
        arguments = (self.reader, events, ctypes.c_uint64(BATCH), ctypes.byref(count))
        while count.value == BATCH:
            code = self.library.call("Reader_ReadLocalEvents", *arguments)
            total += count.value
            send(self.output, b"R", rows)
            rows.clear()
            if code != SUCCESS:
                raise self._damaged(location, ".evt", f"event {total + 1}")
        self.library.must("Reader_CloseEvtReader", self.reader, events)
        return total

    def _damaged(self, location: int, suffix: str, place: str | None) -> Damaged:
        file = self.anchor.with_suffix("") / f"{location}{suffix}"
        return Damaged(str(file), self.library.reason("unreadable"), place)


def send(output: BinaryIO, letter: bytes, payload: bytes | bytearray) -> None:
    """Write one frame."""
    output.write(HEADER.pack(letter, len(payload)))
    output.write(payload)


def tell(output: BinaryIO, letter: bytes, values: object) -> None:
    """Write one frame of JSON."""
    send(output, letter, json.dumps(values).encode())


def main(arguments: dict[str, Any]) -> None:
    """Read the archive ``anchor`` with the shared library ``library`` and write the frames."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = sys.stdout.buffer
    try:
        archive = Archive(Library(arguments["library"]), Path(arguments["anchor"]), output)
        archive.definitions()
        archive.locations(json.loads(sys.stdin.readline()))
        tell(output, b"Z", None)
    except Damaged as error:
        tell(output, b"E", error.args)
    except LibraryError as error:
        tell(output, b"E", (arguments["anchor"], str(error), None))
    output.flush()
