"""The second look at a trace: every second of a window booked by phase, region, location and iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from advisor.support.grouping import sums
from advisor.trace import accounts, categories, causes, clocks, locations, nesting, phases, teams, waits
from advisor.trace.counts import count
from advisor.trace.tables import lay_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from advisor.model.records import Causes, FloatArray, IntArray
    from advisor.trace.accounts import Pieces
    from advisor.trace.categories import Split
    from advisor.trace.clocks import Correction
    from advisor.trace.events import Trace
    from advisor.trace.nesting import Calls
    from advisor.trace.phases import Division
    from advisor.trace.records import Matched
    from advisor.trace.tables import Table
    from advisor.trace.waits import Shortest, Waits
    from advisor.trace.windows import Window

T = TypeVar("T", float, "FloatArray")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of the whole run: its clocks, its instances and their phases, when it begins and ends."""

    correction: Correction
    division: Division
    phase_of: IntArray
    iteration_of: IntArray
    shortest: Shortest | None
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Booking:
    """What was booked of some instances.

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


def book(found: Matched, plan: Plan, before: int, *, last: bool) -> Booking:
    """Return what one window holds; ``before`` instances lie before it, and the run ends with it if it is the last."""
    window, correction = found.window, plan.correction
    trace = replace(window.trace, time_s=clocks.correct_times(window.trace, correction))
    calls = found.calls if trace.time_s is window.trace.time_s else nesting.retimed(found.calls, trace)
    stopping = phases.stopping_calls(trace, calls, nesting.roles(trace)[calls.region])
    ended = accounts.waiting_for_the_end(calls, stopping, plan.division.edges_s[-1])
    calls = teams.adopted(trace, ended, found.teams)
    waiting = waits.split(trace, calls, found.joint, found.messages, found.teams, stopping, plan.shortest)
    begin, end = (_on_common_clock(window, plan, time_s) for time_s in (window.begin_s, window.end_s))
    pieces = accounts.cut(trace, calls, plan.division, (stopping, begin, end), compiled=window.compiled)
    skipped = max(plan.division.first - before, 0)
    start = max(before - plan.division.first, 0)
    part = slice(start, start + max(len(found.closing) - skipped, 0) + last)
    pieces = _own(pieces, window.continued(calls), part.stop)
    split = categories.split(trace, calls, pieces, waiting, plan.division, teams.join_waits(trace, calls, found.teams))
    table = lay_out(trace, calls, pieces, plan.phase_of, plan.iteration_of, part)
    flat = _measure(trace, calls, pieces, split, table)
    closing = np.vstack((found.closing[skipped:], stopping)) if last else found.closing[skipped:]
    guessed, total = _guesses(waiting, split, correction)
    return Booking(
        rows=table.rows,
        phase_rows=table.phase_rows,
        blocks=_blocks(table, flat),
        closing_wait_s=np.where(closing >= 0, waiting.wait_s[np.maximum(closing, 0)], 0.0),
        outside=accounts.outside(trace, calls, pieces),
        counts=count(trace, calls, table.row_of_call, len(table.rows), window.continued(calls)),
        causes=causes.collect(trace, calls, waiting, split, table, compiled=window.compiled),
        guessed=guessed,
        total=total,
    )


def merged(parts: Sequence[Booking]) -> Booking:
    """Return what all windows, in the order of time, hold together."""
    if len(parts) == 1:
        return parts[0]
    rows = np.unique(np.concatenate([part.rows for part in parts]))
    places = [np.searchsorted(rows, part.rows) for part in parts]
    phase_rows, blocks = [], []
    for phase in range(max(len(part.phase_rows) for part in parts)):
        own = [place[part.phase_rows[phase]] for part, place in zip(parts, places, strict=True)]
        phase_rows.append(np.unique(np.concatenate(own)))
        blocks.append(_joined(phase_rows[-1], own, [part.blocks[phase] for part in parts]))
    return Booking(
        rows=rows,
        phase_rows=tuple(phase_rows),
        blocks=tuple(blocks),
        closing_wait_s=np.vstack([part.closing_wait_s for part in parts]),
        outside=_added([part.outside for part in parts]),
        counts=_counted(parts, places, len(rows)),
        causes=causes.together([part.causes for part in parts], places),
        guessed=_added([part.guessed for part in parts]),
        total=_added([part.total for part in parts]),
    )


def _on_common_clock(window: Window, plan: Plan, time_s: FloatArray) -> FloatArray:
    """Return when each location's part of a window begins or ends, within the run."""
    process = locations.processes(window.trace)
    return np.clip(clocks.correct_process_times(plan.correction, time_s, process), plan.begin_s, plan.end_s)


