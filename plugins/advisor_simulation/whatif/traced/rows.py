"""A recorded run as rows that can be moved, dropped, added and made longer or shorter, and replayed.

Each operation has up to four steps: it marks a moment, tells others that it is there, takes its own time, and waits.
Unchanged rows replay to the recorded run. The costs are the recorded ones, so a changed program is replayed on
the machine that was measured. Beside the line of each rank there is one for communication in the background.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay import engine, numba_compiler
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import POSTING, RECEIVED, SENDING, Op, Program
from advisor_simulation.replay.recording import build_recorded_steps
from advisor_simulation.replay.steps import Step, Steps
from advisor_simulation.replay.waits import operation_starts

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Mask = npt.NDArray[np.bool_]
    _Layout = tuple[IntArray, IntArray, tuple[npt.NDArray[np.uint8], FloatArray, npt.NDArray[np.int32]]]
    Kinds = npt.NDArray[np.uint8]


#: The steps of a row: what it marks, tells, takes itself, and waits for.
MARK, TELL, OWN, WAIT = range(4)
STEPS: Final = 4
#: What a rank waits in for its communication in the background.
WAITING: Final = "MPI_Waitall"


@dataclass(frozen=True, slots=True)
class ReplayRows:
    """Rows (n,) in the order of ``line`` and ``key``; line r is rank r, line ranks + r communicates for it meanwhile.

    ``op``, ``value``, ``link``, ``call`` and ``region`` as in ``Program``. ``kind``, ``cost`` and ``condition`` (n, 4)
    are steps of the replay; the conditions of ``marks`` are -2 - 2 k.
    """

    program: Program
    line: IntArray
    key: FloatArray
    op: npt.NDArray[np.uint8]
    value: FloatArray
    link: npt.NDArray[np.int32]
    call: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    cost: FloatArray
    condition: IntArray
    marks: int = 0

    def __len__(self) -> int:
        return len(self.op)

    def select_rows(self, kept: Mask | IntArray) -> ReplayRows:
        """Return some of the rows."""
        at = np.flatnonzero(kept) if kept.dtype == bool else kept
        # take copies rows of several numbers far faster than an index does
        columns: dict[str, Any] = {name: getattr(self, name).take(at, axis=0) for name in _COLUMNS}
        return replace(self, **columns)

    def add_rows(self, *more: ReplayRows) -> ReplayRows:
        """Return these rows and ``more`` of them."""
        parts = (self, *more)
        columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}
        return replace(self, marks=max(part.marks for part in parts), **columns)

    def sort_rows(self) -> ReplayRows:
        """Return the rows in order."""
        return self.select_rows(np.lexsort((self.key, self.line)))

    def op_mask(self, *ops: Op) -> Mask:
        """Return which rows are one of these operations."""
        wanted = np.zeros(256, dtype=np.bool_)
        wanted[list(ops)] = True
        return wanted[self.op]

    def region_mask(self, belongs: Callable[[str], bool]) -> Mask:
        """Return which rows are of a region whose name ``belongs``; those of none are not."""
        wanted = np.array([*map(belongs, self.program.names), False])
        return wanted[self.region]

    @property
    def seconds(self) -> FloatArray:
        """What each row takes itself, apart from waiting."""
        return self.cost[:, OWN]

    def scale_seconds(self, factor: FloatArray) -> ReplayRows:
        """Return the rows that take so many times as long themselves; ``factor`` (rows,)."""
        cost = self.cost.copy()
        cost[:, OWN] *= factor
        return replace(self, cost=cost)


_COLUMNS: Final = tuple(each.name for each in fields(ReplayRows) if each.name not in ("program", "marks"))


@dataclass(frozen=True, slots=True)
class RowReplay:
    """A replay of rows: ``time_s``, and the ``end_s`` of each row."""

    time_s: float
    end_s: FloatArray


def build_rows(program: Program) -> ReplayRows:
    """Return the rows of a recorded program; raises ``UsageError`` where the recording holds no times.

    A receive never ends before its send begins, and nobody leaves a meeting before the last one is there, also where
    the recorded run did not have to wait for that.
    """
    if WAITING not in program.names:
        program = replace(program, names=(*program.names, WAITING))
    steps = build_recorded_steps(program)
    count = len(program.op)
    kind, cost, condition = (np.zeros((count, STEPS)) for _ in range(3))
    for full, column in ((kind, steps.kind), (cost, steps.value), (condition, steps.condition)):
        full[:, TELL:] = column.reshape(count, STEPS - 1)
    kind[:, MARK], condition[:, MARK] = Step.FIXED, -1
    made = ReplayRows(
        program, program.rank.astype(np.int64), np.arange(count, dtype=np.float64), program.op.copy(),
        program.value.copy(), program.link.copy(), program.call.copy(), program.region.copy(), kind.astype(np.uint8),
        cost, condition.astype(np.int64),
    )  # fmt: skip
    return _delay_last_joins(_add_causality(made))


def _add_causality(rows: ReplayRows) -> ReplayRows:
    """Let receives that found their message there wait for its send, which changes nothing yet."""
    free = rows.op_mask(*RECEIVED) & (rows.condition[:, WAIT] == -1)
    kind, condition = rows.kind.copy(), rows.condition.copy()
    kind[free, WAIT], condition[free, WAIT] = Step.AFTER, 2 * rows.link[free].astype(np.int64)
    return replace(rows, kind=kind, condition=condition)


def _delay_last_joins(rows: ReplayRows) -> ReplayRows:
    """Let the last one at a meeting of all take its time from when all are there, as the others do."""
    program, link = rows.program, rows.link.astype(np.int64)
    joint = np.isin(program.collectives.role, (Role.BARRIER, Role.ALL_TO_ALL))
    joins = np.flatnonzero(rows.op_mask(Op.JOIN))
    joins = joins[joint[link[joins]]]
    begun = operation_starts(program, program.end_s if program.end_s is not None else np.zeros(len(rows)))
    latest = np.full(len(program.collectives), -np.inf)
    np.maximum.at(latest, link[joins], begun[joins])
    last = joins[(rows.condition[joins, WAIT] == -1) & (begun[joins] >= latest[link[joins]])]
    kind, cost, condition = rows.kind.copy(), rows.cost.copy(), rows.condition.copy()
    kind[last, WAIT], condition[last, WAIT] = Step.AFTER, 2 * len(program.source) + link[last]
    cost[last, WAIT], cost[last, OWN] = cost[last, OWN], 0.0
    return replace(rows, kind=kind, cost=cost, condition=condition)


def replay_rows(rows: ReplayRows, replays: int = 1) -> RowReplay:
    """Return the replay of sorted rows; raises ``DeadlockError`` where they wait for each other.

    ``replays`` is how many times this will be asked: whether compiling pays.
    """
    steps = _build_steps(rows, replays)
    found = engine.replay_steps(engine.order_steps(steps, None, replays), Network(), replays=replays)
    ended = np.where(steps.last >= 0, found.end_s[steps.last], steps.start_s[rows.line])
    return RowReplay(found.time_s, ended)


def run_time_s(rows: ReplayRows, replays: int = 1) -> float:
    """Return how long sorted rows take, seconds; raises ``DeadlockError``."""
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
    messages, wanted = len(rows.program.source), rows.condition
    condition = np.where(wanted >= 2 * messages, wanted + 2 * rows.marks, wanted)
    condition = np.where(wanted <= -2, 2 * messages - wanted - 2, condition)
    does = ((condition >= 0) | (rows.cost != 0)).ravel()
    counted = np.r_[0, np.cumsum(does)]
    first = counted[np.searchsorted(rows.line, np.arange(2 * rows.program.ranks + 1)) * STEPS].astype(np.int64)
    last = counted[STEPS::STEPS] - 1
    columns = rows.kind.ravel()[does], rows.cost.ravel()[does], condition.ravel()[does].astype(np.int32)
    return first, np.where(last >= first[rows.line], last, -1), columns


def _lay_out_by_loop(rows: ReplayRows) -> _Layout:
    """Return what ``_lay_out_steps`` does, by a compiled loop."""
    room = len(rows) * STEPS
    first, last = np.empty(2 * rows.program.ranks + 1, dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    columns = np.empty(room, dtype=np.uint8), np.empty(room), np.empty(room, dtype=np.int32)
    counts = 2 * len(rows.program.source), 2 * rows.marks
    lay_out = numba_compiler.compile_function(lay_out_steps)
    count = lay_out(
        np.ascontiguousarray(rows.line), np.ascontiguousarray(rows.kind), np.ascontiguousarray(rows.cost),
        np.ascontiguousarray(rows.condition), counts, first, last, columns,
    )  # fmt: skip
    kind, cost, condition = columns
    return first, last, (kind[:count], cost[:count], condition[:count])


def _count_arrivals(rows: ReplayRows) -> npt.NDArray[np.int32]:
    """Return how many arrivals each meeting waits for: all that there are."""
    arrive = (rows.condition[:, TELL] >= 2 * len(rows.program.source)) & rows.op_mask(Op.JOIN)
    counted = np.bincount(rows.link[arrive], minlength=len(rows.program.collectives))
    return counted.astype(np.int32)


def to_program(rows: ReplayRows) -> tuple[Program, IntArray]:
    """Return the lines of the ranks as a program, and which rows its operations are."""
    mine = np.flatnonzero(rows.line < rows.program.ranks)
    kept = rows.select_rows(mine)
    first = np.searchsorted(kept.line, np.arange(rows.program.ranks + 1))
    made = replace(
        rows.program, first=first.astype(np.int64), op=kept.op, value=kept.value, link=kept.link, call=kept.call,
        region=kept.region, end_s=None,
    )  # fmt: skip
    return made, mine


def message_mask(rows: ReplayRows) -> Mask:
    """Return which rows take part in messages."""
    return rows.op_mask(*SENDING, *POSTING, *RECEIVED, Op.SENT)


def lay_out_steps(
    line: IntArray,
    kind: Kinds,
    cost: FloatArray,
    condition: IntArray,
    counts: tuple[int, int],
    first: IntArray,
    last: IntArray,
    steps: tuple[Kinds, FloatArray, npt.NDArray[np.int32]],
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
            for step in range(kind.shape[1]):
                what = condition[row, step]
                if what >= of_messages:
                    what += of_marks
                elif what <= -2:
                    what = of_messages - what - 2
                if what >= 0 or cost[row, step] != 0.0:
                    kinds[n], costs[n], conditions[n] = kind[row, step], cost[row, step], what
                    n += 1
            last[row] = n - 1 if n > first[number] else -1
            row += 1
    first[len(first) - 1] = n
    return n
