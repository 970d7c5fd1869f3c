"""From Nsight Compute's CSV, a row for each metric or for each kernel, to what the kernels need at least."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from advisor.formats.ncu.text_pages import iterate_metrics
from advisor.formats.plain_text import read_plain_text
from advisor.model.devices import DeviceCause
from advisor.model.errors import InputError
from advisor.model.records import FloatArray, Note, Profile
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity
from advisor.trace.devices.profile import profile_devices

#: Metrics by the names of the raw page, with those that the page of details gives the same.
_METRICS: Final = {
    "gpu__time_duration.sum": "length", "Duration": "length",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "compute", "Compute (SM) Throughput": "compute",
    "SM [%]": "compute", "Memory [%]": "memory",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory", "Memory Throughput": "memory",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy", "Achieved Occupancy": "occupancy",
    "smsp__thread_inst_executed_per_inst_executed.ratio": "threads", "Avg. Active Threads Per Warp": "threads",
    "memory_l2_theoretical_sectors_global": "sectors", "memory_l2_theoretical_sectors_global_ideal": "ideal",
    "launch__grid_size": "grid", "Grid Size": "grid",
    "device__attribute_multiprocessor_count": "units", "launch__sm_count": "units", "# SMs": "units",
}  # fmt: skip
_SECONDS: Final = {
    "nsecond": 1e-9, "ns": 1e-9, "usecond": 1e-6, "us": 1e-6, "msecond": 1e-3, "ms": 1e-3, "second": 1.0, "s": 1.0,
}  # fmt: skip
#: A unit is busy from this share of its peak on: Nsight Compute's own limit.
_BUSY: Final = 60.0
_LOW_OCCUPANCY: Final = 25.0
#: Fewer active threads of the 32 of a warp are divergence.
_DIVERGENT: Final = 24.0
_MOST_CAUSES: Final = 40
COLLECT: Final = "ncu --set full --csv --page raw ./PROGRAM > kernels.csv"


@dataclass(slots=True)
class CountedKernel:
    """A kernel that ran once: ``values`` by the names of ``_METRICS``, ``length`` in seconds, shares in percent."""

    name: str
    values: dict[str, float] = field(default_factory=dict)


def read_kernels(path: Path) -> list[CountedKernel]:
    """Return the kernels of a table in the order in which they ran; raises ``InputError`` where none has a duration."""
    found: dict[tuple[str, str], CountedKernel] = {}
    heading: list[str] = []
    units: list[str] | None = None
    try:
        for metric in iterate_metrics(path):
            _add_metric(found, metric)
        for row in _iterate_rows(path):
            if row[:2] == ["ID", "Process ID"]:
                heading, units = row, None
            elif len(row) != len(heading):
                continue
            elif "Metric Name" in heading:
                _add_metric(found, dict(zip(heading, row, strict=True)))
            elif units is None:
                units = row
            else:
                _add_kernel(found, heading, units, row)
    except csv.Error as error:
        raise InputError(path, f"is damaged: {error}") from error
    timed = [kernel for kernel in found.values() if kernel.values.get("length", 0.0) > 0]
    if not timed:
        raise InputError(path, f"holds no durations of kernels; record them: {COLLECT}")
    return timed


def _iterate_rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of the tables; what a program printed between them has no quote at its beginning."""
    yield from csv.reader(line for line in read_plain_text(path).lines if line.startswith('"'))


def _find_kernel(found: dict[tuple[str, str], CountedKernel], row: dict[str, str]) -> CountedKernel:
    key = (row.get("Process ID", ""), row.get("ID", ""))
    return found.setdefault(key, CountedKernel(row.get("Kernel Name", "kernel")))


def _add_metric(found: dict[tuple[str, str], CountedKernel], row: dict[str, str]) -> None:
    kernel = _find_kernel(found, row)
    unit = row.get("Metric Unit", "")
    # The details have a second "Memory Throughput", in bytes for each second.
    if not (row["Metric Name"] == "Memory Throughput" and "%" not in unit):
        _set_value(kernel, row["Metric Name"], row.get("Metric Value", ""), unit)


def _add_kernel(
    found: dict[tuple[str, str], CountedKernel], heading: Sequence[str], units: Sequence[str], row: Sequence[str]
) -> None:
    kernel = _find_kernel(found, dict(zip(heading, row, strict=True)))
    for name, unit, value in zip(heading, units, row, strict=True):
        _set_value(kernel, name, value, unit)


def _set_value(kernel: CountedKernel, metric: str, text: str, unit: str) -> None:
    """Set a value that is a number; metrics that a device does not have are told as ``n/a``."""
    name = _METRICS.get(metric)
    if name is None:
        return
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return
    if np.isfinite(value) and value >= 0:
        kernel.values[name] = value * _SECONDS.get(unit, 1e-9) if name == "length" else value


