"""What TALP writes without ``--talp-summary=all``: sums over the ranks, and the times of the busiest one.

Both together give L: the mean over the ranks, and the most. Which rank that is, and how the others differ from each
other, is not written. DLB 3.5 writes the useful time and the MPI time of the process with the most useful time, 3.6 the
least MPI time of a process, which was outside MPI for the rest of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.quality import RECORD_DEVICES
from advisor.formats.talp.recording import TIMES, VALUES, RankSums, RegionTotals, TalpRecording
from advisor.model.errors import InputError
from advisor.model.records import DEVICES_UNSEEN, RANKS_ADDED_UP, FloatArray, Note, Processor
from advisor.model.units import format_seconds
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths

#: Useful time and MPI time of the process that computes most, and the least MPI time: means over its CPUs.
_MOST_USEFUL, _MPI_OF_IT, _LEAST_MPI = "maxUsefulNormdProc", "mpiNormdOfMaxUseful", "minMpiNormdProc"
EXTREMES: Final = (_MOST_USEFUL, _MPI_OF_IT, _LEAST_MPI)
_COUNTERS: Final = ("instructions", "cycles")
_MOST_RANKS: Final = 1 << 20
#: Means that TALP writes beside the sums, in nanoseconds; early versions misspelt the first.
NORMALIZED: Final = {"usefulNormdApp": "usefulTime", "usefulNomrdApp": "usefulTime", "mpiNormdApp": "mpiTime"}
_ROUNDING_NS: Final = 1.0
_FLOAT: Final = 1e-9
_CLOCK: Final = 1.001
_HOW: Final = "DLB_ARGS='--talp --talp-summary=all' mpirun …"
#: What devices computed and moved.
DEVICES: Final = ("gpuUsefulTime", "gpuCommunicationTime")
_NOTE: Final = Note(
    RANKS_ADDED_UP,
    "TALP wrote sums over the ranks and the useful time of the busiest one: L is known, which rank it is is not",
    0.2,
    _HOW,
)


def tabulate_sums(file: Path, totals: Sequence[RegionTotals]) -> TalpRecording:
    """Return the sums over all ranks as one column of means; raises ``InputError`` where they do not tell of ranks."""
    columns: list[dict[str, float]] = []
    for total in totals:
        cpus, ranks = total.values.get("numCpus", 0.0), max(total.values.get("numMpiRanks", 0.0), 1.0)
        missing = [name for name in ("elapsedTime", "usefulTime", "mpiTime") if name not in total.values]
        if not cpus >= 1 or missing:
            raise InputError(file, f"{missing[0] if missing else 'numCpus'} is missing or 0", total.place)
        shares = {name: cpus if name in TIMES else ranks for name in VALUES} | {"elapsedTime": 1.0}
        column = {name: total.values[name] / shares[name] for name in VALUES if name in total.values}
        columns.append(column | {"numCpus": 1.0, "numOmpThreads": 1.0})
    if not columns:
        raise InputError(file, f"no times of regions; record with {_HOW}")
    ranks = int(max(total.values.get("numMpiRanks", 0.0) for total in totals)) or 1
    if not 1 <= ranks <= _MOST_RANKS:
        raise InputError(file, f"{ranks:,} ranks are more than can be read")
    # Counters that overflow add up to less than zero: then nothing was counted.
    overflown = {name for name in _COUNTERS if any(column.get(name, 0.0) < 0 for column in columns)}
    values = {
        name: np.array([[max(column.get(name, 0.0), 0.0)] for column in columns])
        for name in VALUES
        if name not in overflown and any(name in column for column in columns)
    }
    sums = _find_busiest(max(totals, key=lambda total: total.values["elapsedTime"]), ranks)
    if sums is None:
        raise InputError(file, f"{_MOST_USEFUL} is missing, so nothing tells of the ranks; record with {_HOW}")
    return TalpRecording(
        file, tuple(total.region for total in totals), (0,), (None,), values, np.ones((len(totals), 1)),
        sums=sums, contradictions=tuple(_find_contradictions(totals)),
    )  # fmt: skip


def _find_busiest(whole: RegionTotals, ranks: int) -> RankSums | None:
    """Return what the sums of the whole run tell of the busiest of ``ranks``, None where they tell nothing."""
    values, cpus = whole.values, whole.values["numCpus"]
    devices_s = sum(values.get(name, 0.0) for name in DEVICES) / 1e9
    if ranks == 1:
        return RankSums(1, values["usefulTime"] / cpus, values["mpiTime"] / cpus, devices_s)
    if _MOST_USEFUL in values and _MPI_OF_IT in values:
        return RankSums(ranks, values[_MOST_USEFUL], values[_MPI_OF_IT], devices_s)
    if _LEAST_MPI in values:
        threads = sum(values.get(name, 0.0) for name in TIMES if name.startswith("omp")) / cpus
        return RankSums(
            ranks, max(values["elapsedTime"] - values[_LEAST_MPI] - threads, 0.0), values[_LEAST_MPI], devices_s
        )
    return None


def _find_contradictions(totals: Sequence[RegionTotals]) -> Iterator[str]:
    """Yield sums that are not the means beside them, and times that do not fit into the region."""
    for total in totals:
        values, cpus = total.values, total.values["numCpus"]
        for mean, name in NORMALIZED.items():
            if mean in values and abs(values[mean] - values[name] / cpus) > _ROUNDING_NS + _FLOAT * values[mean]:
                found = values[name] / cpus
                yield f"{total.place}: {mean} is {values[mean]:.0f}, {name} over {cpus:.0f} CPUs {found:.0f}"
        inside = sum(values.get(name, 0.0) for name in TIMES if name != "elapsedTime")
        if inside > _CLOCK * cpus * values["elapsedTime"]:
            yield f"{total.place}: the times of all CPUs exceed the elapsed time"
        most = values.get(_MOST_USEFUL)
        if most is None:
            continue
        if not values["usefulTime"] / cpus <= _CLOCK * most + _ROUNDING_NS:
            yield f"{total.place}: {_MOST_USEFUL} is less than the mean"
        if most > _CLOCK * values["elapsedTime"]:
            yield f"{total.place}: {_MOST_USEFUL} is more than the elapsed time"


def spread_means(paths: CallPaths, sums: RankSums) -> CallPaths:
    """Return call paths of a column of means as those of all ranks, of which rank 0 is the busiest."""
    if sums.devices_s:
        text = f"devices worked for {format_seconds(sums.devices_s)}, nothing tells when: waits for them count as work"
        paths = replace(paths, notes=(*paths.notes, Note(DEVICES_UNSEEN, text, 0.3, RECORD_DEVICES)))
    if sums.ranks == 1:
        return paths
    assert paths.wall_s is not None
    mpi = np.array([node.role == Role.COMM_OTHER for node in paths.nodes])
    works = np.array([node.role in (Role.ROOT, Role.USER) for node in paths.nodes])
    means = paths.wall_s[:, 0]
    busiest = _scale(means, works, sums.most_work_ns / 1e9) + _scale(means, mpi, sums.mpi_of_busiest_ns / 1e9)
    busiest = np.minimum(np.where(works | mpi, busiest, means), means * sums.ranks)
    others = (means * sums.ranks - busiest) / (sums.ranks - 1)
    wall = np.column_stack([busiest, *([others] * (sums.ranks - 1))])

    def repeat_column(values: FloatArray) -> FloatArray:
        return np.repeat(values, sums.ranks, axis=1)

    return replace(
        paths,
        processors=tuple(Processor(rank) for rank in range(sums.ranks)),
        wall_s=wall,
        visits=None if paths.visits is None else repeat_column(paths.visits),
        counts={name: repeat_column(values) for name, values in paths.counts.items()},
        shortest_s=None,
        ranks_expected=sums.ranks,
        status="estimated",
        notes=(*paths.notes, _NOTE),
    )


def _scale(seconds: FloatArray, chosen: FloatArray, total_s: float) -> FloatArray:
    """Return ``seconds`` where ``chosen``, all by the same factor, so that they add up to ``total_s``; else zero."""
    kept = np.where(chosen, seconds, 0.0)
    scaled: FloatArray = kept * (total_s / kept.sum()) if kept.sum() > 0 else kept
    return scaled
