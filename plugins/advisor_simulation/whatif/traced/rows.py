"""A recorded run as rows that can be moved, dropped, added and made longer or shorter, and replayed.

Each operation has up to four steps: it marks a moment, tells others that it is there, takes its own time, and waits.
Unchanged rows replay to the recorded run. The costs are the recorded ones, so a changed program is replayed on
the machine that was measured. Beside the line of each rank there is one for communication in the background.
"""

from __future__ import annotations

from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from advisor.model.record_class import dataclass
from advisor.trace.events import Role
from advisor_simulation.replay import engine, numba_compiler
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import POSTING, RECEIVED, SENDING, Op, Program
from advisor_simulation.replay.recording import build_recorded_steps
from advisor_simulation.replay.steps import Step, Steps
from advisor_simulation.replay.waits import operation_starts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Mask = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[np.int32]
    Kinds = npt.NDArray[np.uint8]
    _Layout = tuple[IntArray, IntArray, tuple[Kinds, FloatArray, Numbers]]

R = TypeVar("R")
#: Steps of a row at most: what it marks, tells, takes itself, and waits for.
STEPS: Final = 4
#: A row that waits for mark k has ``FIRST_MARK`` - k as what it waits for.
FIRST_MARK: Final = -2
#: Steps of a recorded operation: it tells, takes its own time, and waits.
RECORDED: Final = 3
#: Numbers as compiled loops know them.
_BURST, _FIXED, _NOTE, _ARRIVE, _AFTER = (
    int(each) for each in (Step.BURST, Step.FIXED, Step.NOTE, Step.ARRIVE, Step.AFTER)
)
_JOIN, _OF_BURST, _FIRST = int(Op.JOIN), int(Op.BURST), FIRST_MARK
#: What a rank waits in for its communication in the background.
WAITING: Final = "MPI_Waitall"


@dataclass(frozen=True, slots=True)
class ReplayRows:
    """Rows (n,) in the order of ``line`` and ``key``; line r is rank r, line ranks + r communicates for it meanwhile.

    ``op``, ``value``, ``link``, ``call`` and ``region`` as in ``Program``. A row notes the ``mark`` k (-1: none), fulfils
    the condition ``tells`` (-1: none), takes ``seconds`` itself, and ends ``wait_s`` after the condition ``awaits``: one
    of the replay, -2 - k for mark k, or -1 for none, after ``wait_s`` in any case. Of ``marks`` there are that many.
    """

    program: Program
    line: IntArray
    key: FloatArray
    op: Kinds
    value: FloatArray
    link: Numbers
    call: Numbers
    region: Numbers
    mark: Numbers
    tells: Numbers
    seconds: FloatArray
    awaits: Numbers
    wait_s: FloatArray
    marks: int = 0
    _told: dict[Hashable, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.op)

    def select_rows(self, kept: Mask | IntArray) -> ReplayRows:
        """Return some of the rows."""
        at = np.flatnonzero(kept) if kept.dtype == bool else kept
        columns: dict[str, Any] = {name: getattr(self, name).take(at) for name in _COLUMNS}
        return replace(self, **columns)

    def add_rows(self, *more: ReplayRows) -> ReplayRows:
        """Return these rows and ``more`` of them, in order."""
        parts = (self, *more)
        order = np.lexsort([np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "line")])
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]).take(order) for name in _COLUMNS
        }
        return replace(self, marks=max(part.marks for part in parts), **columns)

    def sort_rows(self) -> ReplayRows:
        """Return the rows in order."""
        return self.select_rows(np.lexsort((self.key, self.line)))

    def ask_once(self, what: Hashable, compute: Callable[[], R]) -> R:
        """Return what ``compute`` tells of these rows, the same as last time where ``what`` was asked for before.

        Many changes are tried on the same rows, and ask the same of them.
        """
        if what not in self._told:
            self._told[what] = compute()
        found: R = self._told[what]
        return found

    def op_mask(self, *ops: Op) -> Mask:
        """Return which rows are one of these operations; not to be written to."""
        return self.ask_once(ops, lambda: self._find_ops(ops))

    def _find_ops(self, ops: tuple[Op, ...]) -> Mask:
        wanted = np.zeros(256, dtype=np.bool_)
        wanted[list(ops)] = True
        return protect(wanted[self.op])

    def region_mask(self, belongs: Callable[[str], bool]) -> Mask:
        """Return which rows are of a region whose name ``belongs``; those of none are not."""
        wanted = np.array([*map(belongs, self.program.names), False])
        return wanted[self.region]

    def scale_seconds(self, factor: FloatArray) -> ReplayRows:
        """Return the rows that take so many times as long themselves; ``factor`` (rows,)."""
        return replace(self, seconds=self.seconds * factor)


