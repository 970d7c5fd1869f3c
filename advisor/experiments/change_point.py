"""Which of many versions changed a measured value: bisection that noise cannot lead astray.

A wrong turn of an ordinary bisection is never made good. Here every run counts: the model is value = block + step from
version k on + noise, and the posterior of k comes from the residual sum of squares of each k. The next version to run
is the median of the posterior (probabilistic bisection: Horstein, IEEE Trans. Inf. Theory 9, 1963; Burnashev and
Zigangirov, 1974). It ends when one k has almost all of the probability and a test in turns with the version before it
is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.experiments.paired_test import Contrast, Point, center_blocks, drop_disturbed, fit_contrasts

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: The probability that one version has when the search ends.
CERTAIN: Final = 0.99
#: A run above the model by so many times the median deviation was disturbed.
_DISTURBED: Final = 5.0
#: Of so many runs it is told which were disturbed.
_LEAST_RUNS: Final = 8
#: Returns one more measurement of a version, None where it does not build or run.
Measure = Callable[[int], float | None]


@dataclass(frozen=True, slots=True)
class FoundChange:
    """The first version with the change (None: none was found), its probability, its difference to the one before.

    ``candidates`` are the versions that hold ``CERTAIN`` together: more than one where versions between do not build,
    or the budget was spent. ``reason`` says why the search ended without certainty.
    """

    version: int | None
    probability: float
    change: Contrast | None
    candidates: tuple[int, ...]
    runs: int
    reason: str | None


@dataclass
class _Search:
    measure: Measure
    last: int
    most_runs: int
    points: list[Point] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)
    block: int = 0
    runs: int = 0

    def run_block(self, *versions: int) -> None:
        """Measure versions one after the other, in turns beginning with another one; a broken one is remembered."""
        self.block += 1
        shift = self.block % len(versions)
        for version in (*versions[shift:], *versions[:shift]):
            if version not in self.broken:
                value = self.measure(version)
                self.runs += 1
                if value is None:
                    self.broken.add(version)
                else:
                    self.points.append(Point(f"{version}", self.block, value))

    @property
    def is_spent(self) -> bool:
        return self.runs >= self.most_runs


def find_change(measure: Measure, last: int, most_runs: int) -> FoundChange:
    """Return which of the versions 1 to ``last`` changed the value, from version 0 as the start.

    ``most_runs`` limits the measurements.
    """
    search = _Search(measure, last, most_runs)
    while True:
        search.run_block(0, last)
        if search.broken:
            return FoundChange(None, 0.0, None, (), search.runs, "the first or the last version does not build or run")
        ends = fit_contrasts(drop_disturbed(search.points), "0").get(f"{last}")
        if ends is not None and ends.is_certain:
            break
        if search.runs >= max(4, most_runs // 2):
            return FoundChange(None, 0.0, ends, (), search.runs, "first and last version do not differ beyond noise")
    while not search.is_spent:
        posterior = compute_posterior(search.points, last)
        version = int(posterior.argmax())
        pair = _fit_pair(search, version)
        if posterior[version] >= CERTAIN and pair is not None and pair.is_certain:
            return FoundChange(version, float(posterior[version]), pair, (version,), search.runs, None)
        target = choose_version(posterior, search.broken)
        if posterior[version] >= CERTAIN and version - 1 not in search.broken:
            search.run_block(version - 1, version)
        elif target is not None:
            search.run_block(target, 0 if search.block % 2 else last)
        else:
            return _conclude(search, "the versions between do not build or run")
    return _conclude(search, "the budget of runs is used up")


def _fit_pair(search: _Search, version: int) -> Contrast | None:
    return fit_contrasts(drop_disturbed(search.points), f"{version - 1}").get(f"{version}") if version else None


def _conclude(search: _Search, reason: str) -> FoundChange:
    posterior = compute_posterior(search.points, search.last)
    order = posterior.argsort()[::-1]
    count = int(np.searchsorted(posterior[order].cumsum(), CERTAIN)) + 1
    best = int(order[0])
    candidates = tuple(sorted(int(one) for one in order[:count]))
    return FoundChange(best, float(posterior[best]), _fit_pair(search, best), candidates, search.runs, reason)


def compute_posterior(points: list[Point], last: int) -> FloatArray:
    """Return the probability of each version 0 to ``last`` to be the first with the change; that of 0 is 0.

    The prior is even; step, blocks and noise are integrated out, which leaves RSS ** (-freedom / 2).
    """
    versions = np.array([int(one.setting) for one in points])
    blocks = np.unique([one.block for one in points], return_inverse=True)[1]
    values = np.array([one.value for one in points])
    steps = (versions[None, :] >= np.arange(1, last + 1)[:, None]).astype(float)
    squares = _fit_steps(steps, blocks, values)
    if len(points) >= _LEAST_RUNS:
        kept = _find_undisturbed(steps[int(squares.argmin())], blocks, values)
        steps, values = steps[:, kept], values[kept]
        blocks = np.unique(blocks[kept], return_inverse=True)[1]
        squares = _fit_steps(steps, blocks, values)
    freedom = max(1, len(values) - len(set(blocks.tolist())) - 1)
    floor = max(float(squares.min()), 1e-300)
    weights = np.exp(-0.5 * freedom * np.log(np.maximum(squares, floor) / floor))
    return np.concatenate([[0.0], weights / weights.sum()])


def _fit_steps(steps: FloatArray, blocks: IntArray, values: FloatArray) -> FloatArray:
    """Return the residual sum of squares of each step function, (steps,), block means taken out."""
    x, y = center_blocks(steps, blocks), center_blocks(values[None, :], blocks)[0]
    norm = (x**2).sum(axis=1)
    slope = np.divide(x @ y, norm, out=np.zeros_like(norm), where=norm > 0)
    return np.asarray(((y[None, :] - slope[:, None] * x) ** 2).sum(axis=1))


def _find_undisturbed(step: FloatArray, blocks: IntArray, values: FloatArray) -> FloatArray:
    """Return which runs are not far above the model; disturbances only make a run longer."""
    x, y = center_blocks(step[None, :], blocks)[0], center_blocks(values[None, :], blocks)[0]
    norm = float((x**2).sum())
    residual = y - (float(x @ y) / norm if norm else 0.0) * x
    return np.asarray(residual <= _DISTURBED * float(np.median(np.abs(residual))) + 1e-300)


def choose_version(posterior: FloatArray, broken: set[int]) -> int | None:
    """Return the version to run next: the one that halves the probability best; None where none tells anything."""
    before = posterior.cumsum()
    useful = [
        version for version in range(1, len(posterior) - 1)
        if version not in broken and 1e-9 < before[version] < 1 - 1e-9
    ]  # fmt: skip
    return min(useful, key=lambda version: abs(before[version] - 0.5), default=None)
