"""The JSON that DLB 3.5 and later write (``--talp-output-file=….json``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.formats.talp.recording import ALWAYS, VALUES, Application, Process, Recording, tabulate
from advisor.support import strict_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from advisor.support.strict_json import Node

LIMIT: Final = 128 << 20  # bytes
#: What is taken from the sums over all ranks, beside the values of processes.
_EXTRA: Final[tuple[str, ...]] = ("numMpiRanks", "parallelEfficiency")


def read(path: Path) -> Recording:
    """Return the recording in the document at ``path``; raises ``InputError`` with the place of what is wrong."""
    root = strict_json.read(path, LIMIT).fields()
    processes, sums = root.get("Process"), root.get("Application")
    found = tabulate(path, _processes(processes) if processes else ())
    resources = root["resources"].fields() if "resources" in root else {}
    ranks = resources["numMpiRanks"].whole() if "numMpiRanks" in resources else None
    return replace(
        found,
        totals=tuple(_totals(sums)) if sums else (),
        written=root["timestamp"].text() if "timestamp" in root else None,
        ranks_expected=ranks or None,
    )


def _processes(node: Node) -> Iterator[Process]:
    for region, ranks in node.fields().items():
        for process in ranks.items():
            members = process.fields()
            missing = ALWAYS - members.keys()
            if missing:
                raise process.error(f"{min(missing)} is missing")
            host = members["hostname"].text()
            values = {name: float(members[name].whole()) for name in VALUES if name in members}
            yield Process(region, members["rank"].whole(), host, process.place, values)


def _totals(node: Node) -> Iterator[Application]:
    for region, sums in node.fields().items():
        members = sums.fields()
        values = {name: members[name].number() for name in (*VALUES, *_EXTRA) if name in members}
        yield Application(region, sums.place, values)
