"""A Profile as Caliper's ``json-split``, which hatchet and thicket read with ``from_caliper``.

The tree is program, phase, region; each region has the sum of its iterations for every rank. Hatchet knows rows by node
and rank only, and its operations need each pair once: of a run with threads ``rank`` counts the processors, whose names
are in the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.json_stream import format_json, write_list
from advisor.formats.table_rows import list_measures

if TYPE_CHECKING:
    from advisor.model.records import Profile

#: The column from which hatchet takes the order of the nodes; it has to come first.
ORDER: Final = "Node order"


def write_call_tree(profile: Profile, path: Path) -> None:
    """Write the document; ``time`` is the first measure, wall time where that was recorded, all are in seconds."""
    measures = list_measures(profile)
    wall = "wall_s" if "wall_s" in measures else measures[0]
    names = [wall, *(name for name in measures if name != wall)]
    threads = len({processor.rank for processor in profile.processors}) < len(profile.processors)
    columns = [ORDER, "path", "mpi.rank", "sum#time.duration", *names[1:]]
    about = [{"is_value": name not in (ORDER, "path")} for name in columns]
    metadata: dict[str, object] = {"program": profile.program, "run": profile.run}
    if threads:
        metadata["processors"] = [processor.name for processor in profile.processors]
    with path.open("w", encoding="utf-8") as stream:
        stream.write('{"data":')
        write_list(stream, _iterate_rows(profile, names, threads=threads))
        stream.write(f',\n"columns":{format_json(columns)},\n"column_metadata":{format_json(about)},\n"nodes":')
        write_list(stream, _iterate_nodes(profile))
        stream.write("".join(f',\n"{name}":{format_json(value)}' for name, value in metadata.items()) + "}\n")


def _iterate_nodes(profile: Profile) -> Iterator[dict[str, object]]:
    """Yield the program, then each phase and behind it its regions."""
    yield {"label": profile.program, "column": "path"}
    number = 0
    for phase in profile.phases:
        number += 1
        place = number
        yield {"label": phase.name, "column": "path", "parent": 0}
        for region in phase.regions.tolist():
            number += 1
            yield {"label": profile.regions[region].name, "column": "path", "parent": place}


def _iterate_rows(profile: Profile, names: list[str], *, threads: bool) -> Iterator[list[object]]:
    """Yield order, node, rank and seconds, one processor after the other: hatchet takes the order from the first rows.

    Inner nodes have zero on every rank, as hatchet wants a row for each node.
    """
    nothing = [0.0] * len(names)
    for number, processor in enumerate(profile.processors):
        place = number if threads else processor.rank
        yield [0, 0, place, *nothing]
        node = 0
        for phase in profile.phases:
            node += 1
            yield [node, node, place, *nothing]
            zeros = np.zeros(len(phase.regions))
            sums = [phase.arrays[name][:, number].sum(axis=1) if name in phase.arrays else zeros for name in names]
            for row in np.column_stack(sums).tolist():
                node += 1
                yield [node, node, place, *row]
