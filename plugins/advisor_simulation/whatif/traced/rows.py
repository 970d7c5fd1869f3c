"""A recorded run as rows that can be moved, dropped, added and made longer or shorter, and replayed.

Each operation has up to four steps: it marks a moment, tells others that it is there, takes its own time, and waits.
Unchanged rows replay to the recorded run. The costs are the recorded ones, so a changed program is replayed on
the machine that was measured. Beside the line of each rank there is one for communication in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from advisor.support.grouping import group_rows
from advisor.trace.events import Role
from advisor.trace.waits import RENDEZVOUS_BYTES, find_starts_before_ends
from advisor_simulation.replay.program import POSTING, RECEIVED, SENDING, Op, Program
from advisor_simulation.replay.recording import build_recorded_steps
from advisor_simulation.replay.waits import operation_starts
from advisor_simulation.whatif.traced.shutdown import meet_at_shutdown

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Mask = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[np.int32]
    Kinds = npt.NDArray[np.uint8]

R = TypeVar("R")
#: A row that waits for mark k has ``FIRST_MARK`` - k as what it waits for.
FIRST_MARK: Final = -2
#: Steps of a recorded operation: it tells, takes its own time, and waits.
RECORDED: Final = 3
#: What a rank waits in for its communication in the background.
WAITING: Final = "MPI_Waitall"


@dataclass(frozen=True, slots=True)
class ReplayRows:
    """Rows (n,) in the order of ``line`` and ``key``; line r is rank r, line ranks + r communicates for it meanwhile.

    ``op``, ``value``, ``link``, ``call`` and ``region`` as in ``Program``. A row notes the ``mark`` k (-1: none),
    fulfils the condition that it ``tells`` (-1: none), takes ``seconds`` itself, and ends ``wait_s`` after what it
    ``awaits``: a condition, -2 - k for the mark k, or -1 for nothing. There are ``marks`` marks.
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
        """Return the result of ``compute`` for these rows, cached under ``what``.

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
        return freeze_array(wanted[self.op])

    def region_mask(self, belongs: Callable[[str], bool]) -> Mask:
        """Return which rows are of a region whose name ``belongs``; those of none are not."""
        wanted = np.array([*map(belongs, self.program.names), False])
        return wanted[self.region]

    def scale_seconds(self, factor: FloatArray) -> ReplayRows:
        """Return the rows with their own times scaled by ``factor`` (rows,)."""
        return replace(self, seconds=self.seconds * factor)


_COLUMNS: Final = tuple(each.name for each in fields(ReplayRows) if each.name not in ("program", "marks", "_told"))


def freeze_array(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array that can be shared: it is read-only."""
    array.flags.writeable = False
    return array


def build_rows(program: Program) -> ReplayRows:
    """Return the rows of a recorded program; raises ``UsageError`` where the recording holds no times.

    A receive never ends before its send begins, and nobody leaves a meeting before the last one is there, also where
    the recorded run did not have to wait for that.
    """
    if WAITING not in program.names:
        program = replace(program, names=(*program.names, WAITING))
    program = meet_at_shutdown(program)
    steps = build_recorded_steps(program)
    tells, awaits = steps.condition[::RECORDED].copy(), steps.condition[RECORDED - 1 :: RECORDED].copy()
    made = ReplayRows(
        program, program.rank.astype(np.int64), np.arange(len(program.op), dtype=np.float64), program.op, program.value,
        program.link, program.call, program.region, np.full(len(program.op), -1, dtype=np.int32), tells,
        steps.value[1::RECORDED].copy(), awaits, steps.value[RECORDED - 1 :: RECORDED].copy(),
    )  # fmt: skip
    return _delay_last_joins(_await_in_trees(_free_eager_sends(_add_causality(made))))


