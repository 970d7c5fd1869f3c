"""The computation of ranks in passes that come again.

A unit is what one region computes in a phase, and what few ranks compute beside the main one. The passes are the
instances of the phase; where the ranks go through the region several times in each of them (a loop that never meets),
those count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.grouping import group_rows, iterate_groups, number_values, sum_by_group
from advisor.trace.events import Role
from advisor.trace.regions import classify_region
from advisor_simulation.replay.program import SENDING, Op
from advisor_simulation.whatif.traced import side_by_side
from advisor_simulation.whatif.traced.noise import (
    ENOUGH,
    FAR,
    IDLE,
    LEAST_FAR,
    NOISE,
    OFTEN,
    count_positions,
    shrink_scatter,
    split_noise,
    split_noise_by_position,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.whatif.traced.rows import Numbers, ReplayRows

    Mask = npt.NDArray[np.bool_]

#: A region with less than this share of a phase is no unit of its own.
SMALL: Final = 0.01
#: A hub that serves for more than this share of the mean work of a rank decides how fast the others are.
BUSY: Final = 0.5
#: Who exchanges with so many others, who exchange with nobody else, is the hub of a star.
LEAST_PARTNERS: Final = 3
#: Two partners make the first rank a hub: of a chain of three the second would be in the middle.
PARTNERS_OF_FIRST: Final = 2
#: A hub that answers each of the others so many times in a pass hands out pieces on demand.
PIECEWISE: Final = 2.0


@dataclass(frozen=True, slots=True)
class NoiseLevels:
    """How equal computations scatter, as relative standard deviations: ``by_region``, and what is ``usual`` elsewhere.

    ``shares`` are those of the ranks in each region, relative to the median rank; ``usual_shares`` the same, less
    exactly, of small regions as well; ``run_s`` is the standard deviation of the run's time that the scatter makes.
    """

    by_region: Mapping[int, float] = field(default_factory=dict)
    shares: Mapping[int, FloatArray] = field(default_factory=dict)
    usual_shares: Mapping[int, FloatArray] = field(default_factory=dict)
    usual: float = 0.0
    run_s: float = 0.0

    def find_level(self, region: int) -> float:
        """Return the level of a region, by default the usual one."""
        return self.by_region.get(region, self.usual)


@dataclass(frozen=True, slots=True)
class Unit:
    """The computations ``at`` (rows) of one region in a phase, each with its pass; ``seconds`` (ranks, passes).

    ``region`` is its main one, -1 for none. ``repeats`` is how often the phase comes, or how many passes there are
    where it comes once: passes of one instance are disturbed alike. ``structure`` is what of the seconds comes again,
    ``noise`` the relative standard deviation of the rest, ``disturbed`` the seconds (ranks, passes) that are
    disturbance. ``codes`` (ranks,) is the main region of each rank where ranks run several codes side by side, each
    its own, else -1. ``served`` units are handed out by a hub piece after piece, to whoever asks. ``spare_s`` (ranks,)
    is how long each rank computes, reads and writes nothing else in the phase while the busiest one does.
    """

    phase: int
    at: IntArray
    turn: IntArray
    seconds: FloatArray
    structure: FloatArray
    noise: float
    disturbed: FloatArray
    region: int
    repeats: int
    codes: IntArray
    served: bool = False
    spare_s: FloatArray | None = None

    @property
    def stretch(self) -> float:
        """How many times the mean work of all the others get where who has none of it can't take so much in between."""
        each = self.structure.sum(axis=1)
        even_s = whole_s = float(each.mean())
        if self.spare_s is None or even_s <= 0:
            return 1.0
        most = np.where(each > IDLE * even_s, np.inf, self.spare_s)
        for _ in range(len(each)):  # who has less time than an even part takes that, the others the rest
            full = most < even_s
            even_s = (whole_s * len(each) - most[full].sum()) / max(len(each) - full.sum(), 1)
            if (most[~full] >= even_s).all():
                break
        return even_s / whole_s

    def divide_passes(self, values: FloatArray) -> list[FloatArray]:
        """Return values (ranks, passes) by the position of the passes in their instance, all in one if those differ."""
        return [values[:, place :: self.positions] for place in range(self.positions)]

    def find_working_groups(self, hosts: IntArray) -> list[IntArray]:
        """Return for each host the ranks that compute anything here; ``hosts`` (ranks,) says where each rank is."""
        each = self.seconds.sum(axis=1)
        working = each > IDLE * each.mean()
        return [np.flatnonzero(working & (hosts == host)) for host in np.unique(hosts[working])]

    @property
    def positions(self) -> int:
        """How many passes each instance has, 1 where they are alike or instances differ in that."""
        return count_positions(self.seconds, self.repeats)

    @property
    def totals(self) -> FloatArray:
        """The structural seconds of each rank (ranks,), drawn towards their mean as far as noise explains them."""
        totals: FloatArray = self.structure.sum(axis=1)
        if self.repeats < ENOUGH:
            return totals
        return shrink_scatter(totals[:, None], self.noise / np.sqrt(self.repeats))[:, 0]


