"""The Profile of a trace: all steps of this package, one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.errors import InputError
from advisor.grouping import sums
from advisor.model import Note, Phase, Processor, Profile, Region
from advisor.traces import accounts, categories, clocks, matching, naming, nesting, phases, teams, waits
from advisor.traces.causes import collect
from advisor.traces.counts import count
from advisor.traces.events import Kind, Role
from advisor.traces.locations import are_first_threads
from advisor.traces.serial import serial_phases
from advisor.traces.tables import Table, lay_out

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from advisor.model import FloatArray, Status
    from advisor.traces.accounts import Pieces
    from advisor.traces.categories import Split
    from advisor.traces.events import Trace
    from advisor.traces.nesting import Calls
    from advisor.traces.phases import Division
    from advisor.traces.waits import Waits

#: A measure whose guessed seconds exceed this share of all of its seconds is called estimated.
GUESSED_SHARE = 0.01

MPI_ROLES = tuple(role for role in Role if Role.INIT <= role <= Role.LOCAL)
THREAD_ROLES = (Role.OMP_PARALLEL, Role.OMP_BARRIER, Role.OMP_WORK, Role.OMP_LOCK)


def from_trace(trace: Trace, path: Path | str | None = None, reader: str = "trace") -> Profile:
    """Return the profile of ``trace``; raises ``InputError`` for ``path`` when it holds no run.

    ``reader`` names who read it.
    """
    trace, unobserved = _observed(trace)
    if not len(trace.time_s):
        raise InputError(path or trace.program, "the trace holds no events")
    calls = nesting.pair(trace)
    joint, messages = matching.collectives(trace, calls), matching.messages(trace, calls)
    found = clocks.constraints(trace, calls, joint, messages)
    correction = clocks.solve(found, trace.ranks, trace.ticks_s)
    trace = replace(trace, time_s=clocks.corrected(trace, correction))
    calls = nesting.retimed(calls, trace)
    span = float(trace.time_s.min()), float(trace.time_s.max())
    groups = teams.find(trace, calls)
    division = phases.divide(trace, calls, joint, groups)
    calls = teams.adopted(trace, accounts.waiting_for_the_end(calls, division), groups)
    waiting = waits.split(trace, calls, joint, messages, groups, division.closing[-1])
    pieces = accounts.cut(trace, calls, division, span)
    table = lay_out(trace, calls, pieces, division)
    split = categories.split(trace, calls, pieces, waiting, division, teams.join_waits(trace, calls, groups))
    regions = _regions(trace, table)
    measured = _measure(trace, calls, pieces, split, table)
    named = naming.phases(trace, calls, division, table, split)
    divided = _phases(named, division, table, measured, span[0])
    notes = _notes(trace, clocks.note(correction), joint.unmatched, messages.unmatched, unobserved)
    return Profile(
        program=trace.program,
        run=naming.run_id(trace),
        reader=reader,
        actual_s=span[1] - span[0],
        processors=_processors(trace, span[0]),
        regions=regions,
        phases=serial_phases(trace, divided, waiting, division, table)
        if correction.solved
        else _unsplit(divided, len(table.rows)),
        status=_status(waiting, split, correction),
        paradigms=_paradigms(trace),
        parameters=trace.parameters,
        outside=accounts.outside(trace, calls, pieces),
        counts=count(trace, calls, table.row_of_call, len(regions)),
        causes=collect(trace, calls, waiting, split, table) if correction.solved else None,
        notes=notes,
        clock_uncertainty_s=float(correction.uncertainty_s.max(initial=0.0)) if correction.solved else None,
    )


def _observed(trace: Trace) -> tuple[Trace, int]:
    """Return the trace without threads of which nothing but their existence was recorded, and how many those are."""
    events = np.diff(trace.first)
    nested = np.add.reduceat(np.r_[trace.kind == Kind.ENTER, False].astype(np.int64), trace.first[:-1])
    nested[events == 0] = 0
    seen = are_first_threads(trace) | (nested > 1)
    if seen.all():
        return trace, 0
    kept = np.repeat(seen, events)
    columns = ("time_s", "kind", "region", "comm", "partner", "tag", "size", "request")
    locations = tuple(location for location, keep in zip(trace.locations, seen, strict=True) if keep)
    reduced = replace(
        trace,
        locations=locations,
        first=np.r_[0, np.cumsum(events[seen])].astype(np.int64),
        **{name: getattr(trace, name)[kept] for name in columns},
    )
    return reduced, int((~seen).sum())


def _measure(trace: Trace, calls: Calls, pieces: Pieces, split: Split, table: Table) -> dict[str, FloatArray]:
    """Return the flat arrays of all measures."""
    booked = accounts.inside_phases(trace, calls, pieces)
    row = table.row_of_call[pieces.call[booked]]
    cell = table.cells(row, pieces.instance[booked], pieces.location[booked])
    flat = {"wall_s": sums(cell, pieces.seconds[booked], table.size)}
    for name in ("wait_s", "sync_s", "transfer_s", "io_s"):
        seconds: FloatArray = getattr(split, name)
        some = np.flatnonzero(seconds)
        cell = table.cells(table.row_of_call[some], split.instance[some], calls.location[some])
        flat[name] = sums(cell, seconds[some], table.size)
    return flat


def _phases(
    named: tuple[list[str], list[str | None]],
    division: Division,
    table: Table,
    flat: dict[str, FloatArray],
    begin: float,
) -> tuple[Phase, ...]:
    """Return the phases with their arrays, all of them parallel; ``named`` are their names and closing calls."""
    result = []
    for p, (name, closer, rows) in enumerate(zip(*named, table.phase_rows, strict=True)):
        shape = (len(rows), table.locations, int(table.iterations[p]))
        part = slice(int(table.base[p]), int(table.base[p + 1]))
        mine = np.flatnonzero(table.phase_of == p)
        result.append(
            Phase(
                name=name,
                kind="parallel",
                regions=rows,
                arrays={measure: values[part].reshape(shape) for measure, values in flat.items()},
                closed_by=closer,
                start_s=division.edges_s[mine] - begin,
                duration_s=division.edges_s[mine + 1] - division.edges_s[mine],
            )
        )
    return tuple(result)


def _unsplit(found: tuple[Phase, ...], rows: int) -> tuple[Phase, ...]:
    """Return one phase of everything, as clocks that contradict each other leave it: what needs no common clock."""
    arrays = {}
    for name in ("wall_s", "io_s"):
        total = np.zeros((rows, found[0].arrays[name].shape[1], 1))
        for phase in found:
            total[phase.regions, :, 0] += phase.arrays[name].sum(axis=2)
        arrays[name] = total
    return (Phase(name="the whole run", kind="whole", regions=np.arange(rows), arrays=arrays),)


def _regions(trace: Trace, table: Table) -> tuple[Region, ...]:
    """Return the regions of the profile, one for each row; the program's root has the program's name."""
    result = []
    for row in table.rows:
        region = trace.regions[row // 2]
        name = trace.program if region.role == Role.ROOT else region.name
        result.append(Region(name, region.file, region.line, threaded=bool(row % 2)))
    return tuple(result)


def _processors(trace: Trace, begin: float) -> tuple[Processor, ...]:
    """Return the processors with the time during which they were seen."""
    seen = []
    for number, location in enumerate(trace.locations):
        times = trace.time_s[trace.first[number] : trace.first[number + 1]]
        span = (float(times[0]) - begin, float(times[-1]) - begin) if len(times) else (None, None)
        seen.append(Processor(location.rank, location.thread, location.host, *span))
    return tuple(seen)


def _status(waiting: Waits, split: Split, correction: clocks.Correction) -> dict[str, Status]:
    """Return how each measure came about."""
    if not correction.solved:
        return {"wall_s": "measured", "io_s": "measured"}
    uncertain = waiting.estimated | (split.wait_s < correction.uncertainty_s.max(initial=0.0))
    statuses: dict[str, Status] = {"wall_s": "measured", "io_s": "measured"}
    guesses: dict[str, npt.NDArray[np.bool_]] = {
        "wait_s": uncertain,
        "transfer_s": waiting.estimated,
        "sync_s": waiting.estimated,
    }
    for name, guessed in guesses.items():
        seconds: FloatArray = getattr(split, name)
        share = seconds[guessed].sum() > GUESSED_SHARE * seconds.sum()
        statuses[name] = "estimated" if share else "measured"
    return statuses


def _paradigms(trace: Trace) -> tuple[str, ...]:
    """Return the programming models that the trace shows."""
    used = set(nesting.roles(trace)[np.unique(trace.region[trace.kind == Kind.ENTER])].tolist())
    names = {"mpi": MPI_ROLES, "openmp": THREAD_ROLES}
    return tuple(name for name, group in names.items() if used & set(group))


def _notes(
    trace: Trace, of_clocks: Note | None, lost_collectives: int, lost_messages: int, unobserved: int
) -> tuple[Note, ...]:
    """Return what reading and matching have to say about the quality of the trace."""
    notes = [*trace.notes]
    if of_clocks:
        notes.append(of_clocks)
    if lost_collectives:
        text = f"{lost_collectives} calls of collectives without all their partners; their waiting is estimated"
        notes.append(Note("unmatched collectives", text, 0.05))
    if lost_messages:
        text = f"{lost_messages} ends of messages without a partner in the trace; their waiting is estimated"
        notes.append(Note("unmatched messages", text, 0.05))
    if not phases.shutdown_is_recorded(trace):
        text = "MPI_Finalize is not recorded; what comes after the last recorded call counts as shutdown"
        notes.append(Note("shutdown", text))
    if unobserved:
        text = f"{unobserved} threads without recorded events are not counted"
        how = "record threads, for example with Score-P (scorep --thread=omp)"
        notes.append(Note("unobserved threads", text, 0.1, how))
    return tuple(notes)
