"""The definitions of an OTF2 archive as plain lists, every one kept, in recorded order; standard library only.

Definitions may repeat an id and may refer to what comes later (EZTrace writes both), so nothing is
resolved here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from advisor.readers.libotf2.library import Library

#: name of the definition -> argument types; the first argument is the user data.
SHAPES = {
    "ClockProperties": "QQQQ",
    "String": "Is",
    "SystemTreeNode": "IIII",
    "SystemTreeNodeDomain": "IB",
    "LocationGroup": "IIBII",
    "Location": "QIBQI",
    "Region": "IIIIBBIIII",
    "Group": "IIBBIIL",
    "Comm": "IIIII",
    "InterComm": "IIIIII",
    "IoRegularFile": "III",
    "IoDirectory": "III",
    "IoHandle": "IIIBIII",
}

Definitions = dict[str, list[list[Any]]]


def _group(self: int, name: int, kind: int, paradigm: int, flags: int, count: int, members: Sequence[int]) -> list[Any]:
    return [self, name, kind, paradigm, flags, list(members[:count]) if count else []]


def _string(self: int, text: bytes | None) -> list[Any]:
    return [self, (text or b"").decode("utf-8", "replace")]


_MAKERS: dict[str, Callable[..., list[Any]]] = {"Group": _group, "String": _string}


def read(library: Library, reader: int, declared: int) -> tuple[Definitions, int]:
    """Return the global definitions by name, each a list of the arguments as recorded, and how many were read in all.

    Raises ``LibraryError`` when the library cannot read them, or finds more than ``declared``.
    """
    found: Definitions = {name: [] for name in SHAPES}
    callbacks = library.handle("GlobalDefReaderCallbacks_New")
    for name, shape in SHAPES.items():
        collect = _collector(found[name], _MAKERS.get(name, _plain))
        library.must(f"GlobalDefReaderCallbacks_Set{name}Callback", callbacks, library.callback("P" + shape, collect))
    definitions = library.handle("Reader_GetGlobalDefReader", reader)
    library.must("Reader_RegisterGlobalDefCallbacks", reader, definitions, callbacks, None)
    count = max(library.records("Reader_ReadGlobalDefinitions", reader, definitions, declared), default=0)
    library.must("Reader_CloseGlobalDefReader", reader, definitions)
    return found, count


def _plain(*values: int) -> list[Any]:
    return list(values)


def _collector(found: list[list[Any]], make: Callable[..., list[Any]]) -> Callable[..., int]:
    def collect(_data: int, *values: object) -> int:
        found.append(make(*values))
        return 0

    return collect
