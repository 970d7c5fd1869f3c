"""Where the call sites of an mpiP report stand in the program: functions that call MPI, and the calls in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.trace.callpaths.records import CallPathNode
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.mpip.report import CallSite, MpipReport

#: The node of the program, above all others.
ROOT: Final = 0
#: At most so many call sites, and so many values in one array; all beyond become one node.
_SITES: Final = 90_000
_VALUES: Final = 40_000_000

Key = tuple[str, int]  # MPI call and number of the call site


def build_nodes(report: MpipReport) -> tuple[tuple[CallPathNode, ...], dict[Key, int], int]:
    """Return the nodes, the node of each call site, and how many call sites had to be folded into one node."""
    sites = {site.number: site for site in report.sites or ()}
    tables = [table for table in (report.times, *report.byte_tables) if table is not None]
    keys = dict.fromkeys(key for table in tables for key in zip(table.call, table.site.tolist(), strict=True))
    most = min(_SITES, max(_VALUES // len(report.app_s), 1))
    nodes = {CallPathNode("program", Role.ROOT): ROOT}
    place: dict[Key, int] = {}
    for key in list(keys)[:most]:
        site = sites.get(key[1])
        place[key] = _add_call(nodes, _add_callers(nodes, site), key[0], site)
    if len(keys) > most:
        rest = nodes.setdefault(CallPathNode("other MPI calls", Role.COMM_OTHER, parent=ROOT), len(nodes))
        place |= dict.fromkeys(list(keys)[most:], rest)
    return tuple(nodes), place, max(len(keys) - most, 0)


def _add_callers(nodes: dict[CallPathNode, int], site: CallSite | None) -> int:
    """Return the node of the function that holds a call site, added with all that call it where they are not there."""
    parent = ROOT
    for frame in reversed(site.frames if site else ()):
        if frame.function is not None:
            parent = nodes.setdefault(CallPathNode(frame.function, Role.USER, frame.file, None, parent), len(nodes))
    return parent


def _add_call(nodes: dict[CallPathNode, int], parent: int, call: str, site: CallSite | None) -> int:
    name, role = classify_region(f"MPI_{call}")
    if role == Role.USER:
        role = Role.COMM_OTHER
    innermost = site.frames[0] if site else None
    file, line = (innermost.file, innermost.line) if innermost else (None, None)
    return nodes.setdefault(CallPathNode(name, role, file, line, parent), len(nodes))
