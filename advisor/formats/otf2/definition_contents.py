"""What the definitions of an OTF2 archive say: locations in the order of ranks, regions, files, the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.formats.otf2.codes import COMM_LOCATION_GROUPS, COMM_LOCATIONS, MEASUREMENT_SYSTEM, MPI, PARADIGMS, ROLES
from advisor.trace.events import Location, TraceRegion
from advisor.trace.regions import classify_region, parse_source_place

if TYPE_CHECKING:
    from advisor.formats.otf2.definitions import Definitions


_CPU_THREADS = (0, 1)  # unknown, CPU thread; the others are accelerators' streams and metrics
_ACCELERATOR = 2
EZTRACE = "EZTrace"
_SHARED_MEMORY = 1
#: Levels of the system tree that are looked at (it may be damaged and have a cycle).
_DEPTH = 32
#: Regions that tools add; their canonical names tell nothing.
_ARTIFICIAL = ("TRACE BUFFER FLUSH", "MEASUREMENT OFF", "THREADS", "PROGRAM")


@dataclass(frozen=True, slots=True)
class LocationTable:
    """The threads of execution: location ids and records, ordered by rank, then thread.

    ``group_ranks`` maps a location group to its rank; ``other_locations`` counts locations that are no CPU threads.
    """

    ids: tuple[int, ...]
    locations: tuple[Location, ...]
    group_ranks: dict[int, int]
    other_locations: int

    @property
    def rank_count(self) -> int:
        """The number of processes."""
        return max((location.rank for location in self.locations), default=-1) + 1

    @property
    def rank_of(self) -> dict[int, int]:
        """Map from location id to rank."""
        return {identity: record.rank for identity, record in zip(self.ids, self.locations, strict=True)}


def collect_strings(definitions: Definitions) -> dict[int, str]:
    """Return the archive's strings by id, with unprintable characters replaced."""
    return {identity: replace_unprintable(text) for identity, text, _ in definitions["String"]}


def replace_unprintable(text: str) -> str:
    """Return ``text`` with every control character replaced by U+FFFD."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def build_locations(definitions: Definitions, names: dict[int, str]) -> LocationTable:
    """Return the locations; the rank of a process is its place in MPI_COMM_WORLD, others follow as defined."""
    groups = {row[0]: row for row in definitions["LocationGroup"] if row[2] != _ACCELERATOR}
    threads = {row[0]: row for row in definitions["Location"] if row[2] in _CPU_THREADS and row[4] in groups}
    world = _find_world(definitions, {identity: row[4] for identity, row in threads.items()})
    used = {row[4] for row in threads.values()}
    in_order = dict.fromkeys([*world.values(), *(group for group in groups if group in used)])
    ranks = {group: rank for rank, group in enumerate(in_order)}
    ordered = sorted(threads, key=lambda identity: (ranks[threads[identity][4]], identity not in world, identity))
    nodes = _build_node_tree(definitions, names)
    hosts = {group: _find_host(nodes, groups[group][3]) for group in ranks}
    counts: dict[int, int] = {}
    records = []
    for identity in ordered:
        _, name, _, _, group = threads[identity]
        counts[group] = counts.get(group, -1) + 1
        records.append(Location(names.get(name, f"location {identity}"), ranks[group], counts[group], hosts[group]))
    others = len({row[0] for row in definitions["Location"]}) - len(ordered)
    return LocationTable(tuple(ordered), tuple(records), ranks, others)


def _find_world(definitions: Definitions, group_of: dict[int, int]) -> dict[int, int]:
    """Return the MPI processes' main locations and their groups, in the order of MPI_COMM_WORLD."""
    lists = [row[5] for row in definitions["Group"] if row[2] == COMM_LOCATIONS and row[3] == MPI]
    if lists:
        return {identity: group_of[identity] for identity in max(lists, key=len) if identity in group_of}
    groups = [row[5] for row in definitions["Group"] if row[2] == COMM_LOCATION_GROUPS and row[3] == MPI]
    mains = {group: identity for identity, group in sorted(group_of.items(), reverse=True)}
    return {mains[group]: group for group in max(groups, key=len, default=[]) if group in mains}


def _build_node_tree(definitions: Definitions, names: dict[int, str]) -> dict[int, tuple[str | None, int]]:
    """Return for each node of the system tree its name if it is a host, and its parent."""
    shared = {row[0] for row in definitions["SystemTreeNodeDomain"] if row[1] == _SHARED_MEMORY}
    return {
        identity: (names.get(name) if identity in shared or names.get(kind) == "node" else None, parent)
        for identity, name, kind, parent in definitions["SystemTreeNode"]
    }


def _find_host(nodes: dict[int, tuple[str | None, int]], node: int) -> str | None:
    for _ in range(_DEPTH):
        if node not in nodes:
            return None
        host, node = nodes[node]
        if host is not None:
            return host
    return None


def build_regions(definitions: Definitions, names: dict[int, str]) -> tuple[dict[int, int], list[TraceRegion]]:
    """Return region ids as indices into the regions, equal ones of all processes merged, and the regions."""
    merged: dict[TraceRegion, int] = {}
    index = {}
    for identity, name, _, _, role, paradigm, _, file, line, _ in definitions["Region"]:
        text = names.get(name, f"region {identity}")
        canonical, known = classify_region(text, _look_up_word(ROLES, role), _look_up_word(PARADIGMS, paradigm))
        named_file, named_line = parse_source_place(text) or (None, None)
        source = names.get(file, named_file) if line else named_file
        record = TraceRegion(canonical, known, source or None, (line or named_line) if source else None)
        index[identity] = merged.setdefault(record, len(merged))
    return index, list(merged)


def _look_up_word(words: list[str], number: int) -> str:
    return words[number] if number < len(words) else "UNKNOWN"


def build_files(definitions: Definitions, names: dict[int, str]) -> tuple[dict[int, int], list[str]]:
    """Return I/O handle ids as indices into the file names, and the file names."""
    paths: dict[int, int] = {row[0]: row[1] for row in definitions["IoRegularFile"] + definitions["IoDirectory"]}
    merged: dict[str, int] = {}
    index = {}
    for identity, name, file, *_ in definitions["IoHandle"]:
        text = names.get(paths.get(file, -1)) or names.get(name)
        if text:
            index[identity] = merged.setdefault(text, len(merged))
    return index, list(merged)


def find_program(definitions: Definitions, names: dict[int, str], default: str) -> str:
    """Return the program's name: Score-P's own region of it, EZTrace's system tree root, or ``default``."""
    for _, name, canonical, _, role, paradigm, *_ in definitions["Region"]:
        own = _look_up_word(ROLES, role) == "ARTIFICIAL" and paradigm == MEASUREMENT_SYSTEM
        if own and name in names and (name != canonical or names[name] not in _ARTIFICIAL):
            return names[name]
    for _, name, kind, _ in definitions["SystemTreeNode"]:
        if name == kind and names.get(name):
            return names[name]
    return default


def find_tool(names: dict[int, str], creator: str) -> str:
    """Return the tool that wrote the archive; EZTrace leaves the field empty and names its own regions."""
    if creator:
        return replace_unprintable(creator)
    return EZTRACE if "EZTrace finalize" in names.values() else "OTF2"
