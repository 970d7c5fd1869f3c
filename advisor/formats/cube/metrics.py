"""What CUBE's metrics mean for a call-path profile: times, calls, bytes, wait states, hardware counters.

Names of wait states are those of Scalasca's trace analyzer (pattern documentation, version 2.x). A metric contains
the metrics below it, so that of a wait state and its special cases only the former counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.cube import values
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    (processors,) the columns of the processors. ``totals`` holds what was read with the nodes below, ``doubts`` what
    of it cannot be.
    """

    archive: CubeArchive
    metrics: Mapping[str, CubeMetric]
    orders: values.PathOrders
    order: IntArray
    parent: IntArray
    columns: IntArray
    locations: int
    totals: dict[str, FloatArray] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def read_own(self, name: str) -> FloatArray | None:
        """Return the values of the metric ``name``, None where it was not recorded."""
        found = self._read_stored(name)
        if found is None:
            return None
        if (found < 0).any():
            raise InputError(self.archive.path, f"{name} is negative", f"{self.metrics[name].number}.data")
        if self.metrics[name].storage != "INCLUSIVE":
            return found
        self.totals[name] = found
        own = to_exclusive(found, self.parent)
        short = own < -1e-9 * found - 1e-12
        if short.any():
            node = int(np.nonzero(short.any(axis=1))[0][0])
            self.doubts.append(f"{name} of call path {self.order[node]} is less than that of the calls in it")
        return np.maximum(own, 0.0)

    def read_extreme(self, name: str) -> FloatArray | None:
        """Return the values of a metric that is a shortest or longest one, as it is stored."""
        return self._read_stored(name)

    def read_counter(self, name: str) -> FloatArray | None:
        """Return the values of a counter; None where it was not recorded, or counted less than nothing."""
        found = self._read_stored(name)
        if found is None:
            return None
        own = to_exclusive(found, self.parent) if self.metrics[name].storage == "INCLUSIVE" else found
        if (own < 0).any():
            self.doubts.append(f"the counter {name} is negative")
            return None
        return own

    def _read_stored(self, name: str) -> FloatArray | None:
        metric = self.metrics.get(name)
        if metric is None:
            return None
        found = values.read_values(self.archive, metric, self.orders.select_order(metric.storage), self.locations)
        return None if found is None else found[self.order][:, self.columns]


def to_exclusive(inclusive: FloatArray, parent: IntArray) -> FloatArray:
    """Return values (nodes, processors) without those of the nodes below, of values with them."""
    own = inclusive.copy()
    inner = np.flatnonzero(parent >= 0)
    np.subtract.at(own, parent[inner], inclusive[inner])
    return own


def to_inclusive(own: FloatArray, parent: IntArray) -> FloatArray:
    """Return values (nodes, processors) with those of the nodes below; nodes stand behind their parents."""
    total = own.copy()
    for node in range(len(parent) - 1, 0, -1):
        if parent[node] >= 0:
            total[parent[node]] += total[node]
    return total


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
