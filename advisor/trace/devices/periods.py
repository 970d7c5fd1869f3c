"""Iterations of runs that mark none: what a device does repeats.

Of a program's steps each issues the same activities in the same order, but for the first ones, which compile, tune and
fill caches, and single activities that only some of them have. A name that occurs once in each step cuts the run into
segments that hold nearly the same activities. So do the layers of a network, within a step, and epochs of many steps.
Steps are the shortest segments in each of which host and device meet: data come back, the host waits, or an optimizer
is called. Layers do not, though their weights may be copied to the device; where nothing meets, nothing is called an
iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor.trace.devices.events import Activity, CallRole, DeviceTrace, Direction
from advisor.trace.devices.naming import find_named_calls
from advisor.trace.devices.operator_facts import UPDATES

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray, IntArray

#: So few repetitions may be chance.
_FEWEST: Final = 3
#: Segments are alike whose activities differ from the usual ones by this share at most.
_DIFFERENCE: Final = 0.1
#: So many segments must be alike, and hold so many of the activities: the others are warm-up, validation, output.
_ALIKE: Final = 0.8
_COVERED: Final = 0.5
#: The share of the segments, at the beginning, that may be warm-up.
_WARM_UP: Final = 0.25
#: Names with other counts are tried so often, from the smallest count on; so many names tell segments apart.
_TRIES: Final = 60
_NAMES: Final = 400
#: Activities beyond these are not needed to find a period.
_MOST: Final = 1_000_000


class _Cut(NamedTuple):
    """Where segments begin (indices of activities in the order of issue), and which of them are alike."""

    begin: IntArray
    alike: BoolArray


def find_periods(trace: DeviceTrace) -> FloatArray:
    """Return the limits (iterations + 1,) of what the first device repeats, seconds; empty where nothing does.

    A limit is when the first activity of an iteration begins. Unlike segments at either end are left out.
    """
    acts = trace.activities
    mine = np.flatnonzero(acts.device == acts.device[0])[:_MOST] if len(acts.device) else acts.device
    issued = acts.start_s[mine].copy()
    linked = acts.call[mine] >= 0
    issued[linked] = trace.calls.start_s[acts.call[mine][linked]]
    mine = mine[np.argsort(issued, kind="stable")]
    meeting = np.flatnonzero(_find_meetings(trace, mine))
    cuts = _iterate_cuts(acts.name[mine] * len(Direction) + acts.direction[mine])
    met = [cut for cut in cuts if _meet_in_each(cut, meeting)]
    if not met:
        return np.zeros(0)
    cut = met[-1]
    first, last = np.flatnonzero(cut.alike)[[0, -1]]
    edges = acts.start_s[mine[cut.begin[first : last + 1]]]
    rest = mine[cut.begin[last] : cut.begin[last + 1] if last + 1 < len(cut.begin) else len(mine)]
    end = acts.start_s[mine[cut.begin[last + 1]]] if last + 1 < len(cut.begin) else acts.end_s[rest].max()
    limits: FloatArray = np.r_[edges, end]
    return limits if (np.diff(limits) > 0).all() else np.zeros(0)


def _iterate_cuts(kind: IntArray) -> Iterator[_Cut]:
    """Yield the cuts into segments that are alike, those of the fewest segments first."""
    names, kind, counts = np.unique(kind, return_inverse=True, return_counts=True)
    usual = np.argsort(-counts, kind="stable")[:_NAMES]
    row: IntArray = np.full(len(names), len(usual), dtype=np.int64)
    row[usual] = np.arange(len(usual))
    first: IntArray = np.full(len(names), len(kind), dtype=np.int64)
    np.minimum.at(first, kind, np.arange(len(kind)))
    sizes = np.unique(counts[(counts >= _FEWEST) & (counts <= len(kind) // 2)])
    for size in sizes[:_TRIES].tolist():
        anchors = np.flatnonzero(counts == size)
        begin = np.flatnonzero(kind == anchors[first[anchors].argmin()])
        cuts = []
        for each in (begin, begin - begin[0]):  # the recording may begin with an iteration
            alike = _compare_segments(row[kind], each, len(usual) + 1)
            cuts += [_Cut(each, alike)] if alike is not None else []
        if cuts:
            yield max(cuts, key=lambda cut: int(cut.alike.sum()))


def _compare_segments(row: IntArray, begin: IntArray, rows: int) -> BoolArray | None:
    """Return which segments are alike, None where too few are."""
    count = len(begin)
    segment = np.searchsorted(begin, np.arange(len(row)), side="right") - 1
    inside = segment >= 0
    table = np.bincount(segment[inside] * rows + row[inside], minlength=count * rows).reshape(count, rows)
    settled = slice(int(_WARM_UP * count), -1)  # the last one goes on to the end of the recording
    usual = np.median(table[settled], axis=0)
    difference = np.abs(table - usual).sum(axis=1)
    alike: BoolArray = difference <= _DIFFERENCE * max(usual.sum(), 1.0)
    enough = alike[settled].mean() >= _ALIKE and alike.sum() >= _FEWEST
    return alike if enough and table[alike].sum() >= _COVERED * len(row) else None


def _find_meetings(trace: DeviceTrace, mine: IntArray) -> BoolArray:
    """Return which activities host and device meet at: copies to the host, what follows a wait or an optimizer."""
    acts, calls = trace.activities, trace.calls
    found: BoolArray = (acts.kind[mine] == Activity.COPY) & (acts.direction[mine] == Direction.TO_HOST)
    waits = np.sort(
        calls.end_s[np.r_[np.flatnonzero(calls.role == CallRole.SYNCHRONIZE), find_named_calls(trace, UPDATES)]]
    )
    hosted = trace.devices[int(acts.device[0])].is_host  # what a host does itself begins when it is issued
    known = np.arange(len(mine)) if hosted else np.flatnonzero(acts.call[mine] >= 0)
    issued = acts.start_s[mine] if hosted else calls.start_s[acts.call[mine][known]]
    found[known[1:]] |= np.diff(np.searchsorted(waits, issued)) > 0
    return found


def _meet_in_each(cut: _Cut, meeting: IntArray) -> bool:
    """Return whether host and device meet in nearly all segments that are alike."""
    ends = np.r_[cut.begin[1:], np.iinfo(np.int64).max]
    met = np.searchsorted(meeting, ends) > np.searchsorted(meeting, cut.begin)
    return bool(met[cut.alike].mean() >= _ALIKE)
