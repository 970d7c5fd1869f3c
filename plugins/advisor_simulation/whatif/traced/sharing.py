"""Changes of who computes what, made on the computations of a trace: balance, hand out on demand, cut again, share.

Only structure moves; noise and disturbances stay with the instances in which they were recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.changes import UNEVEN, fetch_pieces, give_to_first
from advisor_simulation.whatif.traced.noise import IDLE, LITTLE
from advisor_simulation.whatif.traced.side_by_side import share_by_ranks
from advisor_simulation.whatif.traced.work import Unit, computing_mask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from advisor.model.records import FloatArray
    from advisor_simulation.whatif.traced.rows import Numbers, ReplayRows

    Mask = npt.NDArray[np.bool_]
    #: Factors (ranks, instances) of each unit, from all of them.
    Factors = Callable[[Sequence[Unit]], Sequence[FloatArray]]

#: Factors on computation that differ less from 1 change nothing.
NOTHING: Final = 1e-3
#: Who does at least this part of a region's work does it alone.
ALONE: Final = 0.95
#: Less than this part of the recorded work tells that some of it was given to ranks that only waited.
UNMOVED: Final = 0.99
#: How often a domain is cut again during a run.
PERIODS: Final = 5
#: What one rank does alone is shared by all.
SERIAL: Final = ("serial", "parallel")


def move_work(rows: ReplayRows, found: Sequence[Unit], word: tuple[str, str]) -> ReplayRows | None:
    """Return the rows after a change of which rank computes what of the units; None where it changes nothing."""
    factor = np.ones(len(rows))
    fixed = word[0] == "schedule"  # what is handed out already, and what only one rank has, is not scheduled
    moving = [unit for unit in found if not (_is_lightened(rows, unit) or (fixed and (unit.served or _is_alone(unit))))]
    for unit, each in zip(moving, FACTORS[word](moving), strict=True):
        kept = np.divide(unit.disturbed, unit.seconds, out=np.zeros_like(unit.seconds), where=unit.seconds > 0)
        factor[unit.at] = (each + (1.0 - each) * kept)[rows.line[unit.at], unit.turn]
    return _apply_factor(rows, factor)


def share_serial_work(rows: ReplayRows, phase: Numbers, chosen: Mask) -> ReplayRows | None:
    """Return the rows in which all ranks do what one does alone in the ``chosen`` rows; None where it changes nothing.

    ``phase`` is that of each row.
    """
    return _apply_factor(rows, _among_all(rows, phase, chosen))


def _apply_factor(rows: ReplayRows, factor: FloatArray) -> ReplayRows | None:
    if not (np.abs(factor - 1.0) > NOTHING).any():
        return None
    value = np.where(factor != 1.0, rows.value * factor, rows.value)
    return replace(rows.scale_seconds(factor), value=value)


def scale_work(rows: ReplayRows, factor: FloatArray) -> ReplayRows:
    """Return the rows with computations scaled by ``factor`` (recorded rows,)."""
    each = np.where(rows.op_mask(Op.BURST), factor[rows.key.astype(np.int64)], 1.0)
    return replace(rows.scale_seconds(each), value=rows.value * each)


def drop_disturbances(rows: ReplayRows, found: Iterable[Unit]) -> ReplayRows | None:
    """Return the rows without what disturbed computations; None where nothing did."""
    return _set_seconds(rows, ((unit, unit.seconds - unit.disturbed) for unit in found))


def drop_noise(rows: ReplayRows, found: Iterable[Unit]) -> ReplayRows | None:
    """Return the rows without noise: each computation takes what its rank usually needs for it; None without any."""
    return _set_seconds(rows, ((unit, unit.structure) for unit in found))


def _set_seconds(rows: ReplayRows, wanted: Iterable[tuple[Unit, FloatArray]]) -> ReplayRows | None:
    """Return the rows with units of these seconds (ranks, passes); None if nothing changes."""
    factor = np.ones(len(rows))
    for unit, seconds in wanted:
        left = np.divide(seconds, unit.seconds, out=np.ones_like(unit.seconds), where=unit.seconds > 0)
        factor[unit.at] = left[rows.line[unit.at], unit.turn]
    return None if (factor == 1.0).all() else rows.scale_seconds(factor)


def _is_lightened(rows: ReplayRows, unit: Unit) -> bool:
    """Return whether an earlier change gave work of a phase to ranks that only waited in it: that is done once."""
    recorded = rows.program.value[rows.key[unit.at].astype(np.int64)]
    return float(unit.seconds.sum()) < UNMOVED * float(recorded.sum())


def _is_alone(unit: Unit) -> bool:
    """Return whether one of several ranks does all of a unit."""
    each = unit.seconds.sum(axis=1)
    return len(each) > 1 and float(each.max()) >= ALONE * float(each.sum())


def _towards(mean: FloatArray | float, own: FloatArray) -> FloatArray:
    """Return mean / own; 1 for who has next to nothing: its part is done while it waits."""
    least = LITTLE * own.mean(axis=0)
    found: FloatArray = np.divide(mean, own, out=np.ones_like(own), where=own > least)
    return found


def _spread(found: Sequence[Unit], factors: Mapping[int, FloatArray]) -> Sequence[FloatArray]:
    """Return one factor for each rank, by place of the unit, for all passes of each; 1 for other units."""
    return [
        np.broadcast_to(factors[place][:, None], unit.seconds.shape) if place in factors else np.ones_like(unit.seconds)
        for place, unit in enumerate(found)
    ]


def _by_rank(found: Sequence[Unit]) -> Sequence[FloatArray]:
    """Cut the domain by measured work: one factor for each rank, for all units that are uneven.

    Codes side by side get other numbers of ranks, each for itself.
    """
    totals = {place: unit.totals for place, unit in enumerate(found)}
    uneven = {place: each for place, each in totals.items() if each.max() > UNEVEN * each.mean()}
    several = {place: _cut_unit(found[place]) for place in uneven if (found[place].codes >= 0).any()}
    single = [place for place in uneven if place not in several]
    together = np.sum([uneven[place] for place in single], axis=0)
    even_s = sum(found[place].stretch * float(uneven[place].mean()) for place in single)
    return _spread(found, several | dict.fromkeys(single, _towards(even_s, together) if single else together))


def _cut_unit(unit: Unit) -> FloatArray:
    return _towards(unit.stretch * share_by_ranks(unit.codes, unit.totals[:, None])[:, 0], unit.totals)


def _with_first_rank(found: Sequence[Unit]) -> Sequence[FloatArray]:
    """Give the first rank the part of the mean of the others, who keep their proportions among themselves.

    Codes side by side have a first rank each, which no recording names.
    """
    factors = {}
    for place, unit in enumerate(found):
        given = give_to_first(unit.totals, np.arange(len(unit.totals)) == 0)
        if given > 0 and not (unit.codes >= 0).any():
            wanted = (1.0 - given) * unit.totals
            wanted[0] = unit.totals[0] + given * float(unit.totals[1:].sum())
            factors[place] = _towards(unit.stretch * wanted, unit.totals)
    return _spread(found, factors)


def _by_phase(found: Sequence[Unit]) -> Sequence[FloatArray]:
    """Decompose each unit separately."""
    return _spread(found, {place: _cut_unit(unit) for place, unit in enumerate(found)})


def _by_largest(found: Sequence[Unit]) -> Sequence[FloatArray]:
    """Balance the unit that loses most, and let the others have its decomposition."""
    if not found:
        return []
    worst = max(found, key=lambda unit: float(unit.totals.max() - unit.totals.mean()))
    return _spread(found, dict.fromkeys(range(len(found)), _cut_unit(worst)))


def _on_demand(found: Sequence[Unit]) -> Sequence[FloatArray]:
    """Hand out each pass in pieces to whoever of a code is free."""
    made = []
    for unit in found:
        done = np.empty_like(unit.structure)
        for code in np.unique(unit.codes):
            mine = unit.codes == code
            done[mine] = fetch_pieces(unit.structure[mine])
        made.append(_towards(unit.stretch * done, unit.structure))
    return made


def _decompose_again(found: Sequence[Unit]) -> Sequence[FloatArray]:
    """Cut the domain again ``PERIODS`` times, by the loads since the last time; the first period stays as it was."""
    made = []
    for unit in found:
        count = unit.structure.shape[1]
        factor = np.ones_like(unit.structure)
        limits = np.unique(np.linspace(0, count, PERIODS + 1).round().astype(int))
        for before, begin, end in zip(limits[:-2], limits[1:-1], limits[2:], strict=True):
            past = unit.structure[:, before:begin].sum(axis=1, keepdims=True)
            factor[:, begin:end] = _towards(unit.stretch * share_by_ranks(unit.codes, past), past)
        made.append(factor)
    return made


def _among_all(rows: ReplayRows, phase: Numbers, chosen: Mask) -> FloatArray:
    """Share what one rank computes alone in a region. The others do their parts while they wait for it, as far as they
    have less to do than who has most in that phase; the rest comes beside their own work.

    Who writes for all is no serial computation: more writers win by other rules.
    """
    ranks, count = rows.program.ranks, len(rows.program.names) + 1
    factor = np.ones(len(rows))
    bursts = np.flatnonzero(computing_mask(rows) & chosen & (phase >= 0))
    for number in np.unique(phase[bursts]):
        at = bursts[phase[bursts] == number]
        line, seconds, region = rows.line[at], rows.seconds[at], rows.region[at].astype(np.int64) + 1
        each = np.bincount(region * ranks + line, seconds, minlength=count * ranks).reshape(count, ranks)
        alone = (ranks > 1) & (each.max(axis=1) >= ALONE * each.sum(axis=1))
        lone = alone[region]
        factor[at[lone]] = 1.0 / ranks
        part = each.sum(axis=1) / ranks
        more = np.array(
            [part[alone].sum() - part[alone & (each.argmax(axis=1) == rank)].sum() for rank in range(ranks)]
        )
        own = np.bincount(line[~lone], seconds[~lone], minlength=ranks)
        total = each.sum(axis=0)
        more = np.maximum(more - (total.max() - total), 0.0)
        busy = own > IDLE * own.mean()
        factor[at[~lone]] *= (1.0 + np.divide(more, own, out=np.zeros(ranks), where=busy))[line[~lone]]
    return factor


FACTORS: Final[Mapping[tuple[str, str], Factors]] = {
    ("rebalance", "ranks"): _by_rank,
    ("rebalance", "first rank"): _with_first_rank,
    ("rebalance", "phases"): _by_phase,
    ("rebalance", "each phase"): _by_phase,
    ("rebalance", "critical phase"): _by_largest,
    ("rebalance", "iterations"): _decompose_again,
    ("rebalance", "periods"): _decompose_again,
    ("schedule", "dynamic"): _on_demand,
    ("schedule", "subdomains"): _on_demand,
}


def moves_work(word: tuple[str, str]) -> bool:
    """Return whether a change is one of who computes what."""
    return word == SERIAL or word in FACTORS