def find_units(
    rows: ReplayRows, phase: Numbers, instance: Numbers, chosen: Mask, levels: NoiseLevels
) -> Iterator[Unit]:
    """Yield the units among the ``chosen`` rows; ``phase`` and ``instance`` (rows,) say where each row lies.

    What few passes can't tell of noise, ``levels`` tell.

    What a hub computes between the messages of all others is its service to them, and in no unit; where that takes
    long, there are none.
    """
    ranks = rows.program.ranks
    bursts = np.flatnonzero(computing_mask(rows) & chosen & (phase >= 0))
    center = find_hubs(rows, phase)
    for number, group in iterate_groups(phase[bursts]):
        at = bursts[group]
        region = _common_regions(rows, at)
        serves = (rows.line[at] == center.get(number, -1)) & (region < 0)
        if rows.seconds[at[serves]].sum() > BUSY * rows.seconds[at[~serves]].sum() / ranks:
            continue
        region = np.where(region < 0, -1 - region, region)
        busy = rows.op_mask(Op.BURST) & (phase == number) & (rows.line < ranks)
        busy_s = np.bincount(rows.line[busy], rows.seconds[busy], minlength=ranks)
        for one in np.unique(region):
            mine = (region == one) & ~serves
            if mine.any():
                unit = _build_unit(rows, number, at[mine], instance, int(one) - 1, levels)
                asked = _count_answers(rows, phase, number, center[number]) if number in center else 0.0
                spare_s = busy_s.max() - (busy_s - unit.seconds.sum(axis=1))
                yield replace(unit, served=asked >= PIECEWISE * unit.seconds.shape[1], spare_s=spare_s)


def computing_mask(rows: ReplayRows) -> Mask:
    """Return which rows are computations of ranks; reading, writing and sleeping are none, and go by other rules."""
    others = rows.region_mask(lambda name: classify_region(name)[1] in (Role.IO, Role.OS))
    found: Mask = rows.op_mask(Op.BURST) & (rows.line < rows.program.ranks) & ~others
    return found


def file_mask(rows: ReplayRows) -> Mask:
    """Return which rows are of regions that read or write files."""
    return rows.region_mask(lambda name: classify_region(name)[1] == Role.IO)


def _build_unit(
    rows: ReplayRows, number: int, at: IntArray, instance: Numbers, region: int, levels: NoiseLevels
) -> Unit:
    main = side_by_side.find_main_regions(rows, at, region)
    turn = number_passes(rows.line[at], instance[at], rows.region[at] == main[rows.line[at]])
    ranks, passes = rows.program.ranks, int(turn.max()) + 1
    seconds = sum_by_group(rows.line[at] * passes + turn, rows.seconds[at], ranks * passes).reshape(ranks, passes)
    codes = side_by_side.find_codes(main, seconds)
    instances = len(number_values(instance[at] + 1, int(instance[at].max()) + 2)[0])
    repeats = instances if instances > 1 else seconds.shape[1]
    structure, noise = split_noise_by_position(seconds, repeats)
    if seconds.shape[1] < ENOUGH:
        noise = levels.find_level(region)
        usual = _drop_outliers(seconds, levels.shares.get(region, levels.usual_shares.get(region)), noise)
        disturbed = np.maximum(seconds - usual, 0.0)
        structure = shrink_scatter(usual, noise)
        return Unit(number, at, turn, seconds, structure, noise, disturbed, region, repeats, codes)
    outlying = np.maximum(seconds - structure, 0.0)
    size = seconds.mean()
    disturbed = np.where(outlying > LEAST_FAR * size, outlying, 0.0) if noise < 0 else np.zeros_like(seconds)
    return Unit(number, at, turn, seconds, structure, abs(noise), disturbed, region, repeats, codes)


