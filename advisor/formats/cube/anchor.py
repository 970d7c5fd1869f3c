"""``anchor.xml``, the part of a CUBE archive that says what was measured where: metrics, call tree, locations."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from advisor.formats import safe_xml
from advisor.model.errors import InputError

SIZE_LIMIT: Final = 512 << 20  # bytes of the document
NODE_LIMIT: Final = 5_000_000  # call paths
_RATIO: Final = 200  # of compression
_NUMBER: Final = re.compile(r"\d{1,9}")
#: Elements that hold locations, by the names of CUBE 4.3 and those of earlier versions.
_NODES: Final = frozenset({"systemtreenode", "machine", "node"})
_GROUPS: Final = frozenset({"locationgroup", "process"})
_LOCATIONS: Final = frozenset({"location", "thread"})


@dataclass(slots=True)
class CubeMetric:
    """One metric: its number, which names its files, its unique name, type of values, and how they are stored.

    ``ancestors`` are the unique names of the metrics that contain it.
    """

    number: int
    storage: str
    ancestors: tuple[str, ...]
    name: str = ""
    values: str = ""
    unit: str = ""


@dataclass(slots=True)
class SourceRegion:
    """One region of the source as CUBE describes it; ``begin`` is -1 where the line is not known."""

    module: str
    begin: int
    name: str = ""
    mangled: str = ""
    paradigm: str = ""
    role: str = ""


@dataclass(slots=True)
class LocationGroup:
    """One process, or what else has locations: its rank and kind, and the node of the system it ran on."""

    host: str | None
    name: str = ""
    rank: int = -1
    kind: str = "process"


@dataclass(slots=True)
class CubeLocation:
    """One location: its number, which is its column in every metric, its rank within the group, and its kind."""

    number: int
    group: LocationGroup
    rank: int = -1
    kind: str = "thread"


@dataclass(slots=True)
class CubeAnchor:
    """What the document says. ``callee`` and ``parent`` (call paths,) are in order of the numbers of the call paths."""

    metrics: list[CubeMetric] = field(default_factory=list)
    regions: dict[int, SourceRegion] = field(default_factory=dict)
    callee: dict[int, int] = field(default_factory=dict)
    parent: dict[int, int] = field(default_factory=dict)
    locations: list[CubeLocation] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)


def read_anchor(content: bytes, path: Path, member: str) -> CubeAnchor:
    """Return what the document says; raises ``InputError`` with its line for what is damaged or contradicts itself."""
    handler = _AnchorHandler()
    safe_xml.parse_xml(_unpack_document(content, path, member), handler, path, member)
    found = handler.anchor
    problem = _find_problem(found, handler.ended)
    if problem:
        raise InputError(path, problem, member)
    return found


def _unpack_document(content: bytes, path: Path, member: str) -> bytes:
    """Return the document, unpacked if it is compressed as versions before 4.3 did."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    unpacker = zlib.decompressobj(31)
    try:
        plain = unpacker.decompress(content, min(SIZE_LIMIT, _RATIO * len(content)))
    except zlib.error as error:
        raise InputError(path, f"cannot be unpacked: {error}", member) from None
    if not unpacker.eof:
        raise InputError(path, "is cut off, or unpacks to more than fits", member)
    return plain


def _find_problem(found: CubeAnchor, ended: bool) -> str | None:
    """Return what keeps the document from describing a profile, None if nothing does."""
    if not ended:
        return "is not a CUBE document"
    if not found.callee or not found.locations:
        return "describes no call paths" if found.locations else "describes no locations"
    if sorted(found.callee) != list(range(len(found.callee))):
        return "the numbers of the call paths have gaps"
    if sorted(place.number for place in found.locations) != list(range(len(found.locations))):
        return "the numbers of the locations have gaps or occur twice"
    unknown = next((callee for callee in found.callee.values() if callee not in found.regions), None)
    if unknown is not None:
        return f"a call path ends in region {unknown}, which is not described"
    for what in ("number", "name"):
        seen = [getattr(metric, what) for metric in found.metrics]
        if len(set(seen)) < len(seen):
            return f"two metrics have the same {what}"
    return None


