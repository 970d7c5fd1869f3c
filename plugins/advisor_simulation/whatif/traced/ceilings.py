"""The most that any change of some kind could win on the operations of a run: what it is about costs nothing at all.

Messages and meetings that a change is about are gone, with all waiting for them; files take no time; what is computed
is the same for all ranks in each pass, noise and disturbances too. No way of carrying a change out wins more, whoever
waits for whom afterwards. Where a hub hands out the work, its messages are gone as well: who fetches work needs none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.traced.background import barrier_mask, role_mask
from advisor_simulation.whatif.traced.noise import IDLE
from advisor_simulation.whatif.traced.rows import message_mask
from advisor_simulation.whatif.traced.sharing import ALONE
from advisor_simulation.whatif.traced.work import (
    LEAST_PARTNERS,
    NoiseLevels,
    computing_mask,
    file_mask,
    find_hubs,
    find_units,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray
    from advisor_simulation.whatif.traced.rows import Numbers, ReplayRows

    Mask = npt.NDArray[np.bool_]

_MESSAGES: Final = frozenset({"messages", "access", "remote", "send", "receive", "pipeline", "bytes", "turns"})
_MEETINGS: Final = frozenset({"collectives", "barriers", "reductions", "phases", "alltoall"})
_WORK: Final = frozenset({"rebalance", "schedule"})
#: Who computes next to nothing in a pass gets no more than so many times that.
_MOST: Final = 1e3


def remove_costs(rows: ReplayRows, place: tuple[Numbers, Numbers], chosen: Mask, word: tuple[str, str]) -> ReplayRows:
    """Return the rows without what a change is about in the ``chosen`` ones; ``place`` are phase and instance of each.

    Rows as they are for changes of something else.
    """
    kind = word[0]
    if kind in _MESSAGES:
        return _drop_links(rows, message_mask(rows) & chosen)
    if kind == "jobs":
        return _drop_hubs(rows, place[0], chosen, others=2)
    if kind in _MEETINGS:
        return _drop_links(rows, _meetings(rows, kind) & chosen)
    if kind in _WORK:
        return _even_out(rows, place, chosen)
    if kind == "serial":
        freed = _scale(rows, np.where(_computed_alone(rows, place[0], chosen), 0.0, 1.0))
        return _drop_hubs(freed, place[0], chosen)
    if kind in ("io", "fsync"):
        free = _scale(rows, np.where(file_mask(rows) & chosen & rows.op_mask(Op.BURST), 0.0, 1.0))
        return _drop_links(free, role_mask(free, Role.ALL_TO_ONE) & chosen)
    return rows


def _meetings(rows: ReplayRows, kind: str) -> Mask:
    joins = rows.op_mask(Op.JOIN)
    return joins & barrier_mask(rows) if kind == "barriers" else joins


def _drop_links(rows: ReplayRows, these: Mask) -> ReplayRows:
    """Return the rows without messages or meetings some of whose rows are ``these``: all their rows."""
    messages, joins = message_mask(rows), rows.op_mask(Op.JOIN)
    gone = messages & np.isin(rows.link, rows.link[these & messages])
    gone |= joins & np.isin(rows.link, rows.link[these & joins])
    return rows.select_rows(~gone)


def _even_out(rows: ReplayRows, place: tuple[Numbers, Numbers], chosen: Mask) -> ReplayRows:
    """Return the rows in which all ranks compute as long in each pass, and no hub hands anything out."""
    factor = np.ones(len(rows))
    for unit in find_units(rows, *place, chosen, NoiseLevels()):
        least = _least_even(unit.seconds)
        own = np.divide(least, unit.seconds, out=np.zeros_like(unit.seconds), where=unit.seconds > 0)
        factor[unit.at] = own[rows.line[unit.at], unit.turn]
    return _drop_hubs(_scale(rows, np.minimum(factor, _MOST)), place[0], chosen)


def _least_even(seconds: FloatArray) -> FloatArray:
    """Return how long even work takes at least (passes,), of seconds (ranks, passes).

    Whoever takes longer may be slower instead of having more: what is moved from there takes less elsewhere. If all
    had the same work, it takes the harmonic mean of those who compute; others are as fast as those.
    """
    busy = seconds > IDLE * seconds.mean(axis=0)
    speed = np.divide(1.0, seconds, out=np.zeros_like(seconds), where=busy).sum(axis=0)
    least: FloatArray = np.divide(
        busy.sum(axis=0) ** 2, speed * len(seconds), out=np.zeros_like(speed), where=speed > 0
    )
    return least


def _drop_hubs(rows: ReplayRows, phase: Numbers, chosen: Mask, others: int = LEAST_PARTNERS) -> ReplayRows:
    """Return the rows without the messages of hubs of so many others in the ``chosen`` ones."""
    hubs = np.isin(phase, list(find_hubs(rows, phase, others)))
    return _drop_links(rows, message_mask(rows) & hubs & chosen)


def _computed_alone(rows: ReplayRows, phase: Numbers, chosen: Mask) -> Mask:
    """Return which rows are computations of regions that one rank passes alone in a phase."""
    found = np.zeros(len(rows), dtype=bool)
    at = np.flatnonzero(computing_mask(rows) & chosen & (phase >= 0))
    ranks, count = rows.program.ranks, len(rows.program.names) + 1
    if not len(at):
        return found
    kind = phase[at].astype(np.int64) * count + rows.region[at] + 1
    _, number = np.unique(kind, return_inverse=True)
    each = np.bincount(number * ranks + rows.line[at], rows.seconds[at], minlength=ranks * (int(number.max()) + 1))
    of_rank = each.reshape(-1, ranks)
    found[at] = (of_rank.max(axis=1) >= ALONE * of_rank.sum(axis=1))[number]
    return found


def _scale(rows: ReplayRows, factor: FloatArray) -> ReplayRows:
    made = rows.scale_seconds(factor)
    return replace(made, wait_s=np.where(factor == 0.0, 0.0, made.wait_s))
