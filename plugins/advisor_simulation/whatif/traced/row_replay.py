"""How long rows take: their steps, laid out for the fast engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor_simulation.replay import engine, numba_compiler
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Op
from advisor_simulation.replay.steps import Step, Steps
from advisor_simulation.whatif.traced.rows import FIRST_MARK, ReplayRows

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Numbers = npt.NDArray[np.int32]
    Kinds = npt.NDArray[np.uint8]
    _Layout = tuple[IntArray, IntArray, tuple[Kinds, FloatArray, Numbers]]

#: Steps of a row at most: what it marks, tells, takes itself, and waits for.
STEPS: Final = 4
#: Numbers as compiled loops know them.
_BURST, _FIXED, _NOTE, _ARRIVE, _AFTER = (
    int(each) for each in (Step.BURST, Step.FIXED, Step.NOTE, Step.ARRIVE, Step.AFTER)
)
_JOIN, _OF_BURST, _FIRST = int(Op.JOIN), int(Op.BURST), FIRST_MARK


@dataclass(frozen=True, slots=True)
class RowReplay:
    """A replay of rows: ``time_s``, and the ``end_s`` of each row."""

    time_s: float
    end_s: FloatArray


def replay_rows(rows: ReplayRows) -> RowReplay:
    """Return the replay of sorted rows; raises ``DeadlockError`` where they wait for each other."""
    steps = _build_steps(rows)
    found = engine.replay_steps(engine.order_steps(steps, None), Network())
    ended = np.where(steps.last >= 0, found.end_s[steps.last], steps.start_s[rows.line])
    return RowReplay(found.time_s, ended)


def run_time_s(rows: ReplayRows, replays: int) -> float:
    """Return how long sorted rows take, seconds; raises ``DeadlockError``.

    ``replays`` is how many times this will be asked: whether compiling pays.
    """
    plan = engine.order_steps(_build_steps(rows, replays), None, replays)
    return engine.replay_steps(plan, Network(), keep=False, replays=replays).time_s


def _build_steps(rows: ReplayRows, replays: int = 1) -> Steps:
    program = rows.program
    worth = len(rows) * replays >= numba_compiler.WORTH_COMPILING and numba_compiler.has_numba()
    first, last, columns = _lay_out_by_loop(rows) if worth else _lay_out_steps(rows)
    started = np.zeros(program.ranks) if program.start_s is None else program.start_s
    return Steps(
        first, *columns, last, len(program.source) + rows.marks, _count_arrivals(rows), np.zeros((0, 2)),
        np.zeros(0, dtype=bool), np.tile(started, 2),
    )  # fmt: skip


def _lay_out_steps(rows: ReplayRows) -> _Layout:
    """Return where the steps of each line begin, the last step of each row, and kind, cost and condition of steps."""
    messages, none = 2 * len(rows.program.source), np.full(len(rows), -1)
    joins, bursts = rows.op_mask(Op.JOIN), rows.op_mask(Op.BURST)
    kind = np.stack([
        np.full(len(rows), Step.NOTE), np.where(joins, Step.ARRIVE, Step.NOTE),
        np.where(bursts, Step.BURST, Step.FIXED), np.where(rows.awaits == -1, Step.FIXED, Step.AFTER),
    ], axis=1)  # fmt: skip
    cost = np.stack([np.zeros(len(rows)), np.zeros(len(rows)), rows.seconds, rows.wait_s], axis=1)
    told, wanted = (np.where(each >= messages, each + 2 * rows.marks, each) for each in (rows.tells, rows.awaits))
    wanted = np.where(wanted <= FIRST_MARK, messages + 2 * (FIRST_MARK - wanted), wanted)
    noted = np.where(rows.mark >= 0, messages + 2 * rows.mark, -1)
    condition = np.stack([noted, told, none, wanted], axis=1)
    does = ((condition >= 0) | (cost != 0)).ravel()
    counted = np.r_[0, np.cumsum(does)]
    first = counted[np.searchsorted(rows.line, np.arange(2 * rows.program.ranks + 1)) * STEPS].astype(np.int64)
    last = counted[STEPS::STEPS] - 1
    columns = kind.ravel()[does].astype(np.uint8), cost.ravel()[does], condition.ravel()[does].astype(np.int32)
    return first, np.where(last >= first[rows.line], last, -1), columns


def _lay_out_by_loop(rows: ReplayRows) -> _Layout:
    """Return what ``_lay_out_steps`` does, by a compiled loop."""
    room = sum(int(np.count_nonzero(each)) for each in (rows.mark >= 0, rows.tells >= 0, rows.seconds))
    room += int(np.count_nonzero((rows.awaits != -1) | (rows.wait_s != 0.0)))
    first, last = np.empty(2 * rows.program.ranks + 1, dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    columns = np.empty(room, dtype=np.uint8), np.empty(room), np.empty(room, dtype=np.int32)
    lay_out: Callable[..., int] = numba_compiler.compile_function(lay_out_steps)
    lay_out(*loop_columns(rows), first, last, columns)
    return first, last, columns


def loop_columns(rows: ReplayRows) -> tuple[Any, ...]:
    """Return what ``lay_out_steps`` needs of rows."""
    columns = (rows.line, rows.op, rows.mark, rows.tells, rows.seconds, rows.awaits, rows.wait_s)
    return *(np.ascontiguousarray(column) for column in columns), (2 * len(rows.program.source), 2 * rows.marks)


def _count_arrivals(rows: ReplayRows) -> Numbers:
    """Return how many arrivals each meeting waits for: all of them."""
    joins = np.flatnonzero(rows.op_mask(Op.JOIN))
    arrive = joins[rows.tells[joins] >= 2 * len(rows.program.source)]
    counted = np.bincount(rows.link[arrive], minlength=len(rows.program.collectives))
    return counted.astype(np.int32)


def lay_out_steps(
    line: IntArray,
    op: Kinds,
    mark: Numbers,
    tells: Numbers,
    seconds: FloatArray,
    awaits: Numbers,
    wait_s: FloatArray,
    counts: tuple[int, int],
    first: IntArray,
    last: IntArray,
    steps: tuple[Kinds, FloatArray, Numbers],
) -> int:
    """Fill ``first`` (lines + 1,), ``last`` (rows,) and the columns of the steps; return how many steps there are.

    ``counts`` are the conditions of messages, two for each, and of marks. Steps that neither wait, tell nor take time
    are left out.
    """
    of_messages, of_marks = counts
    kinds, costs, conditions = steps
    n = row = 0
    for number in range(len(first) - 1):
        first[number] = n
        while row < len(line) and line[row] == number:
            if mark[row] >= 0:
                kinds[n], costs[n], conditions[n] = _NOTE, 0.0, of_messages + 2 * mark[row]
                n += 1
            if tells[row] >= 0:
                what = tells[row]
                kinds[n] = _ARRIVE if op[row] == _JOIN else _NOTE
                costs[n], conditions[n] = 0.0, what + of_marks if what >= of_messages else what
                n += 1
            if seconds[row] != 0.0:
                kinds[n] = _BURST if op[row] == _OF_BURST else _FIXED
                costs[n], conditions[n] = seconds[row], -1
                n += 1
            if awaits[row] != -1 or wait_s[row] != 0.0:
                what = awaits[row]
                if what >= of_messages:
                    what += of_marks
                elif what <= _FIRST:
                    what = of_messages + 2 * (_FIRST - what)
                kinds[n] = _FIXED if what == -1 else _AFTER
                costs[n], conditions[n] = wait_s[row], what
                n += 1
            last[row] = n - 1 if n > first[number] else -1
            row += 1
    first[len(first) - 1] = n
    return n
