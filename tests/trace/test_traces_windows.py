"""A trace looked at in windows gives the profile that it gives in one piece; no window holds more than it should."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import NUMBER, Line, build
from traced_programs import programs, threaded_programs

from advisor.formats import dimemas, otf2, paraver
from advisor.formats.dimemas import computation_trace
from advisor.formats.paraver import labels
from advisor.trace import spool, window_passes, windows
from advisor.trace.events import COLUMNS, Kind, Trace
from advisor.trace.profile import from_trace
from advisor.trace.windows import TraceWindows

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.records import Profile

PROFILES = Path(__file__).parents[1] / "profiles"
ARCHIVES = sorted(path.parent for path in (PROFILES / "otf2").rglob("*.otf2"))
RECORDINGS = sorted((PROFILES / "paraver").rglob("*.prv*"))
BURSTS = sorted((PROFILES / "dimemas").rglob("*.dim"))
CAUSES = ("category", "kind", "phase", "processor", "partner", "target", "size_class", "seconds", "count", "bytes")


def numbers(profile: Profile) -> dict[Any, np.ndarray]:
    """Return all numbers of a profile by what they stand for; rows without seconds are left out."""
    found: dict[Any, np.ndarray] = {("outside", name): values for name, values in profile.outside.items()}
    for phase in profile.phases:
        for measure, array in phase.arrays.items():
            for row, values in zip(phase.regions, array, strict=True):
                if values.any():
                    found[phase.name, measure, profile.regions[row]] = values
        if phase.duration_s is not None:
            found[phase.name, "duration"] = phase.duration_s
    for name, values in profile.counts.items():
        found |= {(name, region): row for region, row in zip(profile.regions, values, strict=True)}
    if profile.causes is not None:
        found |= {("causes", name): getattr(profile.causes, name) for name in CAUSES}
    return found


def told(profile: Profile) -> tuple[object, ...]:
    """Return what a profile says in words."""
    phases = [(phase.name, phase.kind, phase.closed_by, phase.iterations) for phase in profile.phases]
    return profile.run, profile.status, profile.notes, profile.paradigms, profile.regions, phases


def assert_same(cut: Profile, whole: Profile) -> None:
    assert told(cut) == told(whole)
    expected, found = numbers(whole), numbers(cut)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_allclose(found[key], values, rtol=1e-9, atol=1e-9, err_msg=str(key))


def computation(path: Path) -> Trace:
    """Return the trace that is made of a Dimemas trace: its messages are received nowhere."""
    return computation_trace.build_computation_trace(
        dimemas.read_records(path), labels.read_labels(labels.sibling_path(path, ".pcf"))
    ).trace


@pytest.mark.parametrize("events", [100, 1000])
@pytest.mark.parametrize(
    ("path", "read"),
    [(path, otf2.read_trace) for path in ARCHIVES]
    + [(path, paraver.read_trace) for path in RECORDINGS]
    + [(path, computation) for path in BURSTS],
    ids=lambda value: str(value.relative_to(PROFILES)) if isinstance(value, Path) else "",
)
def test_recorded_traces_in_windows(path: Path, read: Callable[[Path], Trace], events: int) -> None:
    trace = read(path)
    assert_same(from_trace(trace, window_events=events), from_trace(trace))


def test_the_recorded_traces_are_cut_at_all() -> None:
    cuts = {str(path): len(TraceWindows(otf2.read_trace(path), 100)) for path in ARCHIVES}
    assert sum(windows > 2 for windows in cuts.values()) >= 4, cuts


@given(programs(), st.integers(1, 60))
@settings(deadline=None, max_examples=150)
def test_any_program_in_windows(trace: Trace, events: int) -> None:
    assert_same(from_trace(trace, window_events=events), from_trace(trace))


def rounds(*closers: Callable[[Line, float], Line]) -> Trace:
    """Return two processes that do what ``closers`` say, one after the other, and synchronize behind each."""
    lines = [Line(0), Line(1)]
    for number, closer in enumerate(closers):
        for line in lines:
            closer(line, float(number)).collective(number + 0.5, number + 0.6, "MPI_Barrier")
    return build(*lines)


def works(line: Line, now: float) -> Line:
    return line.call(now, now + 0.1, "work")


def posts(line: Line, now: float) -> Line:
    line.enter(now, "MPI_Irecv").add(now, Kind.IRECV_POST, NUMBER["MPI_Irecv"], request=7)
    return line.leave(now + 0.1, "MPI_Irecv")


def completes(line: Line, now: float) -> Line:
    line.enter(now, "MPI_Wait").add(now, Kind.IRECV, NUMBER["MPI_Wait"], 0, 1 - line.rank, request=7, size=8)
    return line.leave(now + 0.1, "MPI_Wait")


def sends(line: Line, now: float) -> Line:
    return line.send(now, now + 0.1, 1 - line.rank)


def receives(line: Line, now: float) -> Line:
    return line.receive(now, now + 0.1, 1 - line.rank)


def test_a_trace_is_cut_behind_synchronizations() -> None:
    assert len(TraceWindows(rounds(works, works, works), 5)) == 3


def test_nothing_is_cut_while_a_message_is_under_way() -> None:
    assert len(TraceWindows(rounds(sends, works, receives, works), 1)) == 2


def test_nothing_is_cut_while_a_request_is_open() -> None:
    assert len(TraceWindows(rounds(posts, sends, completes, works), 1)) == 2


def test_messages_that_nobody_is_seen_to_receive_hold_nothing_up() -> None:
    assert len(TraceWindows(rounds(sends, works, works), 1)) == 3


def test_collectives_of_some_processes_are_no_place_to_cut() -> None:
    lines = [Line(0), Line(1), Line(2)]
    for now in (0.0, 1.0):
        for line in lines[:2]:
            line.collective(now, now + 0.5, "MPI_Barrier", comm=1)
        lines[2].call(now, now + 0.5, "work")
    assert len(TraceWindows(build(*lines, communicators=((0, 1, 2), (0, 1))), 1)) == 1


@given(threaded_programs(), st.integers(1, 100))
@settings(deadline=None, max_examples=100)
def test_any_program_of_threads_in_windows(trace: Trace, events: int) -> None:
    assert_same(from_trace(trace, window_events=events), from_trace(trace))


def test_threads_are_cut_where_they_have_nothing_to_do() -> None:
    lines = [Line(0), Line(0, 1), Line(1)]
    for line in (lines[0], lines[2]):
        for end in (0.5, 1.5, 2.5):
            line.collective(end - 0.4, end, "MPI_Barrier")
    lines[1].enter(0.0, "thread").call(0.1, 0.4, "work").call(0.45, 0.55, "work").call(1.6, 1.7, "work")
    assert len(TraceWindows(build(*lines), 1)) == 2, "at 1.5 s, and not at 0.5 s"


def long_loop(iterations: int) -> Trace:
    """Return the trace of a loop with many functions in one phase."""
    lines = [Line(rank) for rank in range(2)]
    for turn in range(iterations):
        for line in lines:
            for part in range(40):
                line.call(turn + part / 100, turn + part / 100 + 0.005, "work")
            line.collective(turn + 0.5, turn + 0.6, "MPI_Barrier")
    return build(*lines)


def held(trace: Trace) -> tuple[int, int]:
    """Return how many bytes the way to the profile took at most, and how many the profile's arrays take."""
    tracemalloc.start()
    profile = from_trace(trace, window_events=20_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most, sum(array.nbytes for phase in profile.phases for array in phase.arrays.values())


def test_memory_grows_with_the_profile_and_not_with_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_passes, "count_usable_cores", lambda: 1)  # several peak together now and then
    held(long_loop(5))  # what is loaded once
    little, small = held(long_loop(200))
    much, large = held(long_loop(1600))
    assert large == 8 * small
    assert much - little < 8 * (large - small)


