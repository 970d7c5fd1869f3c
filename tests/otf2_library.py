"""What libotf2 says about archives, by the low-level module of the ``otf2`` wheel (CPython 3.10 and 3.11, x86-64)."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import _otf2
from _otf2.Config import conf

if TYPE_CHECKING:
    from pathlib import Path

callbacks: Any = import_module("_otf2.EvtReaderCallbacks")

#: The callback types of all events by name: their arguments are location, time, position, data, attributes, fields.
_PREFIX = "_EvtReaderCallback_FP_"
TYPES = {name.removeprefix(_PREFIX): kind for name, kind in vars(callbacks).items() if name.startswith(_PREFIX)}
_LEADING = 5


class LibraryEvent(NamedTuple):
    """An event: its name, its time in ticks, its fields as plain numbers (pointers are left out)."""

    name: str
    time: int
    fields: tuple[int, ...]


def fields_of(name: str) -> list[Any]:
    """Return the C types of the fields of an event."""
    return list(TYPES[name]._argtypes_[_LEADING:])


def read_events(anchor: Path, locations: list[int]) -> dict[int, list[LibraryEvent]]:
    """Return the events of the locations as libotf2 hands them out, local ids and clocks applied."""
    reader = _otf2.Reader_Open(str(anchor))
    _otf2.Reader_SetSerialCollectiveCallbacks(reader)
    for location in locations:
        _otf2.Reader_SelectLocation(reader, location)
    if all((anchor.with_suffix("") / f"{location}.def").is_file() for location in locations):
        _otf2.Reader_OpenDefFiles(reader)
        for location in locations:
            definitions = _otf2.Reader_GetDefReader(reader, location)
            _otf2.Reader_ReadAllLocalDefinitions(reader, definitions)
            _otf2.Reader_CloseDefReader(reader, definitions)
    _otf2.Reader_OpenEvtFiles(reader)
    found = {location: _read_location(reader, location) for location in locations}
    _otf2.Reader_CloseEvtFiles(reader)
    _otf2.Reader_Close(reader)
    return found


def _read_location(reader: object, location: int) -> list[LibraryEvent]:
    found: list[LibraryEvent] = []
    kept = [kind(_collector(found, name)) for name, kind in TYPES.items()]
    table = callbacks.EvtReaderCallbacks_New()
    for name, callback in zip(TYPES, kept, strict=True):
        setter = getattr(conf.lib, f"OTF2_EvtReaderCallbacks_Set{name}Callback")
        setter.argtypes = None
        assert int(getattr(result := setter(table, callback), "value", result)) == 0
    events = _otf2.Reader_GetEvtReader(reader, location)
    register = conf.lib.OTF2_Reader_RegisterEvtCallbacks
    register.argtypes = None
    register(reader, events, table, None)
    _otf2.Reader_ReadAllLocalEvents(reader, events)
    _otf2.Reader_CloseEvtReader(reader, events)
    return found


def _collector(found: list[LibraryEvent], name: str) -> Any:  # noqa: ANN401
    def collect(_location: int, time: int, _position: int, _data: object, _attributes: object, *fields: object) -> int:
        plain = (getattr(field, "value", field) for field in fields)
        found.append(LibraryEvent(name, time, tuple(each for each in plain if isinstance(each, int))))
        return 0

    return collect


def write_every_event(path: Path) -> list[str]:
    """Write an archive of one location with each event that libotf2 knows, twice; return their names in order."""
    archive = _otf2.Archive_Open(
        str(path), "traces", _otf2.FILEMODE_WRITE, 1 << 18, 1 << 18, _otf2.SUBSTRATE_POSIX, _otf2.COMPRESSION_NONE
    )
    flush = _otf2.FlushCallbacks(pre_flush=lambda *_: _otf2.FLUSH, post_flush=None)
    _otf2.Archive_SetFlushCallbacks(archive, flush, None)
    _otf2.Archive_SetSerialCollectiveCallbacks(archive)
    _otf2.Archive_OpenEvtFiles(archive)
    writer = _otf2.Archive_GetEvtWriter(archive, 0)
    names = []
    for time, (name, value) in enumerate((name, value) for value in (3, 70_000) for name in TYPES if name != "Unknown"):
        attributes = _otf2.AttributeList_New()
        if time % 3 == 0:
            _otf2.AttributeList_AddUint64(attributes, 1, time)
        _write_event(writer, attributes, 1000 + time // 2, name, value)
        names.append(name)
    _otf2.Archive_CloseEvtWriter(archive, writer)
    _otf2.Archive_CloseEvtFiles(archive)
    definitions = _otf2.Archive_GetGlobalDefWriter(archive)
    _otf2.GlobalDefWriter_WriteClockProperties(definitions, 10**9, 0, 10, 2**64 - 1)
    for number, text in enumerate(("", "main", "node")):
        _otf2.GlobalDefWriter_WriteString(definitions, number, text)
    _otf2.GlobalDefWriter_WriteSystemTreeNode(definitions, 0, 2, 2, 2**32 - 1)
    _otf2.GlobalDefWriter_WriteLocationGroup(definitions, 0, 0, _otf2.LOCATION_GROUP_TYPE_PROCESS, 0, 2**32 - 1)
    _otf2.GlobalDefWriter_WriteLocation(definitions, 0, 0, _otf2.LOCATION_TYPE_CPU_THREAD, len(names), 0)
    _otf2.Archive_CloseGlobalDefWriter(archive, definitions)
    _otf2.Archive_Close(archive)
    return names


def _write_event(writer: object, attributes: object, time: int, name: str, value: int) -> None:
    """Write an event all of whose fields hold ``value``, as far as it fits."""
    if name == "Metric":
        kinds = [_otf2.TYPE_UINT64] * 40  # more than 255 bytes: a long length
        values = [_otf2.MetricValue(unsigned_int=value << 40) for _ in kinds]
        _otf2.EvtWriter_Metric(writer, attributes, time, value, kinds, values)
        return
    if name == "ProgramBegin":
        _otf2.EvtWriter_ProgramBegin(writer, attributes, time, 0, [0, 1])
        return
    function = getattr(conf.lib, f"OTF2_EvtWriter_{name}")
    function.argtypes = None
    fields = [kind(min(value, (1 << 8 * ctypes.sizeof(kind) - 1) - 1)) for kind in fields_of(name)]
    result = function(writer, attributes, ctypes.c_uint64(time), *fields)
    assert int(getattr(result, "value", result)) == 0, name
