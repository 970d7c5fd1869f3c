"""The Profile of a trace: all steps of this package, one after the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import InputError
from advisor.model.records import FloatArray, IntArray, Note, Phase, Processor, Profile, Region, Status
from advisor.support.cluster import find_cluster
from advisor.support.compiling import is_worth_compiling
from advisor.trace import clocks, late_starts, locations, phase_names, phases, window_passes
from advisor.trace.events import COLUMNS, Kind, Role, Trace
from advisor.trace.locations import are_first_threads
from advisor.trace.regions import is_process_wait
from advisor.trace.serial import mark_serial_phases
from advisor.trace.sharing import SharedWork
from advisor.trace.time_attribution import RunPlan, TimeAttribution
from advisor.trace.windows import WINDOW_EVENTS, TraceWindows, has_calls

if TYPE_CHECKING:
    from advisor.trace.clocks import ClockCorrection
    from advisor.trace.records import RunSurvey

#: A measure whose guessed seconds exceed this share of all of its seconds is called estimated.
GUESSED_SHARE = 0.01

#: Events from which on loading compiled loops takes less time than it saves, and compiling them anew.
WORTH_LOADING = 1_700_000
WORTH_COMPILING = 10_000_000

MPI_ROLES = tuple(role for role in Role if Role.INIT <= role <= Role.LOCAL)
THREAD_ROLES = (Role.OMP_PARALLEL, Role.OMP_BARRIER, Role.OMP_WORK, Role.OMP_LOCK)


def from_trace(
    trace: Trace,
    path: Path | str | None = None,
    reader: str = "trace",
    window_events: int = WINDOW_EVENTS,
    *,
    compiled: bool | None = None,
) -> Profile:
    """Return the profile of ``trace``; raises ``InputError`` for ``path`` when it holds no run.

    ``reader`` names who read it. No more than about ``window_events`` events are looked at together, where the
    program's own synchronizations allow that. ``compiled`` says whether loops over the events are compiled, which needs
    numba; without it the length of the trace does.
    """
    trace, unobserved = _select_observed(trace)
    if not len(trace.time_s):
        raise InputError(path or trace.program, "the trace holds no events")
    if not has_calls(trace):
        raise InputError(path or trace.program, "the trace records no calls")
    if compiled is None:
        compiled = is_worth_compiling(len(trace.kind), loading=WORTH_LOADING, compiling=WORTH_COMPILING)
    work = _share_work(trace, window_events)
    run = window_passes.survey_run(TraceWindows(trace, window_events, compiled=compiled, cutting=work), work)
    correction = clocks.align_clocks(run.told.constraints, locations.hosts_of_processes(trace), trace.ticks_s)
    correction = clocks.place_islands(trace, run.told.started_s, correction)
    lost = run.told
    if not correction.solved.all():
        comparable = correction.solved[locations.processes_of_locations(trace)]
        run = window_passes.survey_here(run.windows.as_one_window(), comparable)
    plan = _plan_run(trace, run.told, correction, one=len(run.windows) == 1)
    booked = run.attribute(plan)
    named = phase_names.name_phases(trace, plan.division, plan.phase_of, booked, run.told.outermost)
    divided = _build_phases(named, plan, booked)
    if not divided:
        raise InputError(path or trace.program, "the trace records no calls between start-up and shutdown")
    proven = bool((correction.solved & ~correction.unproven).all())
    return Profile(
        program=trace.program,
        run=phase_names.compute_run_id(trace),
        reader=reader,
        actual_s=plan.end_s - plan.begin_s,
        processors=_build_processors(trace, plan),
        regions=_build_regions(trace, booked.rows),
        phases=mark_serial_phases(trace, divided, booked.rows % 2 == 1, booked.closing_wait_s, plan.phase_of)
        if correction.solved.any()
        else _merge_phases(divided, len(booked.rows)),
        status=_measure_status(trace, booked, correction),
        language=trace.language,
        paradigms=_find_paradigms(trace, run.told.used),
        parameters=trace.parameters,
        outside={name: seconds for name, seconds in booked.outside.items() if seconds.any()},
        counts=booked.counts,
        causes=booked.causes,
        notes=_collect_notes(trace, correction, lost, unobserved),
        clock_uncertainty_s=float(correction.uncertainty_s.max(initial=0.0)) if proven else None,
    )


def _share_work(trace: Trace, window_events: int) -> SharedWork | None:
    """Return what spreads work over the cluster that takes part, None where there is none or the trace is short."""
    cluster = find_cluster()
    return SharedWork(cluster, trace) if cluster is not None and len(trace.kind) > window_events else None


def _plan_run(trace: Trace, found: RunSurvey, correction: ClockCorrection, *, one: bool) -> RunPlan:
    """Return what is known of the run before its seconds are booked."""
    occupied = np.flatnonzero(np.diff(trace.first))
    first, last = _event_spans(trace, correction)
    begin, end = float(first[occupied].min()), float(last[occupied].max())
    division = phases.divide_run(trace, found, correction, end)
    return RunPlan(correction, division, *phases.identify_phases(division), None if one else found.shortest, begin, end)


def _select_observed(trace: Trace) -> tuple[Trace, int]:
    """Return the trace without threads of which nothing but their existence was recorded, and how many those are."""
    if are_first_threads(trace).all():
        return trace, 0
    events = np.diff(trace.first)
    nested = np.add.reduceat(np.r_[trace.kind == Kind.ENTER, False].astype(np.int64), trace.first[:-1])
    nested[events == 0] = 0
    seen = are_first_threads(trace) | (nested > 1)
    if seen.all():
        return trace, 0
    kept = np.repeat(seen, events)
    reduced = replace(
        trace,
        locations=tuple(location for location, keep in zip(trace.locations, seen, strict=True) if keep),
        first=np.r_[0, np.cumsum(events[seen])].astype(np.int64),
        **{name: getattr(trace, name)[kept] for name in COLUMNS},
    )
    return reduced, int((~seen).sum())


def _build_phases(
    named: tuple[list[str], list[str | None]], plan: RunPlan, booked: TimeAttribution
) -> tuple[Phase, ...]:
    """Return the phases with their arrays, all of them parallel; ``named`` are their names and closing calls.

    Where nothing is called behind the last synchronization the run ends with it, and no phase comes after it.
    """
    edges = plan.division.edges_s
    result = []
    for p, (name, closer, rows, arrays) in enumerate(zip(*named, booked.phase_rows, booked.blocks, strict=True)):
        mine = np.flatnonzero(plan.phase_of == p)
        result.append(
            Phase(
                name=name,
                kind="parallel",
                regions=rows,
                arrays=arrays,
                closed_by=closer,
                start_s=edges[mine] - plan.begin_s,
                duration_s=edges[mine + 1] - edges[mine],
            )
        )
    return tuple(result if len(booked.phase_rows[-1]) else result[:-1])


def _merge_phases(found: tuple[Phase, ...], rows: int) -> tuple[Phase, ...]:
    """Return one phase of everything: without a common clock there are no synchronizations to divide the run at."""
    arrays = {}
    for name in found[0].arrays:
        total = np.zeros((rows, found[0].arrays[name].shape[1], 1))
        for phase in found:
            total[phase.regions, :, 0] += phase.arrays[name].sum(axis=2)
        arrays[name] = total
    return (Phase(name="the whole run", kind="whole", regions=np.arange(rows), arrays=arrays),)


def _build_regions(trace: Trace, rows: IntArray) -> tuple[Region, ...]:
    """Return the regions of the profile, one for each row; the program's root has the program's name."""
    result = []
    for row in rows:
        region = trace.regions[row // 2]
        name = trace.program if region.role == Role.ROOT else region.name
        result.append(Region(name, region.file, region.line, threaded=bool(row % 2)))
    return tuple(result)


def _event_spans(trace: Trace, correction: ClockCorrection) -> tuple[FloatArray, FloatArray]:
    """Return when the first and the last event of each location took place, on the common clock, seconds."""
    process, last = locations.processes_of_locations(trace), len(trace.time_s) - 1
    edges = np.minimum(trace.first[:-1], last), np.maximum(trace.first[1:] - 1, 0)
    begin, end = (clocks.correct_process_times(correction, trace.time_s[edge], process) for edge in edges)
    return begin, end


def _build_processors(trace: Trace, plan: RunPlan) -> tuple[Processor, ...]:
    """Return the processors with the time during which they were seen."""
    occupied = np.diff(trace.first) > 0
    spans = np.stack(_event_spans(trace, plan.correction), axis=1) - plan.begin_s
    return tuple(
        Processor(location.rank, location.thread, location.host, *(span if seen else (None, None)))
        for location, seen, span in zip(trace.locations, occupied.tolist(), spans.tolist(), strict=True)
    )


def _measure_status(trace: Trace, booked: TimeAttribution, correction: ClockCorrection) -> dict[str, Status]:
    """Return how each measure came about."""
    statuses: dict[str, Status] = {"wall_s": "measured", "io_s": "measured"}
    if trace.cpu_timed:
        statuses |= {"cpu_s": "measured", "os_s": "measured"}
    unknown = not bool((correction.solved & ~correction.unproven).all())
    for name in booked.total:
        guessed = unknown or booked.guessed[name] > GUESSED_SHARE * booked.total[name]
        statuses[name] = "estimated" if guessed else "measured"
    return statuses


def _find_paradigms(trace: Trace, used: IntArray) -> tuple[str, ...]:
    """Return the programming models that the trace shows."""
    regions = (trace.regions[number] for number in used.tolist())
    seen = {region.role for region in regions if not is_process_wait(region.name)}
    names = {"mpi": MPI_ROLES, "openmp": THREAD_ROLES}
    return tuple(name for name, group in names.items() if seen & set(group))


def _collect_notes(trace: Trace, correction: ClockCorrection, found: RunSurvey, unobserved: int) -> tuple[Note, ...]:
    """Return what reading and matching have to say about the quality of the trace."""
    of_clocks = clocks.describe_clocks(correction, np.unique(locations.ranks_of_locations(trace)))
    notes = [*trace.notes, *filter(None, (of_clocks, late_starts.note_late_starts(trace)))]
    if found.lost_collectives:
        text = f"collective calls without all their partners: {found.lost_collectives:,}; their waiting is estimated"
        notes.append(Note("unmatched collectives", text, 0.05))
    if found.lost_messages:
        text = f"sends and receives without a partner: {found.lost_messages:,}; their waiting is estimated"
        notes.append(Note("unmatched messages", text, 0.05))
    if not phases.is_shutdown_recorded(trace):
        text = "MPI_Finalize is not recorded; what comes after the last recorded call counts as shutdown"
        notes.append(Note("shutdown", text))
    if unobserved:
        text = f"threads without recorded events, not counted: {unobserved:,}"
        how = "record threads, for example with Score-P (scorep --thread=omp)"
        notes.append(Note("unobserved threads", text, 0.1, how))
    return tuple(notes)
