"""What was measured: the records that the model computes with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_coupling.algebra import Combination, chain_windows

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: The metric that every experiment has.
SECONDS: Final = "seconds"

#: A chain as the indices of its kernels in loop order; that of all kernels begins with the first.
Chain = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured of every chain, and how isolated values combine; of a rate more is better."""

    name: str
    combine: Combination = "sum"


@dataclass(frozen=True, slots=True)
class CouplingCase:
    """The measurements at one problem size and number of processors.

    ``samples[metric][chain]`` (rounds,) holds the value of one pass through the chain in each round, NaN where a round
    lacks it; rounds are interleaved, so that equal positions were measured at about the same time.
    ``application[metric]`` (rounds,) is the whole program and ``once[metric]`` (rounds,) the part of it outside the
    loop, which makes ``loop_count`` passes. ``data_bytes`` are the bytes of each array at this size on one processor;
    ``uses`` says which arrays each kernel touches.
    """

    kernels: tuple[str, ...]
    parameters: Mapping[str, float]
    loop_count: int
    samples: Mapping[str, Mapping[Chain, FloatArray]]
    application: Mapping[str, FloatArray]
    once: Mapping[str, FloatArray]
    processors: int = 1
    data_bytes: Mapping[str, float] = field(default_factory=dict)
    uses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of kernels in the loop."""
        return len(self.kernels)

    @property
    def name(self) -> str:
        """The parameters and processors, such as ``N=40, P=1``."""
        shown = [f"{key}={value:.12g}" for key, value in self.parameters.items()]
        return ", ".join([*shown, f"P={self.processors}"])

    def chain_label(self, chain: Chain) -> str:
        """Return the names of the chain's kernels."""
        return ",".join(self.kernels[index] for index in chain)

    def chain_samples(self, metric: str, chain: Chain) -> FloatArray | None:
        """Return the samples of a chain, None if there is not one."""
        found = self.samples.get(metric, {}).get(chain)
        return None if found is None or not np.isfinite(found).any() else found

    def has_all_chains(self, metric: str, length: int) -> bool:
        """Whether every chain of that length was measured."""
        return all(self.chain_samples(metric, chain) is not None for chain in chain_windows(self.size, length))

    def measured_lengths(self, metric: str = SECONDS) -> tuple[int, ...]:
        """Return the lengths from 2 to all kernels of which every chain was measured."""
        return tuple(length for length in range(2, self.size + 1) if self.has_all_chains(metric, length))

    def working_set(self, chain: Chain) -> float | None:
        """Return the bytes that a pass through the chain touches on one processor, shared arrays once."""
        arrays: set[str] = set()
        for index in chain:
            if self.kernels[index] not in self.uses:
                return None
            arrays.update(self.uses[self.kernels[index]])
        return sum(self.data_bytes[array] for array in arrays)


def canonical_chain(chain: Chain, kernels: int) -> Chain:
    """Return the chain; that of all kernels from the first on, since its rotations are one loop."""
    return tuple(range(kernels)) if len(chain) == kernels else chain
