"""What threads can share of the code that one of them runs alone: neither reading text nor taking memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fact_sheets import site_values

from advisor import pipeline
from advisor.analysis.disturbance import TAKEN
from advisor.analysis.loads.computation import find_sequential_regions
from advisor.extension import host
from advisor.model import policy
from advisor.model.records import Advice, Phase, Processor, Profile, Region
from advisor_simulation.whatif.gains import try_change
from advisor_simulation.whatif.measured_run import build_run
from advisor_simulation.whatif.trial import build_trial

THREADS = 4


def advise_on(text_s: float, smooth_s: float, name: str = "isoc99_fscanf", cores: int = THREADS) -> Advice:
    """A program of four threads that share a loop of 4 s; the first one reads text and smooths before."""
    loop_s = 4.0
    cpu_s = np.array([[text_s] + [0.0] * 3, [smooth_s] + [0.0] * 3, [loop_s / THREADS] * THREADS])[:, :, None]
    waited_s = np.zeros_like(cpu_s)
    zero = np.zeros((3, THREADS))
    text = zero.copy()
    text[0] = cpu_s[0, :, 0]
    actual_s = text_s + smooth_s + loop_s / THREADS
    counts = {"all": cpu_s[:, :, 0], "known": cpu_s[:, :, 0], "unoptimized": zero, "text": text, "allocation": zero}
    profile = Profile(
        program="program",
        run="1",
        reader="recording",
        actual_s=actual_s,
        processors=tuple(Processor(0, thread) for thread in range(THREADS)),
        regions=(
            Region(name, "graph.c", 9),
            Region("smooth", "graph.c", 13),
            Region("!$omp parallel", "graph.c", 24, threaded=True),
        ),
        phases=(
            Phase(
                "to the end", "parallel", np.arange(3),
                {"cpu_s": cpu_s, "wall_s": cpu_s, "wait_s": waited_s, "sync_s": waited_s},
                start_s=np.zeros(1), duration_s=np.array([actual_s]),
            ),
        ),
        outside={"idle": np.array([0.0] + [text_s + smooth_s] * 3)},
        status=dict.fromkeys(("cpu_s", "wall_s", "wait_s", "sync_s"), "measured"),
        counts={f"code.{kind}_s": table for kind, table in counts.items()},
        paradigms=("OpenMP",),
        cores=cores,
    )  # fmt: skip
    return pipeline.study_run(profile, pipeline.Options(), host.load_plugins()).advice


def test_more_threads_for_the_loop_that_one_runs_alone() -> None:
    found = {item.action: item for item in advise_on(2.0, 1.0).recommendations}
    assert (found["G-3"].region, found["G-3"].line) == ("smooth", 13)
    assert found["G-3"].ceiling_s == pytest.approx((1 + policy.REPAIR_SPREAD) * 0.75)


def test_threads_beyond_the_cores_share_no_work() -> None:
    (found,) = (item for item in advise_on(2.0, 1.0, cores=2).recommendations if item.action == "G-3")
    assert found.ceiling_s == pytest.approx((1 + policy.REPAIR_SPREAD) * 0.5)
    assert found.expected_s == pytest.approx(0.5)


def test_work_that_moves_wins_no_more_than_all_cores_that_compute() -> None:
    """4 s with 7 s of computation: two cores need 3.5 s, four would be done in 1.75 s."""
    for cores, most_s in ((2, 0.5), (4, 2.25)):
        trial = build_trial(build_run(advise_on(2.0, 1.0, "smooth too", cores).profile))
        gain = try_change(trial, {"threads": "everywhere"})
        assert gain is not None
        assert trial.run.most_shared_seconds() == pytest.approx(most_s)
        assert gain.expected_s <= most_s + 1e-9


@pytest.mark.parametrize("name", ["isoc99_fscanf", "fread"])
def test_reading_alone_is_no_work_for_threads(name: str) -> None:
    advice = advise_on(2.0, 0.0, name)
    assert name in find_sequential_regions(advice.profile)
    assert "G-3" not in {item.action for item in advice.recommendations}


def run_alone(**changed: object) -> Profile:
    """A program of one thread on four cores that reads text for 1 s and smooths for 3 s."""
    cpu_s = np.array([[1.0], [3.0]])
    zero = np.zeros_like(cpu_s)
    text = np.array([[1.0], [0.0]])
    counts = {"all": cpu_s, "known": cpu_s, "unoptimized": zero, "text": text, "allocation": zero, "math": zero}
    times = {"cpu_s": cpu_s[:, :, None], "wall_s": cpu_s[:, :, None]}
    alone = Profile(
        program="program",
        run="1",
        reader="recording",
        actual_s=4.0,
        processors=(Processor(0, 0),),
        regions=(Region("isoc99_fscanf", "graph.c", 9), Region("smooth", "graph.c", 13)),
        phases=(
            Phase(
                "to the end", "parallel", np.arange(2), {**times, "wait_s": times["cpu_s"] * 0.0},
                start_s=np.zeros(1), duration_s=np.array([4.0]),
            ),
        ),
        status=dict.fromkeys(("cpu_s", "wall_s", "wait_s"), "measured"),
        counts={f"code.{kind}_s": table for kind, table in counts.items()},
        cores=4,
    )  # fmt: skip
    return replace(alone, **changed)


@pytest.mark.parametrize(
    ("changed", "divisible_s"),
    [
        ({}, 3.0 * 3 / 4),
        ({"cores": 1}, 0.0),
        ({"counts": {**run_alone().counts, TAKEN: np.array([[8.0]])}}, 3.0 / 2),  # others had two of the cores
        ({"counts": {**run_alone().counts, TAKEN: np.array([[16.0]])}}, 0.0),
        ({"paradigms": ("MPI",)}, None),
        ({"language": "python"}, None),
        ({"cores": None}, None),
    ],
)
def test_idle_cores_could_share_what_the_only_thread_computes(changed: dict[str, object], divisible_s: object) -> None:
    assert site_values(run_alone(**changed)).get("phase.divisible_s") == divisible_s


def test_a_program_of_one_thread_is_divided_among_idle_cores_after_what_is_less_effort() -> None:
    found = pipeline.study_run(run_alone(), pipeline.Options(), host.load_plugins()).advice.recommendations
    item = next(item for item in found if item.action == "G-118")
    assert item.ceiling_s == pytest.approx(3.0 * 3 / 4)
    slow = run_alone(counts={**run_alone().counts, "code.unoptimized_s": run_alone().counts["code.all_s"]})
    found = pipeline.study_run(slow, pipeline.Options(), host.load_plugins()).advice.recommendations
    assert found[0].action == "G-29"
