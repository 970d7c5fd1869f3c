"""A workload on the oracle machine: what a library holds of it and what similarity is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor_similarity.executed_functions import count_fine_classes
from advisor_similarity.steps import COARSE_OF, FINE_NAMES, UNKNOWN, Template

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_similarity.images import Image, Stream


@dataclass(frozen=True, slots=True)
class Workload:
    """A program's parallel instructions, averaged.

    ``centroid`` holds operations a cycle by component (5), ``fine`` the same by finer class, ``cycles`` of the oracle
    machine, ``instructions`` as executed, ``smoothability`` where it was measured (0 to 1). ``executed`` are the
    operations of the whole run, of which a sample schedules a part.
    """

    name: str
    architecture: str
    centroid: tuple[float, ...]
    fine: dict[str, float]
    cycles: int
    operations: int
    instructions: int
    smoothability: float | None = None
    executed: int = 0

    @property
    def parallelism(self) -> float:
        """Operations a cycle, the unknown ones included."""
        return self.operations / self.cycles if self.cycles else 0.0


@dataclass(frozen=True, slots=True)
class SamplingError:
    """What sampling costs in certainty: standard errors of the centroid (5,) between ``windows`` windows."""

    windows: int
    errors: tuple[float, ...]


def main_image(images: Sequence[Image]) -> Image | None:
    """Return the image that executed most instructions: the program itself, not the shell that began it."""
    return max(images, key=lambda image: image.instructions, default=None)


def summarize_workload(image: Image, templates: Sequence[Template], name: str, architecture: str) -> Workload:
    """Return the workload of a process: its threads side by side, all beginning in the first cycle."""
    operations = _sum_operations(image.streams)
    cycles = max((stream.cycles for stream in image.streams), default=0)
    coarse = operations[:UNKNOWN] / max(cycles, 1)
    counts = count_fine_classes(image, templates, len(FINE_NAMES))
    return Workload(
        name=name,
        architecture=architecture,
        centroid=tuple(coarse.tolist()),
        fine=_split_components(counts, coarse),
        cycles=cycles,
        operations=int(operations.sum()),
        instructions=image.instructions,
        executed=sum(counts),
    )


def estimate_sampling_error(stream: Stream) -> SamplingError | None:
    """Return the standard error of the centroid between windows, None where nothing was sampled.

    A ratio of sums (operations by cycles): the usual linearised variance, Cochran, Sampling Techniques, section 6.4.
    """
    totals = np.array(stream.windows, dtype=np.float64)
    if len(totals) < 2:
        return None
    steps = np.diff(totals, axis=0, prepend=np.zeros((1, totals.shape[1])))
    cycles, operations = steps[:, 0], steps[:, 1 : 1 + UNKNOWN]
    ratio = operations.sum(axis=0) / cycles.sum()
    residuals = operations - ratio * cycles[:, None]
    n = len(steps)
    variance = (residuals**2).sum(axis=0) / (n * (n - 1)) / cycles.mean() ** 2
    return SamplingError(n, tuple(np.sqrt(variance).tolist()))


def _sum_operations(streams: Sequence[Stream]) -> IntArray:
    total = np.zeros(UNKNOWN + 1, dtype=np.int64)
    for stream in streams:
        total += stream.operations
    return total


def _split_components(counts: Sequence[int], coarse: FloatArray) -> dict[str, float]:
    """Divide each component among its finer classes as often as these ran."""
    fine: dict[str, float] = {}
    for component, value in enumerate(coarse.tolist()):
        members = [number for number, of in enumerate(COARSE_OF) if of == component]
        total = sum(counts[number] for number in members)
        fine |= {FINE_NAMES[number]: value * counts[number] / total if total else 0.0 for number in members}
    return fine
