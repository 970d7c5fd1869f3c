"""The CPU time of formatted output in a recording is told from waiting for the file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from advisor.analysis.formatted_io import TEXT_SECONDS
from advisor.formats.recording.formatted_io import count_formatting
from advisor.model.records import Phase, Processor, Profile, Region
from advisor.trace.recordings.layout import CALL, RECORD, SAMPLE, STATE

MS = 1_000_000


def recorded(function: str, cpu_ms: float) -> SimpleNamespace:
    """A thread that calls ``function`` twice for 10 ms, of which it has a core for ``cpu_ms``; 20 ms lie between."""
    records = np.zeros(4, dtype=RECORD)
    begin = 100 * MS
    records["kind"] = (STATE, CALL, CALL, STATE)
    records["start_ns"] = begin + np.array([0, 0, 30, 40]) * MS
    records["end_ns"] = begin + np.array([0, 10, 40, 40]) * MS
    records["function"] = 7
    between = 20.0
    records["cpu_start_ns"] = (5 * MS + np.array([0, 0, cpu_ms + between, 2 * cpu_ms + between]) * MS).astype(np.uint64)
    records["cpu_end_ns"][1] = int((5 + cpu_ms) * MS)
    span = SimpleNamespace(number=0, begin_ns=begin, begin_cpu_ns=5 * MS)
    process = SimpleNamespace(functions={7: function}, python={}, objects=(), program="app")
    thread = SimpleNamespace(
        process=process, span=span, rank=0, processor=0, records=records, samples=np.zeros(0, dtype=SAMPLE), offset_ns=0
    )
    return SimpleNamespace(threads=[thread], places={})


def profile_of(function: str) -> Profile:
    arrays = {"io_s": np.full((1, 1, 1), 0.02), "wall_s": np.full((1, 1, 1), 0.04)}
    return Profile(
        program="app", run="1", reader="recording", actual_s=0.04, processors=(Processor(0),),
        regions=(Region(function),), phases=(Phase("run", "whole", np.arange(1), arrays),),
        status={"io_s": "measured", "wall_s": "measured"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("function", "cpu_ms", "seconds"), [("fprintf", 10.0, 0.02), ("fscanf", 2.5, 0.005), ("fwrite", 10.0, 0.0)]
)
def test_formatting_is_the_time_with_a_core_in_formatted_calls(
    function: str, cpu_ms: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advisor.formats.recording.naming.sorted_objects", lambda _: [])
    monkeypatch.setattr(
        "advisor.formats.recording.naming.locate_addresses", lambda _, addresses: np.full((len(addresses), 2), -1)
    )
    made: Any = recorded(function, cpu_ms)
    counts = count_formatting(profile_of(function), made)
    assert counts[TEXT_SECONDS].tolist() == [[pytest.approx(seconds)]]
