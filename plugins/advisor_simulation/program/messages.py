"""The messages of a recorded run, by phase: each call of MPI that the tracer marked is found among the recorded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import SENDS, Kind, Trace

if TYPE_CHECKING:
    from advisor_simulation.program.code_loops import ProgramCode
    from advisor_simulation.program.phases import ProgramPhase

_PREFIX: Final = re.compile(r"p?mpi_")


@dataclass(slots=True)
class CallMessages:
    """What one call sent: the function, and (partner, bytes) of each message; -1 for a collective operation."""

    name: str
    sent: list[tuple[int, int]] = field(default_factory=list)


#: Messages of a phase: (function, from, to or -1 for a collective operation, bytes) -> how many.
PhaseMessages = Counter[tuple[str, int, int, int]]


def normalize_name(name: str) -> str:
    """Return the name of a function of MPI as Fortran, C and profiling interfaces share it."""
    return _PREFIX.sub("", name.lower().rstrip("_"), count=1)


def list_calls(trace: Trace) -> dict[int, list[CallMessages]]:
    """Return the calls of MPI of each rank that communicate, in their order, with what they sent."""
    names = [normalize_name(region.name) if region.name.lower().startswith(("mpi_", "pmpi_")) else None
             for region in trace.regions]  # fmt: skip
    found: dict[int, list[CallMessages]] = {}
    for place, location in enumerate(trace.locations):
        if location.thread:
            continue
        calls = found.setdefault(location.rank, [])
        begin, end = int(trace.first[place]), int(trace.first[place + 1])
        current: CallMessages | None = None
        columns = (trace.kind, trace.region, trace.partner, trace.size)
        rows = zip(*(column[begin:end].tolist() for column in columns), strict=True)
        for kind, region, partner, size in rows:
            if kind == Kind.ENTER and (name := names[region]) is not None:
                current = CallMessages(name)
                calls.append(current)
            elif current is not None and kind in SENDS:
                current.sent.append((partner, size))
            elif current is not None and kind == Kind.COLLECTIVE:
                current.sent.append((-1, size))
    return found


def assign_messages(
    trace: Trace, phases: int, order: Sequence[int], cuts: Sequence[Mapping[int, Sequence[str]]]
) -> tuple[list[PhaseMessages], bool]:
    """Return the messages of each phase in its first execution, and whether all its executions send the same.

    ``cuts`` are the calls of each rank in each executed phase, by name, as the tracer marked them.
    """
    calls = list_calls(trace)
    names = {call.name for each in calls.values() for call in each}
    marked = {name for cut in cuts for each in cut.values() for name in each}
    shared = names & marked
    following = {rank: iter([call for call in each if call.name in shared]) for rank, each in calls.items()}
    found: list[PhaseMessages | None] = [None] * phases
    alike = True
    for number, cut in zip(order, cuts, strict=True):
        made: PhaseMessages = Counter()
        for rank, called in cut.items():
            for name in called:
                if name not in shared:
                    continue
                call = next(following.get(rank, iter(())), None)
                alike &= call is not None and call.name == name
                for partner, size in call.sent if call is not None else ():
                    made[name, rank, partner, size] += 1
        if found[number] is None:
            found[number] = made
        alike &= found[number] == made
    alike &= all(next(rest, None) is None for rest in following.values())
    return [one if one is not None else Counter() for one in found], alike


def list_marked_calls(phase: ProgramPhase, code: ProgramCode) -> dict[int, list[str]]:
    """Return the functions of MPI that each rank called in a phase, in their order."""
    first = len(code.loops) + len(code.exits)
    found = {}
    for rank, piece in phase.pieces.items():
        marks = piece.words[piece.words >> np.uint64(63) == 1]
        numbers = (marks >> np.uint64(48) & np.uint64(0x7FFF)).astype(np.int64)
        found[rank] = [normalize_name(code.calls[number - first]) for number in numbers[numbers >= first].tolist()]
    return found


def render_messages(found: PhaseMessages, processors: int) -> list[str]:
    """Return the steps of a model that send the messages of a phase."""
    lines = []
    for name in sorted({key[0] for key in found}):
        mine = {key[1:]: count for key, count in found.items() if key[0] == name}
        slots: dict[int, list[tuple[int, int, int]]] = {}
        for (rank, partner, size), count in sorted(mine.items()):
            slots.setdefault(rank, []).append((partner, size, count))
        for slot in range(max(map(len, slots.values()))):
            rows = {rank: each[slot] for rank, each in slots.items() if slot < len(each)}
            lines.append(_render_slot(name, rows, processors))
    return lines


def _render_slot(name: str, rows: Mapping[int, tuple[int, int, int]], processors: int) -> str:
    ranks = sorted(rows)
    size = _render_values([rows[rank][1] for rank in ranks], ranks)
    count = _render_values([rows[rank][2] for rank in ranks], ranks)
    words = [f'messages: "MPI {name}"', f'size: "{size}"']
    partners = [rows[rank][0] for rank in ranks]
    if partners[0] >= 0:
        words.append(f'to: "{_render_partners(partners, ranks, processors)}"')
    words += [f'count: "{count}"'] if count != "1" else []
    if len(ranks) < processors:
        words.append('where: "' + " or ".join(f"p == {rank}" for rank in ranks) + '"')
    return "- {" + ", ".join(words) + "}"


def _render_partners(partners: Sequence[int], ranks: Sequence[int], processors: int) -> str:
    shifts = {(partner - rank) % processors for partner, rank in zip(partners, ranks, strict=True)}
    if len(shifts) == 1:
        return f"(p + {next(iter(shifts))}) % P"
    return _render_values(partners, ranks)


def _render_values(values: Sequence[int], ranks: Sequence[int]) -> str:
    """Return one value for all, or a value for each rank."""
    if len(set(values)) == 1:
        return str(values[0])
    return " + ".join(f"{value} * (p == {rank})" for value, rank in zip(values, ranks, strict=True) if value) or "0"