def _add_causality(rows: ReplayRows) -> ReplayRows:
    """Let receives that found their message there wait for its send, which changes nothing yet.

    So do ranks for the root that was there before them, and roots for the ranks whose data they collect: what they take
    themselves they take from then on.
    """
    awaits, wait_s = rows.awaits.copy(), rows.wait_s.copy()
    received = rows.op_mask(*RECEIVED) & (awaits == -1)
    awaits[received] = 2 * rows.link[received]
    joins = np.flatnonzero(rows.op_mask(Op.JOIN) & (awaits == -1))
    meetings, link = rows.program.collectives, rows.link[joins].astype(np.int64)
    is_root = meetings.root[link] == rows.program.rank[joins]
    spread = (meetings.role[link] == Role.ONE_TO_ALL) & (meetings.root[link] >= 0) & ~is_root
    found = spread | ((meetings.role[link] == Role.ALL_TO_ONE) & is_root)
    awaits[joins[found]] = 2 * len(rows.program.source) + link[found]
    wait_s[joins[found]] = rows.seconds[joins[found]]
    return replace(rows, awaits=awaits, wait_s=wait_s)


def _free_eager_sends(rows: ReplayRows) -> ReplayRows:
    """Let sends not wait for their receives where as large ones to the same rank were done before these were posted.

    In lockstep a send often ends when its receive is posted, by chance. One that takes longer than those that waited
    for nobody does wait.
    """
    program = rows.program
    if program.end_s is None or not len(program.source):
        return rows
    begun = operation_starts(program, program.end_s)
    posted = np.full(len(program.source), -np.inf)
    posts = rows.op_mask(*POSTING)
    posted[rows.link[posts]] = begun[posts]
    sends = np.flatnonzero(rows.op_mask(Op.SEND))
    link, lasted = rows.link[sends], program.end_s[sends] - begun[sends]
    pair, _ = group_rows((program.source[link], program.target[link]))
    alone = program.end_s[sends] < posted[link]
    largest, longest = np.full((2, int(pair.max(initial=0)) + 1), -1.0)
    np.maximum.at(largest, pair[alone], rows.value[sends[alone]])
    np.maximum.at(longest, pair[alone], lasted[alone])
    freed = (rows.awaits[sends] >= 0) & (rows.value[sends] <= largest[pair]) & (lasted <= longest[pair])
    seconds, wait_s, awaits = rows.seconds.copy(), rows.wait_s.copy(), rows.awaits.copy()
    seconds[sends[freed]], wait_s[sends[freed]], awaits[sends[freed]] = lasted[freed], 0.0, -1
    return replace(rows, seconds=seconds, wait_s=wait_s, awaits=awaits)


def _await_in_trees(rows: ReplayRows) -> ReplayRows:
    """Let ranks that pass on a few bytes of others wait for the last that came before they left (``trace.waits``)."""
    program, link = rows.program, rows.link.astype(np.int64)
    joint = program.collectives
    if program.end_s is None or not len(joint):
        return rows
    rooted = np.isin(joint.role, (Role.ALL_TO_ONE, Role.ONE_TO_ALL)) & (joint.root >= 0)
    joins = np.flatnonzero(rows.op_mask(Op.JOIN))
    joins = joins[(rooted & (joint.size <= RENDEZVOUS_BYTES))[link[joins]]]
    begun, end = operation_starts(program, program.end_s), program.end_s
    last = joins[find_starts_before_ends(begun[joins], end[joins], link[joins])]
    passing = (program.rank[joins] != joint.root[link[joins]]) & (begun[last] > begun[joins])
    waits, last = joins[passing], last[passing]
    noting = np.unique(last)
    seconds, wait_s, awaits, mark = rows.seconds.copy(), rows.wait_s.copy(), rows.awaits.copy(), rows.mark.copy()
    mark[noting] = rows.marks + np.arange(len(noting))
    awaits[waits], seconds[waits], wait_s[waits] = FIRST_MARK - mark[last], 0.0, end[waits] - begun[last]
    changed = replace(rows, seconds=seconds, wait_s=wait_s, awaits=awaits, mark=mark)
    return replace(changed, marks=rows.marks + len(noting))


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