_COLUMNS: Final = tuple(each.name for each in fields(ReplayRows) if each.name not in ("program", "marks", "_told"))


def protect(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array that several may hold: nobody can write to it."""
    array.flags.writeable = False
    return array


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
    tells, awaits = steps.condition[::RECORDED].copy(), steps.condition[RECORDED - 1 :: RECORDED].copy()
    made = ReplayRows(
        program, program.rank.astype(np.int64), np.arange(len(program.op), dtype=np.float64), program.op, program.value,
        program.link, program.call, program.region, np.full(len(program.op), -1, dtype=np.int32), tells,
        steps.value[1::RECORDED].copy(), awaits, steps.value[RECORDED - 1 :: RECORDED].copy(),
    )  # fmt: skip
    return _delay_last_joins(_add_causality(made))


def _add_causality(rows: ReplayRows) -> ReplayRows:
    """Let receives that found their message there wait for its send, which changes nothing yet."""
    free = rows.op_mask(*RECEIVED) & (rows.awaits == -1)
    return replace(rows, awaits=np.where(free, 2 * rows.link, rows.awaits))


def _delay_last_joins(rows: ReplayRows) -> ReplayRows:
    """Let the last one at a meeting of all take its time from when all are there, as the others do."""
    program, link = rows.program, rows.link.astype(np.int64)
    joint = np.isin(program.collectives.role, (Role.BARRIER, Role.ALL_TO_ALL))
    joins = np.flatnonzero(rows.op_mask(Op.JOIN))
    joins = joins[joint[link[joins]]]
    begun = operation_starts(program, program.end_s if program.end_s is not None else np.zeros(len(rows)))
    latest = np.full(len(program.collectives), -np.inf)
    np.maximum.at(latest, link[joins], begun[joins])
    last = joins[(rows.awaits[joins] == -1) & (begun[joins] >= latest[link[joins]])]
    seconds, wait_s, awaits = rows.seconds.copy(), rows.wait_s.copy(), rows.awaits.copy()
    awaits[last] = 2 * len(program.source) + link[last]
    wait_s[last], seconds[last] = seconds[last], 0.0
    return replace(rows, seconds=seconds, wait_s=wait_s, awaits=awaits)


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
    messages, none = 2 * len(rows.program.source), np.full(len(rows), -1)
    joins, bursts = rows.op_mask(Op.JOIN), rows.op_mask(Op.BURST)
    kind = np.stack([
        np.full(len(rows), Step.NOTE), np.where(joins, Step.ARRIVE, Step.NOTE), np.where(bursts, Step.BURST, Step.FIXED),
        np.where(rows.awaits == -1, Step.FIXED, Step.AFTER),
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
    numba_compiler.compile_function(lay_out_steps)(*loop_columns(rows), first, last, columns)
    return first, last, columns


def loop_columns(rows: ReplayRows) -> tuple[Any, ...]:
    """Return what ``lay_out_steps`` needs of rows."""
    columns = (rows.line, rows.op, rows.mark, rows.tells, rows.seconds, rows.awaits, rows.wait_s)
    return *(np.ascontiguousarray(each) for each in columns), (2 * len(rows.program.source), 2 * rows.marks)


def _count_arrivals(rows: ReplayRows) -> Numbers:
    """Return how many arrivals each meeting waits for: all that there are."""
    joins = np.flatnonzero(rows.op_mask(Op.JOIN))
    arrive = joins[rows.tells[joins] >= 2 * len(rows.program.source)]
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
    """Return which rows take part in messages; not to be written to."""
    return rows.op_mask(*SENDING, *POSTING, *RECEIVED, Op.SENT)


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
