"""Several recordings of one run: which belong together, what each brings, and where they disagree."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from profile_strategies import profiles

from advisor.analysis import gaps, merging, soundness
from advisor.analysis.bounds import compute_bounds
from advisor.model.records import Causes, Phase, Processor, Profile, Region

TWO = (Processor(0), Processor(1))
STATUS: dict[str, Any] = dict.fromkeys(
    ("wall_s", "wait_s", "sync_s", "transfer_s", "io_s", "cpu_s", "os_s"), "measured"
)


def phase(name: str, work: list[float], wait: list[float]) -> Phase:
    """One phase of the regions ``main`` and ``solve`` on two processors, with ten iterations."""
    rows = np.array([[0.1 * w for w in work], [0.9 * w for w in work]])
    wall = np.repeat(rows[:, :, None] / 10, 10, axis=2)
    waits = np.zeros_like(wall)
    waits[0] = np.repeat(np.array(wait)[:, None] / 10, 10, axis=1)
    zero = np.zeros_like(wall)
    arrays = {"wall_s": wall + waits, "wait_s": waits, "sync_s": zero, "transfer_s": zero, "io_s": zero}
    return Phase(name, "parallel", np.array([0, 1]), arrays, duration_s=(wall + waits).sum(axis=(0, 1)) / 2)


def trace(**changed: object) -> Profile:
    made = Profile(
        program="heat",
        run="t1",
        reader="trace",
        actual_s=10.0,
        processors=TWO,
        regions=(Region("main", "heat.c"), Region("solve", "heat.c", 42)),
        phases=(phase("first", [4.0, 2.0], [0.0, 2.0]), phase("second", [6.0, 6.0], [0.0, 0.0])),
        status=STATUS,
        counts={"calls": np.ones((2, 2))},
    )
    return replace(made, **dict(changed))


def counted(**changed: object) -> Profile:
    made = Profile(
        program="/somewhere/heat",
        run="c1",
        reader="counter",
        actual_s=math.nan,
        processors=TWO,
        regions=(Region("solve", "/src/heat.c"), Region("helper")),
        phases=(Phase("the whole run", "whole", np.array([0, 1]), {}),),
        status={},
        counts={"compiled_ops.load": np.array([[30.0, 20.0], [3.0, 2.0]])},
    )
    return replace(made, **dict(changed))


def io_log(seconds: tuple[float, float] = (2.0, 0.0), **changed: object) -> Profile:
    one = np.array([0])
    causes = Causes(
        kinds=("file",), targets=("out.dat",), category=np.array([3]), kind=one, phase=one, call=one,
        caller=one - 1, processor=one, partner=one - 1, target=one, size_class=np.array([12]),
        seconds=np.array([seconds[0]]), count=np.array([1000]), bytes=np.array([4096000]),
    )  # fmt: skip
    array = np.array([[[seconds[0]], [seconds[1]]]])
    made = Profile(
        program="heat",
        run="i1",
        reader="io",
        actual_s=9.8,
        processors=TWO,
        regions=(Region("write"),),
        phases=(Phase("the whole run", "whole", np.array([0]), {"io_s": array}),),
        status={"io_s": "measured"},
        causes=causes,
    )
    return replace(made, **dict(changed))


def seconds(profile: Profile) -> dict[str, float | None]:
    return {bound.name: bound.seconds for bound in compute_bounds(profile)}


@given(profiles())
def test_one_recording_alone_is_itself(profile: Profile) -> None:
    assert merging.merge_recordings([profile]) is profile
    assert merging.group_by_run([profile]) == [[profile]]


def test_counts_go_to_the_regions_of_the_same_name_and_nothing_is_lost() -> None:
    merged = merging.merge_recordings([counted(), trace()])
    soundness.check_profile(merged)
    assert [region.name for region in merged.regions] == ["main", "solve", "helper"]
    assert merged.counts["compiled_ops.load"].tolist() == [[0, 0], [30, 20], [3, 2]]
    assert merged.counts["calls"].tolist() == [[1, 1], [1, 1], [0, 0]]
    assert merged.reader == "trace+counter"
    assert merged.actual_s == 10.0
    assert seconds(merged) == seconds(trace())
    assert [note.text for note in merged.notes if note.name == "merged"] == ["times of trace; counts of counter"]


def test_a_trace_without_functions_takes_all_counts_in_the_program() -> None:
    only = trace(regions=(Region("heat"), Region("MPI_Barrier")))
    for one in only.phases:
        one.arrays["wall_s"][1] = 0.0
    merged = merging.merge_recordings([only, counted()])
    assert merged.counts["compiled_ops.load"].tolist() == [[33, 22], [0, 0]]


def test_functions_of_the_same_name_in_other_files_are_others() -> None:
    merged = merging.merge_recordings([trace(), counted(regions=(Region("solve", "/lib/other.c"), Region("helper")))])
    assert merged.counts["compiled_ops.load"].tolist() == [[0, 0], [0, 0], [30, 20], [3, 2]]


def test_io_that_only_a_log_saw_moves_seconds_from_computation() -> None:
    merged = merging.merge_recordings([io_log(), trace()])
    soundness.check_profile(merged)
    io = [one.arrays["io_s"].sum(axis=(0, 2)).tolist() for one in merged.phases]
    assert io == [[pytest.approx(0.8), 0.0], [pytest.approx(1.2), 0.0]]
    before, after = seconds(trace()), seconds(merged)
    assert after["IPC"] == pytest.approx((before["IPC"] or 0) - 1.0)
    for name in ("IPCO", "IPCOL", "IPCOLM", "IPCOLMD", "IPCOLMDSW", "actual"):
        assert after[name] == pytest.approx(before[name])
    found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(merged, compute_bounds(merged))}
    assert found["O"] == pytest.approx(1.0)
    assert merged.status["io_s"] == "estimated"


def test_the_files_of_the_io_are_laid_over_the_phases() -> None:
    causes = merging.merge_recordings([io_log(), trace()]).causes
    assert causes is not None
    assert causes.phase.tolist() == [0, 1]
    assert causes.seconds == pytest.approx([0.8, 1.2])
    assert causes.count.tolist() == [400, 600]
    assert [causes.targets[n] for n in causes.target] == ["out.dat", "out.dat"]


def test_more_io_than_a_processor_can_have_done_is_cut_to_its_computing_time() -> None:
    merged = merging.merge_recordings([io_log((50.0, 0.0)), trace()])
    assert sum(one.arrays["io_s"].sum() for one in merged.phases) == pytest.approx(10.0)
    assert seconds(merged)["I"] == pytest.approx(4.0)


def test_disagreement_is_reported_and_the_leader_stands() -> None:
    merged = merging.merge_recordings([trace(cores=4), io_log(cores=8, actual_s=14.0)])
    assert [note.text for note in merged.notes if note.name == "contradiction"] == [
        "cores: trace says 4, io 8",
        "the run took 10.0 s for trace, 14.0 s for io; they may be different runs",
    ]
    assert (merged.cores, merged.actual_s) == (4, 10.0)


def test_a_recording_of_some_processors_says_so() -> None:
    half = counted(processors=TWO[:1], counts={"compiled_ops.load": np.ones((2, 1))})
    merged = merging.merge_recordings([trace(), half])
    assert "compiled_ops.load" not in merged.counts
    assert [note.text for note in merged.notes if note.name == "partial recording"] == [
        "counter recorded 1 of 2 processors; its counts and times are left out"
    ]


def test_what_is_known_of_the_run_is_joined() -> None:
    merged = merging.merge_recordings(
        [trace(parameters={"N": 64.0}), counted(build="b7", language="c", parameters={"steps": 5.0})]
    )
    assert (merged.build, merged.language, dict(merged.parameters)) == ("b7", "c", {"N": 64.0, "steps": 5.0})


@pytest.mark.parametrize(
    "other",
    [
        trace(run="t2"),
        counted(program="wave"),
        counted(build="b8"),
        counted(parameters={"N": 128.0}),
        io_log(processors=(*TWO, Processor(2))),
    ],
    ids=["the same tool twice", "another program", "another build", "another size", "other processors"],
)
def test_what_does_not_belong_together_stays_apart(other: Profile) -> None:
    assert len(merging.group_by_run([trace(build="b7", parameters={"N": 64.0}), other])) == 2


@pytest.mark.parametrize(
    "other",
    [counted(), counted(program=""), counted(processors=TWO[:1]), io_log(build="b7"), counted(program="./heat")],
)
def test_what_belongs_together(other: Profile) -> None:
    assert len(merging.group_by_run([trace(build="b7"), other])) == 1


def test_a_name_that_the_system_cut_off_is_the_same_program() -> None:
    long = trace(program="a_very_long_program_name")
    assert len(merging.group_by_run([long, counted(program="a_very_long_pro")])) == 1
    assert len(merging.group_by_run([long, counted(program="a_very_long")])) == 2


def test_a_run_without_times_is_never_the_newest() -> None:
    runs = merging.group_by_run(
        [trace(started="2026-11-19T10:00:00"), counted(program="wave", started="2026-11-20T10:00:00")]
    )
    assert [run[0].has_run_time for run in runs] == [False, True]


def test_of_several_runs_the_nearest_in_time_is_taken_and_the_newest_comes_last() -> None:
    old = trace(run="old", started="2026-11-19T10:00:00")
    new = trace(run="new", started="2026-11-20T10:00:00")
    log = io_log(started="2026-11-19T10:00:01+00:00")
    runs = merging.group_by_run([new, log, old])
    assert [[one.run for one in run] for run in runs] == [["old", "i1"], ["new"]]


def test_recordings_without_a_name_need_more_to_belong_together() -> None:
    led = trace(run="a", started="2026-11-19T10:00:00")
    table = io_log(program="", actual_s=1.2 * led.actual_s)
    assert len(merging.group_by_run([led, table])) == 1
    assert len(merging.group_by_run([led, replace(table, actual_s=1.6 * led.actual_s + 0.1)])) == 2
    assert len(merging.group_by_run([led, io_log(actual_s=1.6 * led.actual_s + 0.1)])) == 1, "both name the program"


def test_a_recording_without_a_name_goes_to_none_of_several_runs() -> None:
    old, new = trace(run="old"), trace(run="new")
    assert sorted(len(run) for run in merging.group_by_run([old, new, io_log(program="")])) == [1, 1, 1]
    dated = replace(new, started="2026-11-20T10:00:00")
    log = io_log(program="", started="2026-11-20T10:00:01")
    assert sorted(len(run) for run in merging.group_by_run([old, dated, log])) == [1, 2]


def test_recordings_without_a_name_belong_to_the_folder_they_lie_in() -> None:
    led, table = trace(), io_log(program="")
    for there, runs in (("a", 1), ("a/log", 1), (".", 1), ("b", 2)):
        folders = {id(led): PurePath("top/a"), id(table): PurePath("top") / there}
        assert len(merging.group_by_run([led, table], folders)) == runs, there


@pytest.mark.parametrize(
    ("started", "runs"),
    [
        ("2026-11-20T10:00:20", 1),
        ("2026-11-20T18:30:20", 1),  # the clock of another zone
        ("2026-11-20T10:07:00", 2),
        ("2026-11-20T18:37:00", 2),
        ("2026-11-23T10:00:00", 2),
    ],
)
def test_runs_one_after_the_other_stay_apart(started: str, runs: int) -> None:
    led = trace(started="2026-11-20T10:00:00")
    assert led.actual_s < 60
    assert len(merging.group_by_run([led, io_log(started=started)])) == runs


def account(**changed: object) -> Profile:
    """What a timer of whole commands says of the trace's run."""
    made = Profile(
        program="heat",
        run="time.txt",
        reader="timer",
        actual_s=11.5,
        processors=(Processor(0, 0),),
        regions=(Region("the command"),),
        phases=(Phase("the whole run", "whole", np.array([0, 1]), {"wall_s": np.full((1, 1, 1), 11.5)}),),
        status={"wall_s": "measured"},
        parameters={"memory_bytes": 5e6},
        command="mpirun -n 2 /somewhere/heat input",
    )
    return replace(made, **dict(changed))


