"""A call-path profile as columns, filled by every reader of aggregated measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, Note, Processor, Status


@dataclass(frozen=True, slots=True)
class CallPathNode:
    """One call path: the region it ends in, and ``parent``, the node that calls it (-1: none).

    A flat profile has only nodes without parents. ``role`` says what the region does; name and role come from
    ``trace.regions.classify`` unless the tool knows better.
    """

    name: str
    role: Role = Role.USER
    file: str | None = None
    line: int | None = None
    parent: int = -1


@dataclass(frozen=True, slots=True)
class CallPaths:
    """The totals of a profiler over a run; parents precede their children in ``nodes``.

    All arrays have the shape (nodes, processors); None is what the tool did not measure, zero what it saw to be
    nothing. ``wall_s`` are own wall seconds, without those of children; ``cpu_s`` own CPU seconds likewise. ``visits``
    counts calls, ``bytes`` what they moved (messages or I/O), ``shortest_s`` is the shortest single call (NaN where
    unknown). ``waits`` holds waiting that the tool measured itself, by kind (``trace.waits.KINDS``): seconds out of
    ``wall_s``. ``counts`` holds what else was counted, by the names of ``Profile.counts``.

    ``actual_s`` is the wall time of the run: None takes that of the processor with the most seconds, NaN says that no
    wall times were recorded at all. ``status`` is that of the times: ``estimated`` for samples. ``program`` is empty
    where the format does not name it.
    """

    program: str
    run: str
    reader: str
    processors: tuple[Processor, ...]
    nodes: tuple[CallPathNode, ...]
    wall_s: FloatArray | None = None
    cpu_s: FloatArray | None = None
    visits: FloatArray | None = None
    bytes: FloatArray | None = None
    shortest_s: FloatArray | None = None
    waits: Mapping[str, FloatArray] = field(default_factory=dict)
    counts: Mapping[str, FloatArray] = field(default_factory=dict)
    actual_s: float | None = None
    status: Status = "measured"
    started: str | None = None
    language: str | None = None
    executable: str | None = None
    cores: int | None = None
    ranks_expected: int | None = None
    job: str | None = None
    build: str | None = None
    parameters: Mapping[str, str | float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def fold_regions(
    nodes: Sequence[CallPathNode], seconds: FloatArray, limit: int, others: str
) -> tuple[tuple[CallPathNode, ...], int]:
    """Return the nodes with no more than ``limit`` regions, and how many regions became the one named ``others``.

    ``seconds`` (nodes,) are the nodes' own; regions of the program with the least of them are folded.
    """
    total: dict[tuple[object, ...], float] = {}
    for node, own in zip(nodes, seconds.tolist(), strict=True):
        key = (node.name, node.role, node.file, node.line)
        total[key] = total.get(key, 0.0) + own
    if len(total) <= limit:
        return tuple(nodes), 0
    foldable = sorted((key for key in total if key[1] == Role.USER), key=lambda key: -total[key])
    spare = set(foldable[max(0, limit - 1 - (len(total) - len(foldable))) :])
    return tuple(
        CallPathNode(others, parent=node.parent) if (node.name, node.role, node.file, node.line) in spare else node
        for node in nodes
    ), len(spare)
