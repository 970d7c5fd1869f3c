"""Builds compared by their network demand: counts of latencies and bytes, which vary far less between runs than times.

A finding of the kind ``KIND`` on the ``RUN`` holds them: T = alpha + beta L + gamma / BW on the critical path of one
network for all builds (Rodriguez, Badia, Labarta, Euro-Par 2004), the longest chains of latencies and of bytes, all
messages and their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.distributions import student_t_quantile
from advisor.model import policy

if TYPE_CHECKING:
    from advisor.model.records import Advice, FloatArray

KIND: Final = "network model"
RUN: Final = "run"
#: The numbers that are compared: name, words, and whether they are bytes.
COUNTS: Final = (
    ("beta", "latencies that nothing hides", False),
    ("gamma_B", "bytes that nothing hides", True),
    ("chain_latencies", "latencies one after another", False),
    ("chain_bytes", "bytes one after another", True),
    ("messages", "messages and collective operations", False),
    ("bytes", "bytes of all messages", True),
)
#: Runs are compared on one network only.
_NETWORK: Final = ("latency_s", "bandwidth_Bps", "ranks")


@dataclass(frozen=True, slots=True)
class CountChange:
    """A number of one build and of another (means over the runs), and the noise of their difference.

    ``noise`` and ``beyond_noise`` are None where no build ran twice. ``steps`` is how many steps a run has, None where
    that differs.
    """

    name: str
    words: str
    is_bytes: bool
    before: float
    after: float
    noise: float | None
    beyond_noise: bool | None
    steps: float | None

    @property
    def delta(self) -> float:
        """How many more there are after than before."""
        return self.after - self.before


def compare_network_demands(
    before: Sequence[Advice], after: Sequence[Advice], earlier: Sequence[Sequence[Advice]] = ()
) -> tuple[CountChange, ...]:
    """Return what changed in what the runs of two builds ask of a network; nothing where either is without events.

    The noise is the pooled standard deviation of repeats, of ``earlier`` builds too; it is 0 where they never differ.
    A change counts where Student's t says that ``CHANGE_PROBABILITY`` is less likely (Bonferroni's correction for the
    numbers), and where it is at least ``CHANGE_SHARE`` of the number before.
    """
    first, second = _read_network_demands(before), _read_network_demands(after)
    if not (first and second) or any(_read_network(one) != _read_network(first[0]) for one in (*first, *second)):
        return ()
    others = [_read_network_demands(build) for build in earlier]
    repeated = [
        _build_table(build)
        for build in (first, second, *others)
        if len(build) > 1 and all(_read_network(one) == _read_network(first[0]) for one in build)
    ]
    freedom = sum(len(table) - 1 for table in repeated)
    squares = np.array([((table - table.mean(axis=0)) ** 2).sum(axis=0) for table in repeated]).sum(axis=0)
    noise = np.sqrt(squares / freedom * (1 / len(first) + 1 / len(second))) if freedom else None
    limit = student_t_quantile(1 - policy.CHANGE_PROBABILITY / len(COUNTS) / 2, freedom) if freedom else 0.0
    means = [_build_table(build).mean(axis=0).tolist() for build in (first, second)]
    steps = {one.get("steps", 1.0) for one in (*first, *second)}
    return tuple(
        CountChange(
            name, words, is_bytes, old, new,
            None if noise is None else float(noise[at]),
            None if noise is None
            else old != new and abs(new - old) > max(limit * float(noise[at]), policy.CHANGE_SHARE * old),
            steps.copy().pop() if len(steps) == 1 else None,
        )
        for at, ((name, words, is_bytes), old, new) in enumerate(zip(COUNTS, *means, strict=True))
    )  # fmt: skip


def _read_network_demands(build: Sequence[Advice]) -> list[Mapping[str, float]]:
    """Return the numbers of the runs of a build that hold all of them."""
    found = [
        finding.measures for run in build for finding in run.findings if (finding.kind, finding.subject) == (KIND, RUN)
    ]
    return [one for one in found if all(name in one for name, *_ in COUNTS)]


def _read_network(found: Mapping[str, float]) -> tuple[float | None, ...]:
    return tuple(found.get(name) for name in _NETWORK)


def _build_table(build: Sequence[Mapping[str, float]]) -> FloatArray:
    """Return the numbers of each run (runs, numbers)."""
    return np.array([[one[name] for name, *_ in COUNTS] for one in build], dtype=np.float64)
