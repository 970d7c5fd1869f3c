"""Profiles of any shape, consistent in themselves, for properties that hold for all of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from advisor.model.records import CAUSE_CATEGORIES, MEASURES, Causes, Note, Phase, Processor, Profile, Region

names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
optional_names = st.none() | names
seconds = st.floats(0, 1e6)


def arrays(shape: tuple[int, ...], elements: st.SearchStrategy[float] = seconds) -> st.SearchStrategy[Any]:
    return npst.arrays(np.float64, shape, elements=elements)


@st.composite
def phases(draw: st.DrawFn, regions: int, processors: int, *, whole: bool) -> Phase:
    chosen = draw(st.lists(st.integers(0, regions - 1), min_size=1, max_size=3, unique=True))
    iterations = draw(st.integers(1, 3))
    measures = draw(st.lists(st.sampled_from(MEASURES), min_size=1, unique=True))
    return Phase(
        name=draw(names),
        kind="whole" if whole else draw(st.sampled_from(("parallel", "serial"))),
        regions=np.array(chosen, np.int64),
        arrays={
            name: draw(arrays((len(chosen), processors, iterations), st.floats(-1, 1) if name == "os_s" else seconds))
            for name in measures
        },
        closed_by=draw(optional_names),
        start_s=draw(st.none() | arrays((iterations,), st.floats(-10, 10))),
        duration_s=draw(st.none() | arrays((iterations,))),
    )


@st.composite
def causes(draw: st.DrawFn, regions: int, processors: int, of_phases: int) -> Causes:
    rows = draw(st.integers(0, 3))
    kinds = tuple(draw(st.lists(names, min_size=1, max_size=2)))
    targets = tuple(draw(st.lists(names, max_size=2)))
    highest = {
        **{"category": len(CAUSE_CATEGORIES) - 1, "kind": len(kinds) - 1, "phase": of_phases - 1, "call": regions - 1},
        **{"caller": regions - 1, "processor": processors - 1, "partner": processors - 1, "target": len(targets) - 1},
        **{"size_class": 40, "count": 2**62, "bytes": 2**62},
    }
    columns: dict[str, Any] = {
        name: draw(npst.arrays(np.int64, (rows,), elements=st.integers(0 if name in _NEVER_NONE else -1, high)))
        for name, high in highest.items()
    }
    known: dict[str, Any] = {"kinds": kinds, "targets": targets, "seconds": draw(arrays((rows,))), **columns}
    return Causes(**known)


_NEVER_NONE = ("category", "kind", "call", "count")


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    regions = draw(st.integers(1, 4))
    places = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=3, unique=True))
    whole = draw(st.booleans())
    count = 1 if whole else draw(st.integers(1, 3))
    found = tuple(draw(phases(regions, len(places), whole=whole)) for _ in range(count))
    stated = {name for phase in found for name in phase.arrays}
    status: dict[str, Any] = {name: draw(st.sampled_from(("measured", "estimated", "modelled"))) for name in stated}
    return Profile(
        program=draw(names),
        run=draw(names),
        reader=draw(names),
        actual_s=draw(st.floats(1e-6, 1e6)),
        processors=tuple(Processor(rank, thread, draw(optional_names)) for rank, thread in places),
        regions=tuple(
            Region(draw(names), draw(optional_names), draw(st.none() | st.integers(0, 9999)), draw(st.booleans()))
            for _ in range(regions)
        ),
        phases=found,
        status=status,
        build=draw(optional_names),
        started=draw(optional_names),
        machine=draw(optional_names),
        cores=draw(st.none() | st.integers(1, 1000)),
        language=draw(optional_names),
        paradigms=tuple(draw(st.lists(names, max_size=2))),
        parameters=draw(st.dictionaries(names, names | st.floats(allow_nan=False, allow_infinity=False), max_size=2)),
        outside=draw(st.dictionaries(names, arrays((len(places),)), max_size=2)),
        counts=draw(st.dictionaries(names, arrays((regions, len(places))), max_size=2)),
        causes=draw(st.none() | causes(regions, len(places), count)),
        notes=tuple(draw(st.lists(st.builds(Note, names, names, st.floats(0, 1), optional_names), max_size=2))),
        ranks_expected=draw(st.none() | st.integers(1, 1000)),
        clock_uncertainty_s=draw(st.none() | st.floats(0, 1)),
        sampled_code=tuple(draw(st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(1, 1000)), max_size=3))),
    )


def plain(value: object) -> object:
    """The value with records and arrays as dictionaries and lists, to compare two profiles."""
    if isinstance(value, np.ndarray):
        return (value.dtype.kind, value.shape, value.tolist())
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, tuple) else value
