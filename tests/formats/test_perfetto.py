"""Perfetto traces of rocprofv3, written here by the schema, whole and damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from damage import damage_evenly
from wire_writing import Field, write_message

from advisor.formats.perfetto import advisor_read, advisor_sniff

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
NAMES = {
    1: "stencil(double*)",
    2: "hipLaunchKernel",
    3: "hipDeviceSynchronize",
    4: "step",
    5: "MEMORY_COPY_HOST_TO_DEVICE",
}
CATEGORIES = {1: "kernel_dispatch", 2: "hip_api", 3: "marker_api", 4: "memory_copy", 5: "hsa_api"}
ARGUMENTS = {1: "corr_id", 2: "agent", 3: "copy_bytes", 4: "dst_agent"}
THREAD, QUEUE, COPIES = 11, 12, 13


def packet(*fields: Field) -> Field:
    return (1, [*fields, (10, 1)])


def slices(start: int, end: int, track: int, category: int, name: int, **known: int) -> list[tuple[int, Field]]:
    """Return begin and end, by their moments."""
    numbers = {name: number for number, name in ARGUMENTS.items()}
    annotations: list[Field] = [(4, [(1, numbers[key]), (3, value)]) for key, value in known.items()]
    begin = packet((8, start), (11, [(9, 1), (11, track), (3, category), (10, name), *annotations]))
    return [(start, begin), (end, packet((8, end), (11, [(9, 2), (11, track)])))]


def write_trace(path: Path) -> Path:
    """Three steps of 20 ms: a copy of 2 ms, a kernel of 10 ms, a wait."""
    events: list[tuple[int, Field]] = []
    for step in range(3):
        at, link = 20 * MS * step, 10 * step
        events += slices(at, at + 19 * MS, THREAD, 3, 4)
        events += slices(at + 1, at + 2 * MS, COPIES, 4, 5, corr_id=link + 1, copy_bytes=1 << 22, dst_agent=4)
        launch = at + 2 * MS + 10_000
        events += slices(launch, launch + 10_000, THREAD, 2, 2, corr_id=link + 2)
        events += slices(launch + 1000, launch + 9000, THREAD, 5, 3)  # HSA's calls lie inside HIP's
        events += slices(launch + 20_000, launch + 20_000 + 10 * MS, QUEUE, 1, 1, corr_id=link + 2, agent=4)
        events += slices(launch + 20_000, launch + 40_000 + 10 * MS, THREAD, 2, 3)
    events.sort(key=lambda event: event[0])
    texts = [(table, [(1, key), (2, name)]) for table, names in ((1, CATEGORIES), (2, NAMES), (3, ARGUMENTS))
             for key, name in names.items()]  # fmt: skip
    tracks = [packet((60, [(1, uuid), (2, name)])) for uuid, name in ((QUEUE, "COMPUTE AGENT [4] QUEUE [0] (GPU)"),)]
    thread = packet((60, [(1, THREAD), (4, [(1, 7), (2, 7), (5, "main")])]))
    path.write_bytes(write_message([packet((13, 1), (12, texts)), thread, *tracks, *(each for _, each in events)]))
    return path


def test_seconds_of_a_trace(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "results.pftrace")
    assert advisor_sniff(file) == 0.9
    profile = advisor_read(file)
    use = profile.devices
    assert use is not None
    assert sum(each.mean() for each in use.seconds.values()) == pytest.approx(profile.actual_s, rel=1e-9)
    ms = {name: float(each[0]) * 1e3 for name, each in use.seconds.items() if each.any()}
    assert ms["compute"] == pytest.approx(30.0)
    assert ms["copies"] == pytest.approx(6.0, abs=0.1)
    assert use.facts["iterations"] == 3
    assert use.facts["sync_calls"] == 3
    assert profile.paradigms == ("hip",)


def test_traces_of_a_directory_are_ranks(tmp_path: Path) -> None:
    write_trace(tmp_path / "1_results.pftrace")
    assert advisor_sniff(tmp_path) is None
    write_trace(tmp_path / "2_results.pftrace")
    assert advisor_sniff(tmp_path) == 0.9
    use = advisor_read(tmp_path).devices
    assert use is not None
    assert len(use.devices) == 2


def test_damage_ends_in_a_message_or_a_run(tmp_path: Path) -> None:
    whole = write_trace(tmp_path / "whole.pftrace").read_bytes()
    place = tmp_path / "damaged.pftrace"
    damage_evenly(whole, place, advisor_read, 80, 0x15)
    place.write_bytes(b"no trace at all")
    assert advisor_sniff(place) is None
