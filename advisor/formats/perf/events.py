"""Events of perf: which of them measure time, and how many seconds a sample of each stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.formats.perf.samples import PerfScript, SampledThread
    from advisor.model.records import FloatArray

#: Their periods are nanoseconds on a processor.
_CLOCKS: Final = frozenset({"cpu-clock", "task-clock"})
#: Their periods are cycles on a processor.
_CYCLES: Final = frozenset({"cycles", "cpu-cycles", "ref-cycles", "samples"})
_MODIFIED: Final = re.compile(r"(?:\w{1,40}/)?([\w-]+)/?(?::[ukhGHpPIDSWe]+|/[ukhGHpPIDSWe]*)?")


def strip_modifiers(event: str) -> str:
    """Return the name of an event without its unit and modifiers: cycles of ``cpu_core/cycles/u``."""
    found = _MODIFIED.fullmatch(event)
    return found[1] if found else event


def is_clock(event: str) -> bool:
    """Return whether the periods of an event are nanoseconds."""
    return strip_modifiers(event) in _CLOCKS


def is_cycles(event: str) -> bool:
    """Return whether the periods of an event are cycles of a processor."""
    return strip_modifiers(event) in _CYCLES - {"samples"}


def select_time_events(events: Iterable[str]) -> frozenset[str]:
    """Return the events that measure time on a processor: a clock, else cycles (of each kind of core), else none."""
    found = sorted(set(events))
    clocks = [event for event in found if is_clock(event)]
    return frozenset(clocks[:1]) or frozenset(event for event in found if strip_modifiers(event) in _CYCLES)


def seconds_per_period(scripts: Sequence[PerfScript], threads: Sequence[SampledThread], event: str) -> float | None:
    """Return the seconds that one period of ``event`` stands for.

    A period of a clock is a nanosecond. Of cycles, and of samples without their periods, the median of the seconds from
    one sample of a thread to its next, by period: a thread runs most of the time in which it is sampled often. Samples
    weigh as much as their periods: perf begins with periods of one cycle, which take as long as the interrupt. None
    where no thread has two samples with times.
    """
    if is_clock(event) and all(script.has_periods for script in scripts):
        return 1e-9
    pairs = [thread.interval[event] for thread in threads if event in thread.interval]
    since, periods = (np.concatenate([np.asarray(pair[n]) for pair in pairs] or [np.zeros(0)]) for n in (0, 1))
    known = periods > 0
    return _weighted_median(since[known] / periods[known], periods[known]) if known.any() else None


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the value that has half of the weight below it."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(np.mean([values[order][np.searchsorted(total, total[-1] / 2, side)] for side in ("left", "right")]))
