"""Which of TALP's regions can be told apart: it does not say which of them contain others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.talp.recording import TalpRecording
    from advisor.model.records import FloatArray

#: DLB's own region from MPI_Init to MPI_Finalize, in DLB 3.5 and later, in 3.5's beta versions, and before.
WHOLE: Final = ("Global", "Application", "MPI Execution")
#: What a region has to have room for when others are taken to lie in it, one after another.
_EXTENSIVE: Final = ("elapsedTime", "usefulTime", "mpiTime", "numMpiCalls", "instructions", "cycles")


@dataclass(frozen=True, slots=True)
class RegionDivision:
    """The regions (as indices) that are taken to follow one another, and those left out.

    ``whole`` is the region that holds them all; -1 when there is none, and then they are the whole run.
    """

    whole: int
    parts: tuple[int, ...]
    left_out: tuple[int, ...]


def divide_regions(recording: TalpRecording) -> RegionDivision:
    """Return how the run divides into regions without counting anything twice.

    From the smallest on, a region is taken in while all of them together fit into the whole on every rank, in time
    and in every count. Regions that contain others do not fit beside them and are left out.
    """
    tables = [recording.values_of(name) for name in _EXTENSIVE if name in recording.values]
    whole = _find_whole(recording, tables)
    others = [n for n in range(len(recording.regions)) if n != whole]
    order = sorted(others, key=lambda n: (float(tables[0][n].sum()), n))
    if whole < 0:
        return RegionDivision(whole, tuple(order), ())
    used = [np.zeros(len(recording.ranks)) for _ in tables]
    parts: list[int] = []
    for n in order:
        after = [total + table[n] for total, table in zip(used, tables, strict=True)]
        if all((total <= table[whole]).all() for total, table in zip(after, tables, strict=True)):
            used = after
            parts.append(n)
    return RegionDivision(whole, tuple(sorted(parts)), tuple(n for n in others if n not in parts))


def _find_whole(recording: TalpRecording, tables: list[FloatArray]) -> int:
    """Return the region that spans the run; any other that has room for each of the others; else -1."""
    elapsed = tables[0]
    if not elapsed.any():
        raise InputError(recording.file, "the regions took no time")
    for name in WHOLE:
        if name in recording.regions and elapsed[recording.regions.index(name)].any():
            return recording.regions.index(name)
    largest = int(elapsed.sum(axis=1).argmax())
    return largest if all((table <= table[largest]).all() for table in tables) and len(elapsed) > 1 else -1
