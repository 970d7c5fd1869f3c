"""Second pass over a trace: attribute every second of a window to phase, region, location and iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from advisor.trace import categories, causes, clocks, locations, nesting, phases, teams, time_pieces, waits
from advisor.trace.counts import (
    IDLE_ENDS,
    UNDISTURBED_TRANSFER,
    count_events,
    count_to_first,
    sum_call_bytes,
    sum_undisturbed_transfer,
)
from advisor.trace.events import COMMUNICATING, Trace
from advisor.trace.measure_sums import OUTSIDE, sum_measures, sum_pieces
from advisor.trace.tables import CellLayout, build_cell_layout, number_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import Causes, FloatArray, IntArray
    from advisor.trace.categories import CategorySeconds
    from advisor.trace.clocks import ClockCorrection
    from advisor.trace.nesting import Calls
    from advisor.trace.phases import RunDivision
    from advisor.trace.records import MatchedWindow
    from advisor.trace.time_pieces import TimePieces
    from advisor.trace.waits import ShortestCalls, WaitTimes
    from advisor.trace.windows import TraceWindow

T = TypeVar("T", float, "FloatArray")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The survey of the whole run: clocks, instances and their phases, begin and end."""

    correction: ClockCorrection
    division: RunDivision
    phase_of: IntArray
    iteration_of: IntArray
    shortest: ShortestCalls | None
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class TimeAttribution:
    """The seconds attributed to some instances.

    ``rows`` holds region * 2 + threaded of each row. ``blocks[p]`` maps measures to arrays (rows of ``phase_rows[p]``,
    locations, iterations) of phase p. ``closing_wait_s`` (instances, locations) is what was waited in the closing
    calls. ``guessed`` and ``total`` hold seconds by measure. The call and caller of ``causes`` are rows.
    """

    rows: IntArray
    phase_rows: tuple[IntArray, ...]
    blocks: tuple[Mapping[str, FloatArray], ...]
    closing_wait_s: FloatArray
    outside: Mapping[str, FloatArray]
    counts: Mapping[str, FloatArray]
    causes: Causes
    guessed: Mapping[str, float]
    total: Mapping[str, float]


def attribute_window(found: MatchedWindow, plan: RunPlan, before: int, *, last: bool) -> TimeAttribution:
    """Return what one window holds; ``before`` instances lie before it, and the run ends with it if it is the last."""
    window, correction = found.window, plan.correction
    trace = replace(window.trace, time_s=clocks.correct_times(window.trace, correction))
    calls = found.calls if trace.time_s is window.trace.time_s else nesting.update_call_times(found.calls, trace)
    stopping = phases.find_stopping_calls(trace, calls, nesting.roles_of_regions(trace)[calls.region])
    ended = time_pieces.extend_shutdown_calls(calls, stopping, plan.division.edges_s[-1])
    calls = teams.assign_team_callers(trace, ended, found.teams)
    waiting = waits.split_waits(trace, calls, found.collectives, found.messages, found.teams, stopping, plan.shortest)
    begin, end = (_window_edge_times(window, plan, time_s) for time_s in (window.begin_s, window.end_s))
    pieces = time_pieces.split_time_lines(trace, calls, plan.division, (stopping, begin, end), compiled=window.compiled)
    skipped = max(plan.division.first - before, 0)
    start = max(before - plan.division.first, 0)
    part = slice(start, start + max(len(found.closing) - skipped, 0) + last)
    pieces = _select_own_pieces(pieces, window.is_continued(calls), part.stop)
    rows, row_of_call = number_rows(trace, calls)
    totals = sum_pieces(trace, calls, pieces, row_of_call, len(rows), plan.phase_of, compiled=window.compiled)
    joins = teams.measure_join_waits(trace, calls, found.teams)
    split = categories.split_by_category(
        trace, calls, pieces, totals.by_call_s, waiting, plan.division, joins, compiled=window.compiled
    )
    table = build_cell_layout(
        (rows, row_of_call), totals.place, len(trace.locations), plan.phase_of, plan.iteration_of, part
    )
    flat = sum_measures(trace, calls, pieces, totals.place, split, table, compiled=window.compiled)
    closing = np.vstack((found.closing[skipped:], stopping)) if last else found.closing[skipped:]
    guessed, total = _sum_guessed_seconds(waiting, split, correction)
    return TimeAttribution(
        rows=table.rows,
        phase_rows=table.phase_rows,
        blocks=_split_by_phase(table, flat),
        closing_wait_s=np.where(closing >= 0, waiting.wait_s[np.maximum(closing, 0)], 0.0),
        outside=dict(zip(OUTSIDE, totals.outside_s, strict=True)),
        counts=count_events(trace, calls, row_of_call, len(rows), window.is_continued(calls), compiled=window.compiled)
        | count_to_first(trace, calls, row_of_call, len(rows))
        | _undisturbed_transfer(trace, calls, split, table)
        | _idle_ends(trace, calls, found.teams, table),
        causes=causes.collect_causes(trace, calls, waiting, split, table, compiled=window.compiled),
        guessed=guessed,
        total=total,
    )


