"""What CUBE's metrics mean for a call-path profile: times, calls, bytes, wait states, hardware counters.

Names of wait states are those of Scalasca's trace analyzer (pattern documentation, version 2.x). A metric contains
the metrics below it, so that of a wait state and its special cases only the former counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.cube import values
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.cube.anchor import CubeMetric
    from advisor.formats.cube.archive import CubeArchive
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.callpaths.records import CallPathNode

#: Why a call waits, by Scalasca's name for the wait state.
WAITS: Final[Mapping[str, str]] = {
    "mpi_latesender": "late sender",
    "mpi_latereceiver": "late receiver",
    "mpi_earlyreduce": "collective",
    "mpi_earlyscan": "collective",
    "mpi_latebroadcast": "late root",
    "mpi_wait_nxn": "collective",
    "mpi_barrier_wait": "barrier",
    "mpi_rma_wait_at_create": "collective",
    "mpi_rma_wait_at_free": "collective",
    "mpi_rma_wait_at_fence": "collective",
    "mpi_rma_early_wait": "late sender",
    "mpi_rma_late_complete": "late sender",
    "mpi_rma_sync_late_post": "late receiver",
    "mpi_rma_comm_late_post": "late receiver",
    "mpi_rma_early_transfer": "late receiver",
    "mpi_rma_sync_wait_for_progress": "late receiver",
    "mpi_rma_comm_wait_for_progress": "late receiver",
    "mpi_rma_sync_lock_competition": "lock",
    "mpi_rma_comm_lock_competition": "lock",
    "omp_ebarrier_wait": "thread barrier",
    "omp_ibarrier_wait": "thread barrier",
    "omp_lock_contention_critical": "lock",
    "omp_lock_contention_api": "lock",
    "pthread_lock_contention_mutex_lock": "lock",
    "pthread_lock_contention_conditional": "lock",
}
#: Hardware counters (PAPI's names) that bounds need, by the name of the count.
COUNTS: Final[Mapping[str, str]] = {
    "PAPI_L1_DCM": "misses.L1",
    "PAPI_L2_DCM": "misses.L2",
    "PAPI_L2_TCM": "misses.L2",
    "PAPI_L3_TCM": "misses.L3",
    "PAPI_LD_INS": "compiled_ops.load",
    "PAPI_SR_INS": "compiled_ops.store",
    "PAPI_FDV_INS": "compiled_ops.fp_div",
}
_SENT: Final = ("bytes_sent",)
_RECEIVED: Final = ("bytes_received", "bytes_rcvd")
_MOVED: Final = ("io_bytes_read", "io_bytes_written")
_PUT: Final = ("bytes_put", "bytes_get")
_COLLECTIVES: Final = (Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN)


@dataclass(slots=True)
class MetricTable:
    """Reads metrics by name: values (nodes, processors) of the nodes themselves, without those below them.

    ``order`` (nodes,) are the call paths in the order of the nodes, ``parent`` (nodes,) the nodes above, ``columns``
    (processors,) the columns of the processors. ``doubts`` holds what of what was read cannot be.
    """

    archive: CubeArchive
    metrics: Mapping[str, CubeMetric]
    orders: values.PathOrders
    order: IntArray
    parent: IntArray
    columns: IntArray
    locations: int
    doubts: list[str] = field(default_factory=list)

    def read_own(self, name: str) -> FloatArray | None:
        """Return the values of the metric ``name``, None where it was not recorded."""
        found = self._read_stored(name)
        if found is None:
            return None
        if found.min(initial=0.0) < 0:
            raise InputError(self.archive.path, f"{name} is negative", f"{self.metrics[name].number}.data")
        if self.metrics[name].storage != "INCLUSIVE":
            return found
        own = make_exclusive(found, self.parent)
        if own.min(initial=0.0) < 0:
            self._doubt_negative(name, own)
        return np.maximum(own, 0.0, out=own)

    def read_extreme(self, name: str) -> FloatArray | None:
        """Return the values of a metric that is a shortest or longest one, as it is stored."""
        return self._read_stored(name)

    def read_counter(self, name: str) -> FloatArray | None:
        """Return the values of a counter; None where it was not recorded, or counted less than nothing."""
        found = self._read_stored(name)
        if found is None:
            return None
        own = make_exclusive(found, self.parent) if self.metrics[name].storage == "INCLUSIVE" else found
        if own.min(initial=0.0) < 0:
            self.doubts.append(f"the counter {name} is negative")
            return None
        return own

    def _read_stored(self, name: str) -> FloatArray | None:
        metric = self.metrics.get(name)
        if metric is None or not values.has_values(self.archive, metric):
            return None
        found = np.zeros((len(self.order), len(self.columns)))
        for rows, stored in self.iterate_stored(name):
            found[rows] = stored
        return found

    def iterate_stored(self, name: str) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the values of a metric as they are stored, some nodes at a time, each time with the nodes."""
        metric = self.metrics[name]
        place = np.empty(len(self.order), dtype=np.int64)
        place[self.order] = np.arange(len(self.order))
        counted = self.orders.select_order(metric.storage)
        return values.iterate_values(self.archive, metric, place[counted], self.columns, self.locations)

    def has_totals(self, name: str) -> bool:
        """Return whether a metric is there, and stored with the nodes below."""
        metric = self.metrics.get(name)
        return metric is not None and metric.storage == "INCLUSIVE" and values.has_values(self.archive, metric)

    def _doubt_negative(self, name: str, own: FloatArray) -> None:
        """Note the first call path with values ``own`` below zero by more than rounding."""
        short = np.zeros(len(own), dtype=bool)
        for rows, total in self.iterate_stored(name):
            short[rows] = (own[rows] < -1e-9 * total - 1e-12).any(axis=1)
        if short.any():
            number = self.order[int(short.argmax())]
            self.doubts.append(f"{name} of call path {number} is less than that of the calls in it")


