"""Facts about the use of devices: what reading the trace told (``Profile.devices``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Value
    from advisor.advice.facts.source import Compute, FactSource

#: Facts that are counts or seconds stay numbers; these are yes or no.
_YES_NO: Final = ("on_host",)
NAMES: Final = (
    "devices", "on_host", "busy_share", "iterations", "kernels", "median_kernel_s", "short_kernel_share",
    "elementwise_share", "matrix_share", "plain_matrix_share", "launch_calls", "launch_s", "sync_calls", "sync_s",
    "sync_wait_share", "allocation_calls", "allocation_s", "graph_launches", "copies", "pageable_share",
    "host_copy_share", "small_copy_share", "communications", "communications_per_iteration", "exposed_share",
    "median_communication_s", "imbalance", "one_busy_share", "fusible_share", "small_grid_share", "low_occupancy_share",
    "spill_share", "longest_kernel_share", "compute_streams",
    "concurrent_share", "graph_kernel_share", "loading_share", "recompilations",
    "launch_interval_s", "prepare_share", "optimizer_launches", "passes_per_update", "value_reads",
    "value_reads_per_iteration", "host_allocations", "round_trips_per_kernel", "migration_share", "page_faults",
    "copy_rate_spread", "point_to_point_share", "communication_s_per_GiB", "float_communication_share",
    "kernel_count_spread", "same_kernel_spread", "processes_per_device", "bandwidth_bound_share", "latency_bound_share",
    "excess_sector_share", "divergent_share", "upload_ratio", "lead_share", "lead_s", "setup_share",
    "setup_s", "element_share",
)  # fmt: skip


def _find_value(name: str, source: FactSource) -> Value | None:
    use = source.profile.devices
    value = None if use is None else use.facts.get(name)
    return bool(value) if value is not None and name in _YES_NO else value


VALUES: Final[dict[str, Compute]] = {f"device.{name}": partial(_find_value, name) for name in NAMES}
