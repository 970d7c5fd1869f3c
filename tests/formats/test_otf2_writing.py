"""What is written as an OTF2 archive is read as it was, and a copy of one names the same partners."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from otf2_archives import Archive

from advisor.formats.otf2 import advisor_sniff, read_trace

_EVENTS = st.lists(
    st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 4), st.integers(0, 2**40)), min_size=1, max_size=60
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=_EVENTS)
def test_what_is_written_is_read(tmp_path: Path, events: list[tuple[int, bool, int, int]]) -> None:
    shutil.rmtree(tmp_path / "any", ignore_errors=True)
    clocks = [1] * 4
    wanted: list[list[tuple[int, int, str]]] = [[], [], [], []]
    with Archive(tmp_path / "any", ranks=2, threads=2, resolution=1) as archive:
        for place, entered, region, pause in events:
            clocks[place] += pause
            writer, name = archive.events(place), f"function {region}"
            (writer.enter if entered else writer.leave)(clocks[place], archive.region(name))
            wanted[place].append((1 if entered else 2, clocks[place], name))
    trace = read_trace(tmp_path / "any")
    start = min(time for place in wanted for _, time, _ in place)
    found = [
        (kind, int(time) + start, trace.regions[region].name)
        for kind, time, region in zip(trace.kind.tolist(), trace.time_s.tolist(), trace.region.tolist(), strict=True)
    ]
    assert [found[a:b] for a, b in zip(trace.first[:-1], trace.first[1:], strict=True)] == wanted


def test_the_folder_that_one_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert advisor_sniff(Path()) is None
    assert advisor_sniff(Path("/")) is None


@pytest.mark.parametrize("exchange", [False, True])
def test_copies_are_files_that_name_the_same_partners(tmp_path: Path, exchange: bool) -> None:
    """Threads may begin and end at the same ticks; two ranks do not receive the same messages at the same ticks."""
    with Archive(tmp_path / "copies", ranks=4) as archive:
        work = archive.region("work")
        for number, place in enumerate(archive.locations):
            events = archive.events(place)
            later = 0 if number in (1, 2) else number + 1
            events.enter(10 + later, work)
            if exchange and number in (1, 2):
                events.mpi_send(20, 0, archive.world, 7, 100)
            events.leave(90 + later, work)
    noted = {note.name for note in read_trace(tmp_path / "copies").notes}
    assert ("the same file twice" in noted) == exchange
