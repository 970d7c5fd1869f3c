"""What a run with accelerators spent its seconds on, from the view of its devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class DeviceLevel:
    """One level of the hierarchy of devices: the bound's name, what it adds, and the gap that leads up to it."""

    bound: str
    adds: str
    gap: str | None


#: The hierarchy of a run with devices, lowest bound first. Each bound is a mean over the devices.
DEVICE_LEVELS = (
    DeviceLevel("R", "peak rates of the devices", None),
    DeviceLevel("K", "kernels below the peak of the device", "kernels"),
    DeviceLevel("KT", "copies while nothing computes", "copies"),
    DeviceLevel("KTC", "communication while nothing computes", "communication"),
    DeviceLevel("KTCB", "waiting for slower devices", "imbalance"),
    DeviceLevel("KTCBL", "idle between launches", "launches"),
    DeviceLevel("KTCBLS", "idle after or in synchronous waits", "synchronizations"),
    DeviceLevel("KTCBLSD", "idle during data loading and I/O", "data"),
    DeviceLevel("KTCBLSDH", "idle during the host's own work", "host"),
    DeviceLevel("actual", "start-up, shutdown and what no host call explains", "startup"),
)
DEVICE_BOUNDS = tuple(level.bound for level in DEVICE_LEVELS)
DEVICE_GAPS = tuple(level.gap for level in DEVICE_LEVELS if level.gap)


@dataclass(frozen=True, slots=True)
class DeviceCause:
    """What of a gap's seconds lies at one call or activity: mean over the devices, and how often it occurred."""

    gap: str
    name: str
    seconds: float
    count: int


@dataclass(frozen=True, slots=True)
class DeviceGain:
    """What a change would have won on the recorded run by replay, seconds: expected, and an interval."""

    change: str
    expected_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class DeviceTimeline:
    """A run over time for a picture: ``seconds`` (rows, spans, levels) between ``edges_s`` (spans + 1,).

    ``levels`` are ``compute`` and the gaps. Rows are hosts, devices, streams and communications, or devices alone, of
    which each row is the mean of ``devices_per_row``.
    """

    rows: tuple[str, ...]
    devices_per_row: int
    levels: tuple[str, ...]
    edges_s: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """The account of a run by its devices.

    ``seconds`` holds for ``compute`` and for each gap of ``DEVICE_GAPS`` but ``kernels`` an array (devices,): over all
    of them a device's seconds are the run's wall time. ``iterations`` holds the same by (devices, iterations), empty
    where none are marked. ``status`` and ``reasons`` tell how sure each is. ``facts`` are the facts ``device.*`` that
    are known, without the prefix. ``counted`` is whether kernels were counted one at a time, without the run that they
    are part of. ``peak_s`` (devices,) is what the kernels would take at the peak of the device, None
    where nothing tells that.
    """

    devices: tuple[str, ...]
    seconds: Mapping[str, npt.NDArray[np.float64]]
    iterations: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    causes: tuple[DeviceCause, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)
    gains: tuple[DeviceGain, ...] = ()
    status: Mapping[str, Literal["measured", "estimated"]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    collect: str | None = None
    peak_s: npt.NDArray[np.float64] | None = None
    timeline: DeviceTimeline | None = None
    counted: bool = False