def test_columns_on_disk_hold_what_columns_in_memory_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(path for path in ARCHIVES if "eztrace-lu" in str(path))
    plain = otf2.read_trace(path)
    monkeypatch.setattr(spool, "SPOOLED_EVENTS", 1)
    spooled = otf2.read_trace(path)
    assert spool._find_mapping(spooled.time_s) is not None
    assert spool._find_mapping(plain.time_s) is None
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(spooled, name), getattr(plain, name))
    assert_same(from_trace(spooled, window_events=1000), from_trace(plain))


def test_a_full_disk_leaves_columns_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    made = spool.make_column(10, np.int32, -1, spooled=True)
    assert not isinstance(made, np.memmap)
    assert made.tolist() == [-1] * 10


@pytest.mark.parametrize("room", [True, False], ids=["on disk", "no room"])
def test_numbers_put_away_come_back(room: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not room:
        monkeypatch.setattr("os.posix_fallocate", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    store = spool.ArrayStore()
    several = [np.array(numbers, dtype=np.int64) for numbers in ([1, -1, 2**31 - 1], [], [2**31, -(2**40)], [7])]
    seconds = [np.array([[[0.1, -2.5]], [[1e300, 0.0]]]), np.zeros((0, 3, 2)), np.arange(6.0).reshape(2, 3).T]
    for array, take in [(array, store.spill_array(array)) for array in (*several, *seconds)]:
        np.testing.assert_array_equal(take(), array, strict=True)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = otf2.read_trace(next(path for path in ARCHIVES if "eztrace-lu" in str(path)))
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(window_passes, "count_usable_cores", lambda threads=threads: threads)
        found.append(from_trace(trace, window_events=500))
    assert told(found[0]) == told(found[1])
    one, other = map(numbers, found)
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[key], other[key]) for key in one)


def test_each_column_is_let_go_of_behind_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go: list[int] = []
    monkeypatch.setattr(windows, "release_memory", lambda columns: let_go.extend(map(len, columns)))
    trace = rounds(works, works, works)
    TraceWindows(trace, 5).make_window(0, TraceWindows(trace, 5).empty_stacks())
    assert let_go == [len(trace.kind)] * len(COLUMNS)


def test_what_only_matching_needs_is_not_copied_again() -> None:
    cut = TraceWindows(rounds(works, works, works), 5)
    window = cut.make_window(0, cut.empty_stacks(), matched=True).trace
    empty = [name for name in COLUMNS if not len(getattr(window, name))]
    assert sorted(empty) == sorted(windows.MATCHING_COLUMNS)


def test_what_is_let_go_of_is_still_there() -> None:
    made = spool.make_column(100_000, np.int64, 3, spooled=True)
    made[5:] = 7
    spool.release_memory([made[10:]])
    assert made[:6].tolist() == [3, 3, 3, 3, 3, 7]
    assert int(made[6:].sum()) == 7 * 99_994
