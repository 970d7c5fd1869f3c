"""First threads that only wait for the threads that they started are no processors of a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from advisor.formats.recording.idle_threads import leave_out_idle_threads
from advisor.model.records import Phase, Processor, Profile, Region

if TYPE_CHECKING:
    from advisor.formats.recording.contents import Recording


def profile_of(cpu_s: list[float], io_s: list[float]) -> Profile:
    """Return a run of 10 s with a thread for each number."""
    shape = (1, len(cpu_s), 1)
    arrays = {"cpu_s": np.array(cpu_s).reshape(shape), "io_s": np.array(io_s).reshape(shape)}
    arrays |= {"wall_s": np.full(shape, 10.0), "wait_s": 10.0 - arrays["cpu_s"] - arrays["io_s"]}
    return Profile(
        program="program", run="1", reader="recording", actual_s=10.0,
        processors=tuple(Processor(0, thread) for thread in range(len(cpu_s))), regions=(Region("work"),),
        phases=(Phase("all", "parallel", np.arange(1), arrays),), status={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cpu_s", "io_s", "left"),
    [
        ([0.01, 9.0], [0.0, 0.0], [1]),
        ([0.01, 9.0], [0.2, 0.0], [1]),
        ([0.01, 9.0], [2.0, 0.0], [0, 1]),
        ([0.1, 0.5], [0.0, 0.0], [0, 1]),
        ([1.0, 9.0], [0.0, 0.0], [0, 1]),
        ([0.1, 5.0, 9.0], [0.0, 0.0, 0.0], [1, 2]),
        ([0.1], [0.0], [0]),
    ],
)
def test_a_thread_that_waits_for_others_is_left_out(cpu_s: list[float], io_s: list[float], left: list[int]) -> None:
    recording = cast("Recording", SimpleNamespace(threads=()))
    assert [one.thread for one in leave_out_idle_threads(profile_of(cpu_s, io_s), recording).processors] == left
