"""A Profile as a long table: one row for each region, processor and iteration with anything measured.

Rows come in batches of columns, so that no more than one batch is in memory beside the profile, whose arrays may be
larger than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import Phase, Profile

    Column = Sequence[str | int | float | None]

#: The columns that say where a row is; those of measures, in seconds, follow.
PLACES: Final = ("phase", "iteration", "region", "file", "line", "rank", "thread", "host")
#: Rows of a batch.
BATCH: Final = 1 << 16


def list_measures(profile: Profile) -> tuple[str, ...]:
    """Return the names of all measures of the profile, in the order in which its phases have them."""
    return tuple(dict.fromkeys(name for phase in profile.phases for name in phase.arrays))


def iterate_batches(profile: Profile, batch: int = BATCH) -> Iterator[dict[str, Column]]:
    """Yield columns of the same length (at most ``batch``): ``PLACES``, and seconds of each measure (None: unknown).

    Rows in which all measures are zero are left out.
    """
    measures = list_measures(profile)
    for phase in profile.phases:
        step = max(batch // max(len(profile.processors) * phase.iterations, 1), 1)
        for start in range(0, len(phase.regions), step):
            yield from _split_columns(_build_columns(profile, phase, measures, start, start + step), batch)


def _build_columns(
    profile: Profile, phase: Phase, measures: tuple[str, ...], start: int, end: int
) -> dict[str, Column]:
    parts = {name: array[start:end] for name, array in phase.arrays.items()}
    used = np.zeros(next(iter(parts.values())).shape, dtype=bool)
    for part in parts.values():
        used |= part != 0
    region, processor, iteration = np.nonzero(used)
    regions = [profile.regions[number] for number in phase.regions[start:end][region].tolist()]
    processors = [profile.processors[number] for number in processor.tolist()]
    columns: dict[str, Column] = {
        "phase": [phase.name] * len(regions),
        "iteration": iteration.tolist(),
        "region": [each.name for each in regions],
        "file": [each.file for each in regions],
        "line": [each.line for each in regions],
        "rank": [each.rank for each in processors],
        "thread": [each.thread for each in processors],
        "host": [each.host for each in processors],
    }
    unknown: list[float | None] = [None] * len(regions)
    return columns | {name: parts[name][used].tolist() if name in parts else unknown for name in measures}


def _split_columns(columns: dict[str, Column], batch: int) -> Iterator[dict[str, Column]]:
    """Yield the columns in pieces: a region of very many processors and iterations is more than one batch."""
    for start in range(0, len(columns["rank"]), batch):
        yield {name: column[start : start + batch] for name, column in columns.items()}
