"""Changes of the loads of phases, carried out on the computations of the ranks; and faster machines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.regions import is_sleep
from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.traced.work import file_mask

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray
    from advisor_simulation.whatif.measured_run import MeasuredRun, PhaseRun
    from advisor_simulation.whatif.traced.rows import Numbers, ReplayRows


#: A rank that gets more than so many times its work does it in other places than where it worked before.
MOST: Final = 2.0
#: Work that is not looked after, as a share of the run.
LITTLE: Final = 1e-3


def find_places(rows: ReplayRows, run: MeasuredRun) -> tuple[Numbers, Numbers]:
    """Return in which phase (its number) and instance each recorded row ends; -1 for none."""
    ended = rows.program.end_s
    phase, instance = np.full(len(rows), -1, dtype=np.int32), np.full(len(rows), -1, dtype=np.int32)
    if ended is None:
        return phase, instance
    middle = ended - rows.seconds / 2
    for one in run.phases:
        lasted = one.durations()
        order = np.argsort(one.start, kind="stable")
        at = np.searchsorted(one.start[order], middle, side="right") - 1
        known = at >= 0
        which = order[np.maximum(at, 0)]
        inside = known & (middle <= one.start[which] + lasted[which])
        phase[inside], instance[inside] = one.number, which[inside]
    return phase, instance


def carry_loads(
    rows: ReplayRows, site: tuple[Numbers, Numbers], before: MeasuredRun, after: MeasuredRun
) -> ReplayRows | None:
    """Return the rows with computation scaled as in ``after``; None where more changes, or too much.

    ``site`` is what ``find_places`` returned for the recorded rows.
    """
    new = {phase.number: phase for phase in after.phases}
    factor = np.ones(len(rows))
    bursts = rows.op_mask(Op.BURST) & (rows.line < rows.program.ranks)
    files = file_mask(rows)
    recorded = rows.key.astype(np.int64)
    phase, instance = site[0][recorded], site[1][recorded]
    little = LITTLE * before.profile.actual_s
    for old in before.phases:
        ratios = _load_ratios(old, new.get(old.number), little)
        if ratios is None:
            return None
        for ratio, kind in zip(ratios, (~files, files), strict=True):
            mine = bursts & kind & (phase == old.number)
            factor[mine] = ratio[rows.line[mine], instance[mine]]
    value = rows.value.copy()
    value[bursts] *= factor[bursts]
    return replace(rows.scale_seconds(factor), value=value)


def _load_ratios(old: PhaseRun, new: PhaseRun | None, little: float) -> tuple[FloatArray, FloatArray] | None:
    """Return how many times as long the ranks compute, and read and write (Q, I).

    None where more changes, or too much in one place.
    """
    if new is old:
        return np.ones_like(old.work), np.ones_like(old.io)
    if new is None or new.end != old.end:
        return None
    if any(getattr(new, name) is not getattr(old, name) for name in ("transfer", "sync", "inner")):
        return None
    ratios = []
    for had, has in ((old.work, new.work), (old.io, new.io)):
        ratio: FloatArray = np.divide(has, had, out=np.where(has > 0, np.inf, 1.0), where=had > 0)
        if float((has - had)[ratio > MOST].sum()) > little:
            return None
        ratios.append(np.minimum(ratio, MOST))
    return ratios[0], ratios[1]


def remove_sleep(rows: ReplayRows, chosen: npt.NDArray[np.bool_]) -> ReplayRows | None:
    """Return the rows without time in sleep calls: the caller continues as soon as messages allow."""
    gone = chosen & rows.op_mask(Op.BURST) & rows.region_mask(is_sleep)
    if not gone.any():
        return None
    return replace(rows, seconds=np.where(gone, 0.0, rows.seconds), value=np.where(gone, 0.0, rows.value))


def scale_speed(rows: ReplayRows, processor: float, network: float) -> ReplayRows:
    """Return the rows on a processor and a network sped up by these factors; fixed times stay."""
    speed = np.where(rows.op_mask(Op.BURST), processor, np.where(rows.op_mask(Op.FIXED), 1.0, network))
    return replace(rows, seconds=rows.seconds / speed, wait_s=rows.wait_s / speed)