def _drop_outliers(seconds: FloatArray, share: FloatArray | None, noise: float) -> FloatArray:
    """Return seconds (ranks, n) of few passes without disturbances: what a few ranks need far more than else there.

    ``share`` (ranks,) is what the ranks usually have of the region, None where that is not known.
    """
    if share is None or not (share > 0).any():
        return seconds
    working = share > 0
    size = np.median(seconds[working] / share[working, None], axis=0)
    fit = share[:, None] * size
    far = seconds > fit + size * max(FAR * noise, LEAST_FAR / 2)
    hit = far.any(axis=1)  # in one instance: what disturbs one pass disturbs the next one as well
    return np.where(far, fit, seconds) if hit.sum() <= max(OFTEN * far.size, 1.0) else seconds


def _common_regions(rows: ReplayRows, at: IntArray) -> IntArray:
    """Return the region of each row, from 1 on, 0 for none; of regions that few ranks share, the main one below 0.

    A region that less than half of the ranks pass through is a part of their work, not a unit of its own; nor is one
    that ranks pass through instead of the main one: those of a coupled code are not idle in the other code.
    """
    ranks, count = rows.program.ranks, len(rows.program.names) + 1
    region = rows.region[at].astype(np.int64) + 1
    each = np.bincount(region * ranks + rows.line[at], rows.seconds[at], minlength=count * ranks).reshape(count, ranks)
    total = each.sum(axis=1)
    sharing = each > IDLE * total[:, None] / ranks
    common = (2 * sharing.sum(axis=1) >= (each.sum(axis=0) > 0).sum()) & (total > SMALL * total.sum())
    main = int(np.where(common, total, 0.0).argmax()) if common.any() else int(total.argmax())
    common &= (sharing & sharing[main]).any(axis=1)
    return np.where(common[region] | (region == main), region, -1 - main)


def _count_answers(rows: ReplayRows, phase: Numbers, number: int, center: int) -> float:
    """Return how many messages the hub of a phase sends to each of the others, on average."""
    sends = rows.op_mask(*SENDING) & (rows.link >= 0) & (phase == number) & (rows.line == center)
    partners = len(np.unique(rows.program.target[rows.link[sends]]))
    return float(sends.sum()) / max(partners, 1)


def find_hubs(rows: ReplayRows, phase: Numbers, others: int = LEAST_PARTNERS) -> dict[int, int]:
    """Return the rank that is in all messages of a phase, by phase; with so many others, or two if it is the first."""
    sends = np.flatnonzero(rows.op_mask(*SENDING) & (rows.link >= 0))
    found = {}
    for number in np.unique(phase[sends]).tolist():
        link = rows.link[sends[phase[sends] == number]]
        ends = np.stack([rows.program.source[link], rows.program.target[link]]).astype(np.int64)
        counted = np.bincount(ends.ravel(), minlength=rows.program.ranks)
        center = int(counted.argmax())
        partners = np.unique(ends[:, (ends == center).any(axis=0)])
        least = others if center else PARTNERS_OF_FIRST
        if number >= 0 and counted[center] == ends.shape[1] and len(partners) > least:
            found[number] = center
    return found


