"""The serial rule on phases that can be worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.model.records import Phase
from advisor.trace import serial


def phase(*durations: float) -> Phase:
    return Phase("phase", "parallel", np.array([0]), {}, duration_s=np.array(durations))


def is_serial(
    work: list[list[float]], waited: list[list[float]], closing: list[list[float]], *durations: float
) -> bool:
    """All by process and instance."""
    return serial._is_serial(phase(*durations), np.array(work), np.array(closing), np.array(waited))


def test_work_is_that_outside_of_parallel_regions_and_of_the_busiest_thread_inside() -> None:
    """Two processes of two threads; region 1 is parallel; 3 s of waiting and 1 s of synchronizing are no work."""
    wall = np.array([[[10.0], [0.0], [8.0], [0.0]], [[5.0], [7.0], [4.0], [2.0]]])
    nothing = np.zeros_like(wall)
    wait, sync = nothing.copy(), nothing.copy()
    wait[0, 0, 0], sync[0, 2, 0] = 3.0, 1.0
    run = Phase("phase", "parallel", np.array([0, 1]), {"wall_s": wall, "wait_s": wait, "sync_s": sync})
    found = serial._process_work_seconds(run, np.array([0, 0, 1, 1]), np.array([False, True]))
    assert found.ravel().tolist() == [10 - 3 + 7, 8 - 1 + 4]


def test_nothing_is_serial_where_nobody_works_or_waits() -> None:
    assert is_serial([[1.0], [0.0]], [[0.0], [1.0]], [[0.0], [1.0]], 1.0)
    assert not is_serial([[0.0], [0.0]], [[0.0], [1.0]], [[0.0], [1.0]], 1.0)
    assert not is_serial([[1.0], [0.0]], [[0.0], [0.0]], [[0.0], [0.0]], 1.0)


def test_what_the_worker_waits_itself_does_not_count() -> None:
    """It waits in the middle for a file; the others all wait at the end for it."""
    assert is_serial([[1.0], [0.0]], [[9.0], [1.0]], [[0.0], [1.0]], 1.0)
    assert not is_serial([[1.0], [0.0]], [[9.0], [1.0]], [[9.0], [0.4]], 1.0)


@pytest.mark.parametrize(("second", "expected"), [([1.0, 0.0], True), ([0.0, 1.0], False)])
def test_serial_instances_are_those_of_one_process(second: list[float], expected: bool) -> None:
    work = np.array([[1.0, 0.0], second]).T.tolist()
    waited = (1 - np.array(work)).tolist()
    assert is_serial(work, waited, waited, 1.0, 1.0) == expected


def test_the_process_with_most_serial_time_decides() -> None:
    work = [[1.0, 0.0], [0.0, 1.0]]
    waited = [[0.0, 1.0], [1.0, 0.0]]
    assert is_serial(work, waited, waited, 0.05, 0.95)


def two_phases() -> tuple[Phase, Phase]:
    """Two processes, two instances each: in the first phase one works and the other waits, in the second both work."""
    nothing = np.zeros((2, 2, 2))
    alone, both, wait = nothing.copy(), nothing.copy(), nothing.copy()
    alone[0], both[0], wait[0, 1] = 5.0, 5.0, 5.0
    made = [
        Phase(name, "parallel", np.array([0, 1]), arrays | {"sync_s": nothing}, duration_s=np.array([5.0, 5.0]))
        for name, arrays in (
            ("serial", {"wall_s": alone, "wait_s": wait}),
            ("parallel", {"wall_s": both, "wait_s": nothing}),
        )
    ]
    return made[0], made[1]


@pytest.mark.parametrize(
    ("process", "kinds"),
    [([0, 1], ["serial", "parallel"]), ([1, 0], ["serial", "parallel"]), ([0, 0], ["parallel", "parallel"])],
)
def test_each_phase_is_judged_by_its_own_instances(
    process: list[int], kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instances of the two phases take turns; threads of one process are never serial."""
    monkeypatch.setattr(serial, "processes_of_locations", lambda _: np.array(process))
    closing = np.array([[0.0, 5.0], [0.0, 0.0], [0.0, 5.0], [0.0, 0.0]])
    trace: Any = None
    found = serial.mark_serial_phases(trace, two_phases(), np.array([False, False]), closing, np.array([0, 1, 0, 1]))
    assert [phase.kind for phase in found] == kinds
