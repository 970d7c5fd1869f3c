"""Facts about the use of devices: what reading the trace told (``Profile.devices``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.advice.facts.source import Compute, FactSource
    from advisor.advice.facts.vocabulary import Value

#: Facts that are counts or seconds stay numbers; these are yes or no.
_YES_NO: Final = ("on_host",)
NAMES: Final = (
    "devices", "on_host", "busy_share", "iterations", "kernels", "median_kernel_s", "short_kernel_share",
    "elementwise_share", "matrix_share", "plain_matrix_share", "launch_calls", "launch_s", "sync_calls", "sync_s",
    "sync_wait_share", "allocation_calls", "allocation_s", "graph_launches", "copies", "pageable_share",
    "host_copy_share", "small_copy_share", "communications", "communications_per_iteration", "exposed_share",
    "median_communication_s", "imbalance", "one_busy_share",
)  # fmt: skip


def _find_value(name: str, source: FactSource) -> Value | None:
    use = source.profile.devices
    value = None if use is None else use.facts.get(name)
    return bool(value) if value is not None and name in _YES_NO else value


VALUES: Final[dict[str, Compute]] = {f"device.{name}": partial(_find_value, name) for name in NAMES}