def number_passes(line: IntArray, instance: Numbers, main: Mask) -> IntArray:
    """Return the pass of each row: the instances of the phase, cut into the passes that all ranks make in each.

    Passes are those through the ``main`` computation; what else is done belongs to the pass before it. Rows stand in
    the order of their ranks, and of time.
    """
    _, number = number_values(instance + 1, int(instance.max(initial=0)) + 2)
    group = line * (int(number.max()) + 1) + number
    counts = np.bincount(group[main], minlength=int(group.max()) + 1)
    passes = int(np.gcd.reduce(counts[counts > 0])) if main.any() else 1
    begun = np.cumsum(main)
    before = np.zeros(len(counts), dtype=np.int64)
    first = np.flatnonzero(np.r_[True, np.diff(group) != 0])[::-1]
    before[group[first]] = begun[first] - main[first]
    turn = np.maximum(begun - before[group] - 1, 0)
    result: IntArray = number * passes + np.minimum(turn * passes // np.maximum(counts[group], 1), passes - 1)
    return result


def measure_noise(rows: ReplayRows, phase: Numbers, instance: Numbers) -> NoiseLevels:
    """Return how much computations scatter that come again often enough.

    What scatters by more than noise can is structure; it is taken to be as noisy as the others.
    """
    recorded = rows.key.astype(np.int64)
    whole = np.ones(len(rows), dtype=bool)
    found = list(find_units(rows, phase[recorded], instance[recorded], whole, NoiseLevels()))
    by_region: dict[int, float] = {}
    shares: dict[int, FloatArray] = {}
    for unit in sorted(found, key=lambda unit: unit.repeats):
        if 0.0 < unit.noise <= NOISE:
            by_region[unit.region] = max(unit.noise, by_region.get(unit.region, 0.0))
            shares[unit.region] = unit.totals / np.median(unit.totals) if np.median(unit.totals) > 0 else unit.totals
    for region, (noise, share) in _pool_passes(found).items():
        if region not in by_region:
            by_region[region], shares[region] = noise, share
    usual = float(np.median(list(by_region.values()))) if by_region else 0.0
    parts = [by_region.get(unit.region, usual) * float(unit.seconds.sum()) / np.sqrt(unit.repeats) for unit in found]
    run_s = float(np.sqrt(np.sum(np.square(parts)))) / rows.program.ranks
    return NoiseLevels(by_region, shares, _usual_shares(rows, phase[recorded], instance[recorded]), usual, run_s)


def _pool_passes(found: Iterable[Unit]) -> dict[int, tuple[float, FloatArray]]:
    """Return noise and shares of the ranks by region that few instances of several phases pass through, each.

    A loop that writes each tenth time has ten phases for each of its own, which come a tenth as often.
    """
    few: dict[int, list[FloatArray]] = {}
    for unit in found:
        if unit.seconds.shape[1] < ENOUGH:
            few.setdefault(unit.region, []).append(unit.seconds)
    pooled = {}
    for region, parts in few.items():
        passes = min(part.shape[1] for part in parts)
        together = np.stack([part[:, :passes] for part in parts], axis=2).reshape(len(parts[0]), -1)
        if len(parts) > 1 and together.shape[1] >= ENOUGH:
            structure, noise = split_noise(together, together.shape[1])
            totals = structure.sum(axis=1)
            if 0.0 < abs(noise) <= NOISE and np.median(totals) > 0:
                pooled[region] = (abs(noise), totals / np.median(totals))
    return pooled


def _usual_shares(rows: ReplayRows, phase: Numbers, instance: Numbers) -> dict[int, FloatArray]:
    """Return what each rank usually computes in a region, relative to the median rank (ranks,), by region.

    Of those in which every rank computes alike in most of several instances, whatever their phases: also of regions
    that are too small for units of their own, in which one disturbance would pass for work.
    """
    at = np.flatnonzero(computing_mask(rows) & (rows.region >= 0) & (phase >= 0))
    ranks = rows.program.ranks
    shares: dict[int, FloatArray] = {}
    for region in np.unique(rows.region[at]).tolist():
        mine = at[rows.region[at] == region]
        number, first = group_rows((phase[mine], instance[mine]))
        each = sum_by_group(rows.line[mine] * len(first) + number, rows.seconds[mine], ranks * len(first))
        each = each.reshape(ranks, len(first))
        usual = np.median(each, axis=1)
        if len(first) < ENOUGH or not (usual > 0).all():
            continue
        away = np.median(np.abs(each / usual[:, None] - 1.0), axis=1)
        if float(away.max()) <= LEAST_FAR:
            shares[region] = usual / np.median(usual)
    return shares


def main_region(region: npt.NDArray[np.int32], seconds: FloatArray) -> int:
    """Return the region that takes most of the ``seconds``; -1 is what lies in none."""
    return int(np.bincount(region + 1, seconds).argmax()) - 1
