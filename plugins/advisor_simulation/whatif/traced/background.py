"""Communication in the background: it starts where it did, computation continues, and waits for it later.

What moves goes to the second line of its rank. The first line notes when it came to that place, and waits for the
background when ``HIDDEN`` of the computation that follows is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role
from advisor.trace.meetings import FENCE
from advisor_simulation.replay.collectives import short_name
from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.changes import HIDDEN
from advisor_simulation.whatif.traced.rows import FIRST_MARK, WAITING, ReplayRows, message_mask
from advisor_simulation.whatif.traced.stretches import Stretches, find_stretches

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Mask = npt.NDArray[np.bool_]

_BESIDE: Final = 0.25
#: Smaller messages take their time for their calls, not for their bytes, unless a call takes longer than any overhead.
LARGE_B: Final = 4096
OVERHEAD_S: Final = 1e-4


def hide_messages(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Let messages travel while the processors compute; what calls for small messages cost themselves stays."""
    moved = message_mask(rows) & chosen
    small = moved & (rows.seconds > 0) & (rows.seconds <= OVERHEAD_S) & (rows.line < rows.program.ranks)
    small[small] = rows.program.sizes[rows.link[small]] < LARGE_B
    parts = find_stretches(rows)
    if not small.any():
        return hide_rows(rows, moved, parts)
    return hide_rows(replace(rows, seconds=np.where(small, 0.0, rows.seconds)), moved, parts, _own_times(rows, small))


def _own_times(rows: ReplayRows, these: Mask) -> ReplayRows:
    """Return rows right behind some, that take their own time: processors copy small messages themselves."""
    made = rows.select_rows(these)
    none = np.full(len(made), -1, dtype=np.int32)
    return replace(
        made, key=made.key + _BESIDE / 2, op=np.full(len(made), Op.FIXED, dtype=np.uint8), link=none, mark=none,
        tells=none, awaits=none, wait_s=np.zeros(len(made)),
    )  # fmt: skip


