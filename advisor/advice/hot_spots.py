"""Where a run spends what was counted, where no more can be said of it: without times, or without evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.computation import KIND_WORDS
from advisor.analysis.cache_counts import list_accesses, list_misses
from advisor.model.lists import join_names
from advisor.model.records import HOT_SPOTS, Finding
from advisor.model.reports import Bar, Bars
from advisor.model.units import format_seconds, format_share
from advisor.trace.library_functions import count_by_name, is_unoptimized_access

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, Profile

_LISTED: Final = 5
_LONGEST: Final = 100
#: Regions with less than this are not worth a name.
_LEAST: Final = 0.02
#: Caches, the last one at the end, and how many regions are named whose loads and stores miss it.
_CACHES: Final = {"L1": "first cache", "LL": "last cache"}
_MISSING: Final = 3
#: A kind of code with less is not named.
_KIND: Final = 0.05
#: Sources of glibc, as debug information of distributions names them.
_OF_LIBC: Final = re.compile(
    r"(?:\.|.*/glibc[-\w.]*)/(?:string|malloc|stdlib|math|nptl|stdio-common|libio|wcsmbs|misc|io)/"
)
#: Times, then counts, the nearest to time first, and what they are called.
_TIMES: Final = {"wall_s": "Time", "cpu_s": "CPU time"}
_COUNTS: Final = {
    "device_s": "Device time", "runtime_call_s": "Calls of the device's runtime", "cycles": "Cycles",
    "instructions": "Instructions", "samples": "Samples", "operations": "Operations",
    "flops": "Floating-point operations",
}  # fmt: skip


def describe_hot_spots(profile: Profile) -> Finding | None:
    """Return which regions have most of the time, else of what was counted; None where no region stands out."""
    found = _select_measure(profile)
    if found is None:
        return None
    words, table = found
    shares = table / table.sum()
    largest = [int(row) for row in np.argsort(-shares, kind="stable")[:_LISTED] if shares[row] >= _LEAST]
    if not largest:
        return None
    names = [f"{_shorten(profile.regions[row].name)} {format_share(float(shares[row]))}" for row in largest]
    bars = tuple(Bar(profile.regions[row].name, float(shares[row])) for row in largest)
    kinds = [f"{format_share(share)} {kind}" for kind, share in _list_kinds(profile, shares)]
    of_kinds = f" Of all, {join_names(kinds)}." if kinds else ""
    others = _describe_misses(profile) + _describe_calls(profile)
    return Finding(
        "hot_spots", HOT_SPOTS, "run", f"{words} by region: {', '.join(names)}.{of_kinds}{others}",
        {"share": float(shares[largest[0]])}, (Bars(words, "share", bars),),
    )  # fmt: skip


def _shorten(name: str) -> str:
    """Return a name that leaves room for others: those of kernels may hold all their template arguments."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"


def _describe_calls(profile: Profile) -> str:
    """Return which calls of a device's runtime took longest on the host, where its table was read."""
    calls = profile.counts.get("runtime_call_s")
    if calls is None or not calls.sum() > 0 or "device_s" not in profile.counts:
        return ""
    seconds = calls.sum(axis=1)
    top = [int(row) for row in np.argsort(-seconds, kind="stable")[:_MISSING] if seconds[row] >= _KIND * seconds.sum()]
    names = [f"{profile.regions[row].name} {format_seconds(float(seconds[row]))}" for row in top]
    return f" On the host, calls of its runtime took {format_seconds(float(seconds.sum()))}: {', '.join(names)}."


def _describe_misses(profile: Profile) -> str:
    """Return how many loads and stores miss which cache, and in which regions most miss the last one."""
    accesses = list_accesses(profile.counts)
    total = 0.0 if accesses is None else float(accesses.sum())
    told: list[str] = []
    most = ""
    for level, words in _CACHES.items():
        misses = list_misses(profile.counts, level)
        if misses is None or not 0 < float(misses.sum()) <= total:
            continue
        verb = "" if told else "miss "
        told.append(f"{format_share(float(misses.sum()) / total)} {verb}the {words}")
        by_region = misses.sum(axis=1) / misses.sum()
        top = [int(row) for row in np.argsort(-by_region, kind="stable")[:_MISSING] if by_region[row] >= _KIND]
        names = [f"{profile.regions[row].name} {format_share(float(by_region[row]))}" for row in top]
        most = f" ({', '.join(names)})" if len(profile.regions) > 1 and names else ""
    return f" Of the loads and stores, {join_names(told)}{most}." if told else ""


def _list_kinds(profile: Profile, shares: FloatArray) -> list[tuple[str, float]]:
    """Return kinds of code that names of functions tell, with their shares, the largest first.

    A function of a program, which lies in a file of its own, may be called like one of a library.
    """
    names = [
        region.name if region.file is None or _OF_LIBC.match(region.file) or is_unoptimized_access(region.name) else ""
        for region in profile.regions
    ]
    counts = count_by_name(names, shares[:, None])
    found = [(words, counts.get(fact.replace("_share", "_s"))) for fact, words in KIND_WORDS.items()]
    told = [(words, float(seconds.sum())) for words, seconds in found if seconds is not None]
    return sorted((one for one in told if one[1] >= _KIND), key=lambda one: -one[1])


def _select_measure(profile: Profile) -> tuple[str, FloatArray] | None:
    """Return what was measured of each region (R,), in words and numbers."""
    for name, words in _TIMES.items():
        table = profile.sum_by_region(name).sum(axis=1)
        if table.sum() > 0:
            return words, table
    for name, words in _COUNTS.items():
        counted = profile.counts.get(name)
        if counted is not None and counted.sum() > 0:
            return words, counted.sum(axis=1)
    return None
