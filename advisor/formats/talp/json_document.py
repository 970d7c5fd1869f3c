"""The JSON that DLB 3.5 and later write (``--talp-output-file=….json``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.talp.recording import (
    ALWAYS,
    VALUES,
    ProcessRegion,
    RegionTotals,
    TalpRecording,
    tabulate_processes,
)
from advisor.support import strict_json

if TYPE_CHECKING:
    from advisor.support.strict_json import JsonNode

LIMIT: Final = 128 << 20  # bytes
#: What is taken from the sums over all ranks, beside the values of processes.
_EXTRA: Final[tuple[str, ...]] = ("numMpiRanks", "parallelEfficiency")


def read_recording(path: Path) -> TalpRecording:
    """Return the recording in the document at ``path``; raises ``InputError`` with the place of what is wrong."""
    root = strict_json.read_json(path, LIMIT).require_fields()
    processes, sums = root.get("Process"), root.get("Application")
    if processes is None and sums is not None:
        from advisor.formats.talp.rank_sums import DEVICES, EXTREMES, NORMALIZED, tabulate_sums

        found = tabulate_sums(path, list(_read_totals(sums, (*EXTREMES, *NORMALIZED, *DEVICES))))
        return replace(found, timestamp=root["timestamp"].require_text() if "timestamp" in root else None)
    found = tabulate_processes(path, _read_processes(processes) if processes else ())
    resources = root["resources"].require_fields() if "resources" in root else {}
    ranks = resources["numMpiRanks"].require_whole() if "numMpiRanks" in resources else None
    return replace(
        found,
        totals=tuple(_read_totals(sums)) if sums else (),
        timestamp=strict_json.optional_text(root, "timestamp"),
        ranks_expected=ranks or None,
    )


def _read_processes(node: JsonNode) -> Iterator[ProcessRegion]:
    for region, ranks in node.require_fields().items():
        for process in ranks.require_items():
            members = process.require_fields(needed=sorted(ALWAYS))
            host = members["hostname"].require_text()
            values = {name: float(members[name].require_whole()) for name in VALUES if name in members}
            yield ProcessRegion(region, members["rank"].require_whole(), host, process.place, values)


def _read_totals(node: JsonNode, more: Iterable[str] = ()) -> Iterator[RegionTotals]:
    for region, sums in node.require_fields().items():
        members = sums.require_fields()
        values = {name: members[name].require_number() for name in (*VALUES, *_EXTRA, *more) if name in members}
        yield RegionTotals(region, sums.place, values)
