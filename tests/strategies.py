"""Synthetic profiles whose times fit together: by hand (``build``) and drawn by hypothesis (``runs``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from advisor.model.records import CAUSE_CATEGORIES, Causes, FloatArray, Phase, PhaseKind, Processor, Profile, Region

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Loads with few digits, so that sums are nearly exact and ties do occur.
loads = st.integers(0, 40).map(lambda number: number / 8)

#: What is spent in a phase, measure by measure; ``wall_s`` follows from them.
SPENT = ("cpu_s", "transfer_s", "io_s", "os_s", "sync_s")


def phase(
    work: object,
    kind: PhaseKind = "parallel",
    name: str = "phase",
    regions: Sequence[int] | None = None,
    **more: object,
) -> Phase:
    """A phase that states its work: (regions, processors, iterations), or (processors, iterations) of one region."""
    array = np.asarray(work, dtype=np.float64)
    array = array[np.newaxis] if array.ndim == 2 else array
    indices = np.arange(array.shape[0]) if regions is None else np.asarray(regions)
    arrays: Mapping[str, FloatArray] = {"work_s": array} | more.pop("arrays", {})
    return Phase(name, kind, indices.astype(np.int64), arrays, **more)


def build(phases: Sequence[Phase], actual_s: float | None = None, **more: object) -> Profile:
    """A profile of ``phases``; one thread per rank, nine regions and the time of all phases unless told otherwise."""
    columns = next(iter(phases[0].arrays.values())).shape[1]
    peak = sum(float(next(iter(each.arrays.values())).sum(axis=0).max(axis=0).sum()) for each in phases)
    names = sorted({name for each in phases for name in each.arrays})
    known: dict[str, Any] = {
        "program": "synthetic",
        "run": "1",
        "reader": "by hand",
        "actual_s": peak if actual_s is None else actual_s,
        "processors": tuple(Processor(rank) for rank in range(columns)),
        "regions": tuple(Region(f"region {number}") for number in range(9)),
        "phases": tuple(phases),
        "status": dict.fromkeys(names, "measured"),
    }
    return Profile(**(known | more))


@st.composite
def runs(draw: st.DrawFn, *, threads: int = 3, kinds: Sequence[PhaseKind] = ("parallel", "serial")) -> Profile:
    """A run of ranks with 1 to ``threads`` threads in which every instance ends for everybody at the same time."""
    processors = tuple(
        Processor(rank, thread)
        for rank in range(draw(st.integers(1, 3)))
        for thread in range(draw(st.integers(1, threads)))
    )
    regions = tuple(Region(f"region {number}", threaded=draw(st.booleans())) for number in range(4))
    found, clock = [], draw(loads)
    for number in range(draw(st.integers(1, 4))):
        made = draw(_phases(f"phase {number}", draw(st.sampled_from(kinds)), processors, regions))
        length = made.duration_s if made.duration_s is not None else np.zeros(0)
        found.append(replace(made, start_s=clock + np.cumsum(length) - length))
        clock += float(length.sum())
    profile = Profile(
        program="drawn",
        run="1",
        reader="by chance",
        actual_s=clock + draw(loads) + 1.0,
        processors=processors,
        regions=regions,
        phases=tuple(found),
        status=dict.fromkeys((*SPENT, "wait_s", "wall_s"), "measured"),
        outside={"start-up": np.full(len(processors), 0.5)},
        cores=draw(st.none() | st.integers(1, 9)),
    )
    return replace(profile, causes=causes(profile)) if draw(st.booleans()) else profile


@st.composite
def _phases(
    draw: st.DrawFn, name: str, kind: PhaseKind, processors: Sequence[Processor], regions: Sequence[Region]
) -> Phase:
    chosen = draw(st.lists(st.integers(0, len(regions) - 1), min_size=1, max_size=3, unique=True))
    shape = (len(chosen), len(processors), draw(st.integers(1, 4)))
    arrays = {measure: draw(npst.arrays(np.float64, shape, elements=loads)) for measure in SPENT}
    spent = sum(arrays.values())
    busy = effective(spent, [regions[region].threaded for region in chosen], processors)
    duration = busy.max(axis=0) + draw(npst.arrays(np.float64, shape[2:], elements=loads))
    arrays["wait_s"] = np.zeros(shape)
    arrays["wait_s"][0] = np.maximum(duration - spent.sum(axis=0), 0.0)
    arrays["wall_s"] = spent + arrays["wait_s"]
    return Phase(name, kind, np.array(chosen), arrays, duration_s=duration)


def effective(array: FloatArray, threaded: Sequence[bool], processors: Sequence[Processor]) -> FloatArray:
    """The loads (processors, iterations) of an array (regions, processors, iterations), by plain loops."""
    load = array.sum(axis=0)
    for number, processor in enumerate(processors):
        if processor.thread == 0:
            continue
        master = processors.index(Processor(processor.rank))
        for row, inside in enumerate(threaded):
            if not inside:
                load[number] += array[row, master]
    return load


def causes(profile: Profile) -> Causes:
    """One cause for every value of the measures that have causes, each with a kind of its own."""
    rows = [
        (category, number, int(made.regions[row]), processor, float(seconds))
        for category, name in enumerate(CAUSE_CATEGORIES[:4])
        for number, made in enumerate(profile.phases)
        if f"{name}_s" in made.arrays
        for (row, processor), seconds in np.ndenumerate(made.arrays[f"{name}_s"].sum(axis=2))
        if seconds
    ]
    whole = [np.array(column, dtype=np.int64) for column in (list(zip(*rows, strict=True)) or [[]] * 5)[:4]]
    nothing = np.full(len(rows), -1)
    return Causes(
        kinds=("message", "late sender", "barrier", "file", "start-up"),
        targets=("out.dat",),
        category=whole[0],
        kind=whole[0],
        phase=whole[1],
        call=whole[2],
        caller=nothing,
        processor=whole[3],
        partner=nothing,
        target=np.where(whole[0] == CAUSE_CATEGORIES.index("io"), 0, -1),
        size_class=np.where(whole[0] == CAUSE_CATEGORIES.index("transfer"), 11, -1),
        seconds=np.array([row[4] for row in rows], dtype=np.float64),
        count=np.ones(len(rows), dtype=np.int64),
        bytes=np.full(len(rows), 1024),
    )