def test_the_account_of_a_command_belongs_to_the_run_of_its_program() -> None:
    run = [trace(parameters={"N": 7}), account()]
    assert merging.group_by_run(run) == [run]
    merged = merging.merge_recordings(run[::-1])
    assert (merged.actual_s, merged.parameters) == (10.0, {"N": 7, "memory_bytes": 5e6})
    notes = {note.name: note for note in merged.notes}
    assert notes["command"].text == "the whole command took 11.5 s, 1.50 s beside what trace recorded"
    assert notes["merged"].text == "times of trace; the command of timer"
    assert not any(note.penalty for note in merged.notes)
    assert seconds(merged) == seconds(run[0])


@pytest.mark.parametrize(
    ("other", "command"),
    [
        (trace(), {"command": "mpirun -n 2 /somewhere/wave input"}),
        (trace(), {"actual_s": 9.98}),
        (trace(build="a"), {"build": "b"}),
        (trace(started="2026-11-20T10:00:00"), {"started": "2026-11-20T12:07:00"}),
        (counted(), {}),
    ],
)
def test_the_account_of_another_command_is_the_run_that_is_chosen_last(
    other: Profile, command: dict[str, object]
) -> None:
    """What was only counted had other times: a simulator ran it."""
    alone = account(**command)
    assert merging.group_by_run([other, alone]) == [[alone], [other]]


def test_the_account_of_a_command_fits_one_run_of_its_folder_or_none() -> None:
    runs = [trace(run="old"), trace(run="new", program=""), account()]
    assert sorted(map(len, merging.group_by_run(runs))) == [1, 1, 1]
    folders = {id(one): PurePath("top", name) for one, name in zip(runs, "aba", strict=True)}
    assert sorted(map(len, merging.group_by_run(runs, folders))) == [1, 2]