def _own(pieces: Pieces, continued: npt.NDArray[np.bool_], stop: int) -> Pieces:
    """Return the pieces of a window itself: its last event begins the next one, and calls that go on begin nothing."""
    lasting = pieces.seconds + pieces.before_s + pieces.after_s != 0
    kept = (pieces.instance < stop) & (lasting | ~np.r_[continued, False][pieces.call])
    return accounts.Pieces(*(getattr(pieces, name)[kept] for name in accounts.Pieces.__slots__))


def _measure(trace: Trace, calls: Calls, pieces: Pieces, split: Split, table: Table) -> dict[str, FloatArray]:
    """Return the flat arrays of all measures."""
    booked = accounts.inside_phases(trace, calls, pieces)
    row = table.row_of_call[pieces.call[booked]]
    cell = table.cells(row, pieces.instance[booked], pieces.location[booked])
    flat = {"wall_s": sums(cell, pieces.seconds[booked], table.size)}
    inside = split.wait_s + split.sync_s + split.transfer_s + split.io_s != 0
    call, instance = split.call[inside], split.instance[inside]
    cell = table.cells(table.row_of_call[call], instance, calls.location[call])
    for name in ("wait_s", "sync_s", "transfer_s", "io_s"):
        flat[name] = sums(cell, getattr(split, name)[inside], table.size)
    return flat


def _blocks(table: Table, flat: Mapping[str, FloatArray]) -> tuple[dict[str, FloatArray], ...]:
    """Return the arrays of each phase."""
    blocks = []
    for phase, rows in enumerate(table.phase_rows):
        shape = (len(rows), table.locations, int(table.iterations[phase]))
        part = slice(int(table.base[phase]), int(table.base[phase + 1]))
        blocks.append({measure: values[part].reshape(shape) for measure, values in flat.items()})
    return tuple(blocks)


def _guesses(waiting: Waits, split: Split, correction: Correction) -> tuple[dict[str, float], dict[str, float]]:
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


def _joined(
    rows: IntArray, own: Sequence[IntArray], blocks: Sequence[Mapping[str, FloatArray]]
) -> dict[str, FloatArray]:
    """Return the arrays of one phase, iteration after iteration; ``own`` are the rows of each part."""
    result = {}
    for measure in blocks[0]:
        arrays = [block[measure] for block in blocks]
        whole = np.zeros((len(rows), arrays[0].shape[1], sum(array.shape[2] for array in arrays)))
        done = 0
        for mine, array in zip(own, arrays, strict=True):
            whole[np.searchsorted(rows, mine), :, done : done + array.shape[2]] = array
            done += array.shape[2]
        result[measure] = whole
    return result


def _added(parts: Sequence[Mapping[str, T]]) -> dict[str, T]:
    """Return the sums of what bears the same name."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: reduce(add, [part[name] for part in parts if name in part]) for name in names}


def _counted(parts: Sequence[Booking], places: Sequence[IntArray], rows: int) -> dict[str, FloatArray]:
    """Return the counts over all rows."""
    spread = []
    for part, place in zip(parts, places, strict=True):
        wide = {name: np.zeros((rows, values.shape[1])) for name, values in part.counts.items()}
        for name, values in part.counts.items():
            wide[name][place] = values
        spread.append(wide)
    return _added(spread)