def profile_kernels(kernels: Sequence[CountedKernel], path: Path) -> Profile:
    """Return the kernels as a run of their own, one behind the other, with what each needs at least.

    That is the time that the arithmetic units need at their peak: ``kernels`` above it is memory and latency.
    """
    builder = DeviceTraceBuilder()
    builder.begin_process()
    at = 0
    for kernel in kernels:
        known = kernel.values.get("units", 0.0) > 0 and "grid" in kernel.values
        fill = kernel.values["grid"] / kernel.values["units"] if known else -1.0
        try:
            took = max(round(kernel.values["length"] * 1e9), 1)
            builder.add_activity(at, at + took, 0, 0, Activity.COMPUTE, kernel.name, blocks_per_sm=fill)
        except (OverflowError, ValueError) as error:
            raise InputError(path, f"a number of the kernel {kernel.name[:80]!r} is out of range") from error
        at += took
    builder.end_process(0, None, 0, path)
    profile = profile_devices(builder.build_trace(path, "", "Nsight Compute"), path, "ncu")
    use = profile.devices
    if use is None:
        return profile
    length = np.array([kernel.values["length"] for kernel in kernels])
    compute, memory = _collect(kernels, "compute"), _collect(kernels, "memory")
    words = "kernels were counted one at a time: what their device waits for in the program is not in this table"
    notes = (*(note for note in profile.notes if note.name != "ranks missing"), Note("kernels alone", words, 0.05))
    facts = {**use.facts, **_count_facts(kernels, length, compute, memory)}
    if np.isnan(compute).any():
        return replace(profile, notes=notes, devices=replace(use, facts=facts, collect=COLLECT, counted=True))
    peak = float((length * np.minimum(compute, 100.0) / 100).sum())
    status = {**use.status, "kernels": "measured"}
    reasons = {**use.reasons, "kernels": "the arithmetic units at their peak, by counters"}
    causes = (*_find_causes(kernels, length, compute, memory), *(each for each in use.causes if each.gap != "kernels"))
    changed = replace(
        use, facts=facts, peak_s=np.array([peak]), status=status, reasons=reasons, causes=causes, collect=COLLECT,
        counted=True,
    )  # fmt: skip
    return replace(profile, notes=notes, devices=changed)


def _collect(kernels: Sequence[CountedKernel], name: str) -> FloatArray:
    return np.array([kernel.values.get(name, np.nan) for kernel in kernels])


def _count_facts(
    kernels: Sequence[CountedKernel], length: FloatArray, compute: FloatArray, memory: FloatArray
) -> dict[str, float]:
    """Return the facts that counters tell; those of which a kernel lacks the counter stay unknown."""
    total = float(length.sum())
    conditions = {
        "bandwidth_bound_share": np.where(np.isnan(compute + memory), np.nan, (memory >= _BUSY) & (memory > compute)),
        "latency_bound_share": np.where(np.isnan(compute + memory), np.nan, np.maximum(memory, compute) < _BUSY),
    }
    for name, metric, limit in (
        ("low_occupancy_share", "occupancy", _LOW_OCCUPANCY), ("divergent_share", "threads", _DIVERGENT),
    ):  # fmt: skip
        values = _collect(kernels, metric)
        conditions[name] = np.where(np.isnan(values), np.nan, values < limit)
    known = {name: each for name, each in conditions.items() if not np.isnan(each).any()}
    found = {name: float((length * each).sum()) / total for name, each in known.items()}
    sectors, ideal = _collect(kernels, "sectors"), _collect(kernels, "ideal")
    if not np.isnan(sectors + ideal).any() and sectors.sum() > 0:
        found["excess_sector_share"] = float(np.maximum(sectors - ideal, 0.0).sum() / sectors.sum())
    return found


def _find_causes(
    kernels: Sequence[CountedKernel], length: FloatArray, compute: FloatArray, memory: FloatArray
) -> list[DeviceCause]:
    """Return what the kernels lose beside arithmetic by name: to memory that is busier, and to neither being busy."""
    busy = np.fmax(memory, compute)
    parts = {"memory": np.clip(busy - compute, 0.0, 100.0), "latency": np.clip(100.0 - busy, 0.0, 100.0)}
    sums: dict[str, list[float]] = {}
    for words, share in parts.items():
        for kernel, seconds in zip(kernels, (length * share / 100).tolist(), strict=True):
            entry = sums.setdefault(f"{kernel.name} ({words})", [0.0, 0.0])
            entry[0] += seconds
            entry[1] += 1
    largest = sorted(sums.items(), key=lambda item: -item[1][0])[:_MOST_CAUSES]
    return [DeviceCause("kernels", name, seconds, int(count)) for name, (seconds, count) in largest if seconds > 0]