def make_exclusive(inclusive: FloatArray, parent: IntArray) -> FloatArray:
    """Take from values (nodes, processors) those of the nodes below, in place, and return them.

    Nodes stand behind their parents, so that each is still whole when it is taken from its parent.
    """
    for node in np.flatnonzero(parent >= 0).tolist():
        inclusive[parent[node]] -= inclusive[node]
    return inclusive


def read_waits(table: MetricTable) -> dict[str, FloatArray]:
    """Return the seconds of waiting by kind, as far as the tool measured them."""
    found: dict[str, FloatArray] = {}
    for name, kind in WAITS.items():
        metric = table.metrics.get(name)
        if metric is None or any(above in WAITS for above in metric.ancestors):
            continue
        seconds = table.read_own(name)
        if seconds is not None:
            found[kind] = found[kind] + seconds if kind in found else seconds
    return found


def read_counts(table: MetricTable) -> dict[str, FloatArray]:
    """Return the hardware counters that bounds need, by the name of the count."""
    found: dict[str, FloatArray] = {}
    for name, count in COUNTS.items():
        counted = table.read_counter(name) if count not in found else None
        if counted is not None:
            found[count] = counted
    return found


def sum_moved_bytes(table: MetricTable, nodes: Sequence[CallPathNode]) -> FloatArray | None:
    """Return the bytes that calls moved: sent ones, those received where none were sent, both in collectives."""
    sent, received, files, remote = (_sum_metrics(table, names) for names in (_SENT, _RECEIVED, _MOVED, _PUT))
    if all(part is None for part in (sent, received, files, remote)):
        return None
    shape = (len(nodes), len(table.columns))
    sent, received = (np.zeros(shape) if part is None else part for part in (sent, received))
    both = np.array([node.role in _COLLECTIVES for node in nodes])[:, None]
    total = np.where(both, sent + received, np.where(sent > 0, sent, received))
    for part in (files, remote):
        total = total if part is None else total + part
    return total


def _sum_metrics(table: MetricTable, names: Sequence[str]) -> FloatArray | None:
    parts = [part for part in map(table.read_own, names) if part is not None]
    return sum(parts[1:], parts[0]) if parts else None