def hide_collectives(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Let reductions go on while the processors compute.

    What other collectives deliver (a transpose, a broadcast, a gather) is data that the next computation is about.
    """
    return hide_rows(rows, chosen & reduction_mask(rows), find_stretches(rows))


def hide_barriers(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Let processors come to a barrier, compute what needs nothing from the others, and then wait (a fuzzy barrier)."""
    return hide_rows(rows, chosen & barrier_mask(rows), find_stretches(rows))


def barrier_mask(rows: ReplayRows) -> Mask:
    """Return which rows are barriers; those at which one-sided data are there, no program can go without."""
    fence = short_name(FENCE)
    return role_mask(rows, Role.BARRIER) & ~_collective_mask(rows, lambda name: name == fence)


def role_mask(rows: ReplayRows, *roles: Role) -> Mask:
    """Return which rows are collective operations of these roles."""
    return _meeting_mask(rows, np.isin(rows.program.collectives.role, roles))


def reduction_mask(rows: ReplayRows) -> Mask:
    """Return which rows are collective operations that reduce, by their names."""
    return _collective_mask(rows, lambda name: "reduce" in name.lower())


def _collective_mask(rows: ReplayRows, fits: Callable[[str], bool]) -> Mask:
    """Return which rows are collective operations whose name fits."""
    names = rows.program.collectives.name
    fitting = {name: fits(name) for name in set(names)}
    return _meeting_mask(rows, np.array([fitting[name] for name in names], dtype=bool))


def _meeting_mask(rows: ReplayRows, wanted: Mask) -> Mask:
    """Return which rows are of ``wanted`` collective operations (operations,)."""
    joins = np.flatnonzero(rows.op_mask(Op.JOIN))
    found = np.zeros(len(rows), dtype=bool)
    found[joins] = wanted[rows.link[joins]]
    return found


def hide_rows(rows: ReplayRows, moved: Mask, parts: Stretches, *more: ReplayRows) -> ReplayRows | None:
    """Return the rows with those that are ``moved`` in the background of the computation behind them; None for none.

    Calls that no computation follows stay where they are. ``parts`` are the stretches of the rows, and
    ``more`` rows stand among them.
    """
    ranks = rows.program.ranks
    moved = moved & (rows.line < ranks) & (parts.find_next(parts.number) >= 0)
    if not moved.any():
        return None
    begins = np.flatnonzero(moved & ~np.r_[False, moved[:-1]])
    at = np.flatnonzero(moved)
    stretch, count = np.unique(parts.number[at], return_counts=True)
    ends = at[np.cumsum(count) - 1]
    begun = rows.marks + np.arange(len(begins))
    ended = rows.marks + len(begins) + np.arange(len(stretch))
    cut, share = _find_cuts(rows, parts.first[parts.find_next(stretch)], parts.first[parts.find_next(stretch) + 1])
    made = _shorten_rows(rows, cut, share)
    made = replace(made, line=np.where(moved, rows.line + ranks, rows.line), marks=int(ended[-1]) + 1)
    return made.add_rows(
        _build_marks(rows, begins, -_BESIDE, 0, begun),
        _build_waits(rows, begins, -_BESIDE, ranks, begun),
        _build_marks(rows, ends, _BESIDE, ranks, ended),
        _build_waits(rows, cut, _BESIDE, 0, ended),
        _remaining_rows(rows, cut, share),
        *more,
    )


def cut_rows(rows: ReplayRows, cut: IntArray, share: FloatArray) -> ReplayRows:
    """Return the rows in order, with some computations split in two: ``share``, and the rest."""
    return _shorten_rows(rows, cut, share).add_rows(_remaining_rows(rows, cut, share))


def _find_cuts(rows: ReplayRows, first: IntArray, stop: IntArray) -> tuple[IntArray, FloatArray]:
    """Return in which row of each computation (from ``first`` to ``stop``) HIDDEN of it is done, and its share then."""
    done = np.r_[0.0, np.cumsum(rows.seconds)]
    wanted = done[first] + HIDDEN * (done[stop] - done[first])
    cut = np.clip(np.searchsorted(done, wanted, side="right") - 1, first, stop - 1)
    length = done[cut + 1] - done[cut]
    share = np.divide(wanted - done[cut], length, out=np.ones_like(wanted), where=length > 0)
    return cut, np.clip(share, 0.0, 1.0)


def _shorten_rows(rows: ReplayRows, cut: IntArray, share: FloatArray) -> ReplayRows:
    seconds, value = rows.seconds.copy(), rows.value.copy()
    seconds[cut] *= share
    value[cut] *= share
    return replace(rows, seconds=seconds, value=value)


def _remaining_rows(rows: ReplayRows, cut: IntArray, share: FloatArray) -> ReplayRows:
    """Return what is left of the computations that were cut, half a row behind them."""
    made = rows.select_rows(cut)
    return replace(
        made, key=made.key + 2 * _BESIDE, seconds=made.seconds * (1.0 - share), value=made.value * (1.0 - share)
    )


def _build_marks(rows: ReplayRows, at: IntArray, by: float, lines: int, mark: IntArray) -> ReplayRows:
    """Return rows beside others, ``lines`` further on, that note a moment."""
    return replace(_build_empty_rows(rows, at, by, lines, -1), mark=mark.astype(np.int32))


def _build_waits(rows: ReplayRows, at: IntArray, by: float, lines: int, mark: IntArray) -> ReplayRows:
    """Return rows beside others, ``lines`` further on, that wait for a moment."""
    made = _build_empty_rows(rows, at, by, lines, rows.program.names.index(WAITING))
    return replace(made, awaits=(FIRST_MARK - mark).astype(np.int32))


def _build_empty_rows(rows: ReplayRows, at: IntArray, by: float, lines: int, call: int) -> ReplayRows:
    count = len(at)
    none, nothing = np.full(count, -1, dtype=np.int32), np.zeros(count)
    return replace(
        rows, line=rows.line[at] + lines, key=rows.key[at] + by, op=np.full(count, Op.FIXED, dtype=np.uint8),
        value=nothing, link=none, call=np.full(count, call, dtype=np.int32), region=rows.region[at], mark=none,
        tells=none, seconds=nothing, awaits=none, wait_s=nothing,
    )  # fmt: skip