class _AnchorHandler:
    """Fills an ``CubeAnchor`` from the elements of the document."""

    def __init__(self) -> None:
        self.anchor = CubeAnchor()
        self.ended = False
        self._path: list[str] = []
        self._metrics: list[CubeMetric] = []
        self._calls: list[int] = []
        self._region: SourceRegion | None = None
        self._hosts: list[list[str]] = []  # name and class of each open node of the system tree
        self._group: LocationGroup | None = None
        self._place: CubeLocation | None = None

    def start_element(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take the beginning of an element."""
        if not self._path and name != "cube":
            raise ValueError(f"the document is a {name}, not a cube")
        self._path.append(name)
        if name == "metric":
            self._open_metric(attributes)
        elif name == "region":
            self._open_region(attributes)
        elif name == "cnode":
            self._open_call(attributes)
        elif name in _NODES:
            self._hosts.append(["", name])
        elif name in _GROUPS:
            self._group = LocationGroup(_find_host(self._hosts))
        elif name in _LOCATIONS:
            self._open_location(attributes)
        elif name == "attr" and len(self._path) == 2:
            self.anchor.attributes[attributes.get("key", "")] = attributes.get("value", "")

    def end_element(self, name: str, text: str) -> None:
        """Take the end of an element."""
        self._path.pop()
        if name == "metric":
            self._metrics.pop()
        elif name == "cnode":
            self._calls.pop()
        elif name == "region":
            self._region = None
        elif name in _NODES:
            self._hosts.pop()
        elif name in _GROUPS:
            self._group = None
        elif name in _LOCATIONS:
            self._place = None
        elif name == "cube":
            self.ended = True
        else:
            self._add_detail(name, text)

    def _open_metric(self, attributes: Mapping[str, str]) -> None:
        above = tuple(metric.name for metric in self._metrics)
        metric = CubeMetric(_parse_number(attributes, "id"), attributes.get("type", "EXCLUSIVE") or "EXCLUSIVE", above)
        self._metrics.append(metric)
        self.anchor.metrics.append(metric)

    def _open_region(self, attributes: Mapping[str, str]) -> None:
        number = _parse_number(attributes, "id")
        if number in self.anchor.regions:
            raise ValueError(f"region {number} is described twice")
        begin = attributes.get("begin", "-1")
        if not re.fullmatch(r"-1|\d{1,9}", begin):
            raise ValueError(f"begin of region {number} is not a line number: {begin[:40]!r}")
        self._region = self.anchor.regions[number] = SourceRegion(attributes.get("mod", ""), int(begin))

    def _open_call(self, attributes: Mapping[str, str]) -> None:
        number = _parse_number(attributes, "id")
        if number in self.anchor.callee:
            raise ValueError(f"call path {number} is described twice")
        if len(self.anchor.callee) >= NODE_LIMIT:
            raise ValueError(f"more than {NODE_LIMIT:,} call paths")
        self.anchor.callee[number] = _parse_number(attributes, "calleeId")
        self.anchor.parent[number] = self._calls[-1] if self._calls else -1
        self._calls.append(number)

    def _open_location(self, attributes: Mapping[str, str]) -> None:
        if self._group is None:
            raise ValueError("a location that belongs to no process")
        self._place = CubeLocation(_parse_number(attributes, "Id"), self._group)
        self.anchor.locations.append(self._place)

    def _add_detail(self, name: str, text: str) -> None:
        """Take an element that holds nothing but text, as a part of what is open around it."""
        above = self._path[-1] if self._path else ""
        if above == "metric":
            self._add_metric_detail(name, text)
        elif above == "region" and self._region is not None:
            _set_field(
                self._region,
                name,
                text,
                {"name": "name", "mangled_name": "mangled", "paradigm": "paradigm", "role": "role"},
            )
        elif above in _NODES and name in ("name", "class"):
            self._hosts[-1][("name", "class").index(name)] = text
        elif above in _GROUPS and self._group is not None:
            _set_field(self._group, name, text, {"name": "name", "rank": "rank", "type": "kind"})
        elif above in _LOCATIONS and self._place is not None:
            _set_field(self._place, name, text, {"rank": "rank", "type": "kind"})

    def _add_metric_detail(self, name: str, text: str) -> None:
        metric = self._metrics[-1]
        _set_field(metric, name, text, {"uniq_name": "name", "dtype": "values", "uom": "unit"})


def _set_field(record: object, element: str, text: str, fields: Mapping[str, str]) -> None:
    name = fields.get(element)
    if name is None:
        return
    if name == "rank":
        if not _NUMBER.fullmatch(text.strip()):
            raise ValueError(f"the rank is not a number: {text[:40]!r}")
        setattr(record, name, int(text))
    else:
        setattr(record, name, text)


def _parse_number(attributes: Mapping[str, str], name: str) -> int:
    text = attributes.get(name, "")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{name} is not a number: {text[:40]!r}")
    return int(text)


def _find_host(nodes: list[list[str]]) -> str | None:
    """Return the name of the innermost node of the system tree, without its class, which Score-P puts before it."""
    chosen = next((node for node in reversed(nodes) if node[1] == "node"), nodes[-1] if nodes else None)
    if chosen is None:
        return None
    return chosen[0].removeprefix(f"{chosen[1]} ") or None
