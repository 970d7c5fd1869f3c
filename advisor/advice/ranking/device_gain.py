"""Expected gains of changes to a run with devices: what the replay of the recorded run said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from advisor.advice.ranking.gains import ExpectedGain

if TYPE_CHECKING:
    from advisor.model.devices import DeviceUse

#: The changes that are replayed; one of them that is not among the gains wins nothing.
REPLAYED = frozenset(
    (
        *("synchronizations", "launches", "pinned", "copies", "communication", "imbalance", "data", "allocations"),
        *("startup", "optimizer", "reads", "resident", "batched", "buckets", "half", "host", "host_work"),
        *("matrix_units", "grids", "fusion"),
    )
)


def find_gain(use: DeviceUse, change: Mapping[str, str]) -> ExpectedGain | None:
    """Return what a rule's change ``{devices: NAME}`` would have won by replay; None where it was not replayed."""
    name = change.get("devices")
    found = next((gain for gain in use.gains if gain.change == name), None)
    if found is None:
        return None if not use.gains or name not in REPLAYED else ExpectedGain(0.0, 0.0, 0.0, "simulation")
    low, high = min(found.low_s, found.expected_s), max(found.high_s, found.expected_s)
    return ExpectedGain(found.expected_s, low, high, "simulation")