def _window_edge_times(window: TraceWindow, plan: RunPlan, time_s: FloatArray) -> FloatArray:
    """Return when each location's part of a window begins or ends, within the run."""
    process = locations.processes_of_locations(window.trace)
    return np.clip(clocks.correct_process_times(plan.correction, time_s, process), plan.begin_s, plan.end_s)


def _select_own_pieces(pieces: TimePieces, continued: npt.NDArray[np.bool_], stop: int) -> TimePieces:
    """Return the pieces of a window itself: its last event begins the next one, and calls that go on begin nothing."""
    lasting = pieces.seconds + pieces.before_s + pieces.after_s != 0
    kept = (pieces.instance < stop) & (lasting | ~np.r_[continued, False][pieces.call])
    return time_pieces.TimePieces(*(getattr(pieces, name)[kept] for name in time_pieces.TimePieces.__slots__))


def _undisturbed_transfer(
    trace: Trace, calls: Calls, split: CategorySeconds, table: CellLayout
) -> dict[str, FloatArray]:
    """Return the count of that name where CPU clocks tell whether other programs held the cores.

    Calls are compared within a window: of a long trace it is a little more or less than in one piece, and nothing of
    calls of which a window holds few.
    """
    mine = np.flatnonzero(split.transfer_s > 0)
    if not trace.cpu_timed or not len(mine):
        return {}
    call, shape = split.call[mine], (len(table.rows), len(trace.locations))
    cell = table.row_of_call[call] * shape[1] + calls.location[call]
    size = sum_call_bytes(trace, calls, COMMUNICATING)[call]
    found = sum_undisturbed_transfer(cell, size, split.transfer_s[mine], shape[0] * shape[1])
    return {UNDISTURBED_TRANSFER: found.reshape(shape)}


def _idle_ends(trace: Trace, calls: Calls, found: teams.ThreadTeams, table: CellLayout) -> dict[str, FloatArray]:
    """Return the count of that name where CPU clocks tell how much of it is less work."""
    if not trace.cpu_timed or not len(found.last_end_s):
        return {}
    return {IDLE_ENDS: teams.sum_idle_ends(trace, calls, found, table.row_of_call, len(table.rows))}


def _split_by_phase(table: CellLayout, flat: Mapping[str, FloatArray]) -> tuple[dict[str, FloatArray], ...]:
    """Return the arrays of each phase."""
    blocks = []
    for phase, rows in enumerate(table.phase_rows):
        shape = (len(rows), table.locations, int(table.iterations[phase]))
        part = slice(int(table.base[phase]), int(table.base[phase + 1]))
        blocks.append({measure: values[part].reshape(shape) for measure, values in flat.items()})
    return tuple(blocks)


def _sum_guessed_seconds(
    waiting: WaitTimes, split: CategorySeconds, correction: ClockCorrection
) -> tuple[dict[str, float], dict[str, float]]:
    """Return how many seconds of each measure are guessed, and all of them."""
    estimated = waiting.estimated[split.call]
    uncertain = estimated | (split.wait_s < correction.uncertainty_s.max(initial=0.0))
    chosen: dict[str, tuple[FloatArray, npt.NDArray[np.bool_]]] = {
        "wait_s": (split.wait_s, uncertain),
        "transfer_s": (split.transfer_s, estimated),
        "sync_s": (split.sync_s, estimated),
    }
    guessed = {name: float(seconds[guess].sum()) for name, (seconds, guess) in chosen.items()}
    return guessed, {name: float(seconds.sum()) for name, (seconds, _) in chosen.items()}
