from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from fact_sheets import site_values
from hypothesis import given
from hypothesis import strategies as st
from sampled_runs import process, recording, thread

from advisor.analysis import bounds, gaps, quality, soundness
from advisor.collect.procfs import IoCounters
from advisor.collect.profile import DISPLACED, build_profile
from advisor.collect.records import UNKNOWN, BlockedCall
from advisor.collect.sampled_run import analyze_recording
from advisor.formats import native, native_writer
from advisor.model.errors import AdvisorError
from advisor.model.records import CAUSE_CATEGORIES

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.collect.records import Recording
    from advisor.model.records import Profile

FSYNC = BlockedCall("file", "fsync", "/data/out")
SLEEP = BlockedCall("other", "nanosleep")


def made(run: Recording) -> Profile:
    profile = build_profile(analyze_recording(run))
    soundness.check_profile(profile)
    return profile


def total(profile: Profile, measure: str, processor: int = 0) -> float:
    return float(profile.phases[0].arrays[measure][:, processor].sum())


def gap(profile: Profile, name: str) -> float:
    return next(one.seconds for one in gaps.attribute_gaps(profile, bounds.compute_bounds(profile)) if one.name == name)


def test_time_in_files_is_time_off_the_processor_in_calls_on_files() -> None:
    run = recording(process("app", 0, 10, 4.0, blocked={FSYNC: 2.0, SLEEP: 1.0}))
    profile = made(run)
    assert total(profile, "io_s") == pytest.approx(4.0)
    assert total(profile, "cpu_s") == pytest.approx(4.0)
    assert total(profile, "os_s") == pytest.approx(2.0)
    assert total(profile, "wall_s") == pytest.approx(10.0)
    assert gap(profile, "O") == pytest.approx(6.0)


def test_to_get_a_processor_again_is_part_of_the_call_that_gave_it_up() -> None:
    run = process("app", 0, 10, 4.0, delay=4.0, blocked={FSYNC: 1.0})
    run.main_thread.switches = (3, 1)
    assert total(made(recording(run)), "io_s") == pytest.approx(5.0)
    assert made(recording(run)).outside["other programs"].tolist() == pytest.approx([1.0])
    run.main_thread.switches = (0, 9)
    assert made(recording(run)).outside["other programs"].tolist() == pytest.approx([4.0])


def test_the_call_and_the_file_are_the_cause() -> None:
    causes = made(recording(process("app", 0, 10, 4.0, blocked={FSYNC: 1.0}))).causes
    assert causes is not None
    assert causes.targets == ("/data/out",)
    assert causes.category.tolist() == [CAUSE_CATEGORIES.index("io")]
    assert causes.seconds == pytest.approx([6.0])


def test_calls_that_were_over_before_they_could_be_named_are_like_the_others() -> None:
    profile = made(recording(process("app", 0, 10, 4.0, blocked={FSYNC: 1.0, BlockedCall("file", UNKNOWN): 2.0})))
    assert [region.name for region in profile.regions] == ["app", "fsync"]
    assert total(profile, "io_s") == pytest.approx(6.0)


def test_unknown_calls_alone_have_a_name_all_the_same() -> None:
    profile = made(recording(process("app", 0, 10, 4.0, blocked={BlockedCall("file", UNKNOWN): 2.0})))
    assert [region.name for region in profile.regions] == ["app", "blocked on disk"]
    assert profile.causes is None
    assert total(profile, "io_s") == pytest.approx(6.0)


def test_system_time_counts_as_reading_and_writing_as_far_as_the_calls_explain_it() -> None:
    many = IoCounters(0, 100_000_000, 0, 20_000)
    few = IoCounters(1000, 0, 20, 0)
    busy = made(recording(process("app", 0, 10, 10.0, system=0.5, counters=many)))
    assert total(busy, "io_s") == pytest.approx(0.5)
    assert total(busy, "cpu_s") == pytest.approx(9.5)
    assert total(made(recording(process("app", 0, 10, 10.0, system=0.5, counters=few))), "io_s") < 0.002


def test_what_children_read_is_not_counted_twice() -> None:
    child = process("zip", 0, 5, 4.0, counters=IoCounters(0, 9000, 0, 90))
    parent = process("app", 0, 10, 9.0, counters=IoCounters(0, 10_000, 0, 100))
    child.parent = parent.pid
    counts = made(recording(parent, child)).counts["files.written_B"]
    assert counts.sum() == 10_000


def test_an_idle_rank_is_imbalance() -> None:
    ranks = [process("app", 0, 10, 9.9, rank=0), process("app", 0, 10, 0.1, rank=1, blocked={SLEEP: 5.0})]
    profile = made(recording(*ranks))
    assert gap(profile, "L") == pytest.approx(4.9, abs=0.01)
    assert total(profile, "wait_s", 1) == pytest.approx(9.9)
    idle = next(note for note in profile.notes if note.name == "idle processor")
    assert idle.text == "rank 1 worked 1.0 % of its time, and was mostly in nanosleep; the busiest 99.0 %"


def test_ranks_that_come_late_and_leave_early() -> None:
    ranks = [process("app", 1, 9, 8.0, rank=0), process("app", 4, 9, 5.0, rank=1)]
    profile = made(recording(*ranks))
    assert [(one.from_s, one.to_s) for one in profile.processors] == [(1, 9), (4, 9)]
    assert {name: each.tolist() for name, each in profile.outside.items()} == {
        "start-up": [1, 1], "shutdown": [1, 1], "not running": [0, 3], "other programs": [0, 0],
    }  # fmt: skip


def test_missing_ranks_are_missed() -> None:
    profile = made(recording(process("app", 0, 10, 9.0, rank=0, ranks=4), process("app", 0, 10, 9.0, rank=1, ranks=4)))
    assert profile.ranks_expected == 4
    levels = bounds.compute_bounds(profile)
    notes = quality.grade_profile(profile, levels, gaps.attribute_gaps(profile, levels)).notes
    assert "the profile holds 2 of 4 ranks" in [note.text for note in notes]


def test_pipes_are_input_to_one_process_and_waiting_among_several() -> None:
    pipe = {BlockedCall("input", "read", "pipe"): 1.0}
    alone = made(recording(process("app", 0, 10, 4.0, blocked=pipe)))
    assert total(alone, "io_s") == pytest.approx(6.0)
    both = made(recording(process("app", 0, 10, 10.0, rank=0), process("app", 0, 10, 4.0, rank=1, blocked=pipe)))
    assert total(both, "wait_s", 1) == pytest.approx(6.0)


def test_what_happened_after_the_last_sample_is_like_what_was_seen() -> None:
    profile = made(recording(process("app", 0, 10, 4.0, last=8.0, blocked={FSYNC: 1.0})))
    assert total(profile, "cpu_s") == pytest.approx(5.0)
    assert total(profile, "io_s") == pytest.approx(5.0)


def test_nobody_waits_for_a_processor_that_is_alone_and_nothing_is_estimated_but_what_is() -> None:
    profile = made(recording(process("app", 0, 10, 10.0)))
    assert profile.status == {
        "wall_s": "measured", "cpu_s": "estimated", "io_s": "estimated", "os_s": "estimated",
    }  # fmt: skip
    assert "waiting hidden" not in [note.name for note in profile.notes]


def test_ranks_may_poll_while_they_wait() -> None:
    profile = made(recording(*(process("app", 0, 10, 9.9, rank=n) for n in range(2))))
    assert profile.status == {name: "measured" if name == "wall_s" else "estimated" for name in profile.status}
    assert quality.HIDDEN in [note.name for note in profile.notes]
    assert not {"cpu_s", "transfer_s", "sync_s"} & set(profile.status)


def test_threads_are_processors_of_their_rank() -> None:
    app = process("app", 0, 10, 9.0)
    app.threads[2] = thread(2, 0, 10, 8.0)
    profile = made(recording(app))
    assert [processor.name for processor in profile.processors] == ["rank 0", "rank 0 thread 1"]
    assert all(region.threaded for region in profile.regions)
    assert gap(profile, "L") == pytest.approx(0.5)


def test_ranks_bound_to_one_processor_share_it() -> None:
    profile = made(recording(*(process("app", 0, 10, 5.0, rank=n, cpus=frozenset({3})) for n in range(2))))
    assert profile.cores == 1


def with_threads(cpu_s: float, delay_s: float) -> Profile:
    """Four threads on two cores for ten seconds, each with so much CPU time and time in which it had no core.

    Four of seven times a thread lost its core while it computed: so much of its run-queue time is none of a call.
    """
    queue_s = delay_s * 7 / 4
    app = process("app", 0, 10, cpu_s, delay=queue_s)
    app.threads.update({tid: thread(tid, 0, 10, cpu_s, delay=queue_s) for tid in (2, 3, 4)})
    return made(recording(app))


@pytest.mark.parametrize(
    ("cpu_s", "delay_s", "delayed_by_others", "shares"),
    [
        (3.6, 3.6, False, True),  # each other's: one of two has a core at a time
        (1.0, 1.0, False, False),  # each other's, but both cores are seldom busy
        (1.0, 3.0, True, False),  # more than they can do to each other
        (1.0, 0.0, False, False),  # they sleep
    ],
)
def test_threads_that_mostly_sleep_share_no_cores(
    cpu_s: float, delay_s: float, delayed_by_others: bool, shares: bool
) -> None:
    profile = with_threads(cpu_s, delay_s)
    assert len(profile.processors) == 4
    assert (DISPLACED in profile.outside) == delayed_by_others
    assert (bounds.explain_shared_cores(profile) is not None) == shares
    busy = site_values(profile)["run.busy_cores"]
    assert busy == pytest.approx(min((cpu_s + (0.0 if delayed_by_others else delay_s)) * 4 / (2 * 10), 1.0))


def test_what_was_not_seen_is_said() -> None:
    run = recording(
        process("app", 0, 10, 5.0, counters=None), process("mpirun", 0, 10, 0.1), wall=10, code=-9, samples=7, used=7.0,
        sees_calls=False, left=2, longest=4.0,
    )  # fmt: skip
    notes = {note.name: note.text for note in made(run).notes}
    assert notes["few samples"].startswith("with only 7 samples")
    assert notes["program failed"] == "the program was ended by SIGKILL, so the run may be incomplete"
    assert notes["processes missed"].startswith("1.90 s of CPU time")
    assert notes["launchers"].endswith(": mpirun")
    assert "grew to" in notes["cost of sampling"]
    assert {"calls not seen", "files not seen", "still running"} <= set(notes)


def test_the_cost_of_sampling_is_shown() -> None:
    notes = {note.name: note.text for note in made(recording(process("app", 0, 10, 5.0))).notes}
    assert notes["cost of sampling"] == "sampling took 80.0 ms of CPU time, 0.8 % of one processor"


def test_odd_names_can_be_written_and_read(tmp_path: Path) -> None:
    odd = "a b\udcff\x1b[2J\n"
    run = recording(
        process("ünïcode\\xff", 0, 10, 5.0, blocked={BlockedCall("file", "write", f"/data/{odd}"): 1.0}),
        arguments=(f"./{odd}", "x" * 9000),
    )
    profile = build_profile(analyze_recording(run))
    native_writer.write_profile(profile, tmp_path / "run.json")
    again = native.advisor_read(tmp_path / "run.json")
    assert again.program == "ünïcode\\xff"
    assert again.causes is not None
    assert again.causes.targets == ("/data/a b\\xff\x1b[2J\n",)
    assert json.loads((tmp_path / "run.json").read_text("utf-8"))["parameters"]["samples"] == 200


def test_the_build_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPWATCH_BUILD", "v7")
    assert made(recording(process("app", 0, 10, 5.0))).build == "v7"


seconds = st.floats(0, 10)


@given(st.lists(st.tuples(seconds, seconds, seconds, seconds, seconds, seconds), min_size=1, max_size=5), st.booleans())
def test_the_parts_of_every_processor_add_up_to_its_time(values: list[tuple[float, ...]], ranked: bool) -> None:
    processes = []
    for number, (one, other, cpu, system, delay, weight) in enumerate(values):
        start, end = sorted((one, other))
        processes.append(
            process(
                "app",
                start,
                end,
                cpu,
                rank=number if ranked else None,
                system=min(system, cpu),
                delay=delay,
                blocked={FSYNC: weight, SLEEP: 1.0},
                counters=IoCounters(10**6, 10**7, 100, 1000),
            )
        )
    profile = made(recording(*processes, wall=10.0))
    arrays = profile.phases[0].arrays
    parts = ("cpu_s", "io_s", "os_s") if "cpu_s" in arrays else ("work_s", "wait_s")
    together = sum(arrays[name].sum(axis=0) for name in parts)
    assert np.allclose(together, arrays["wall_s"].sum(axis=0), atol=1e-6)
    assert all(float(array.min()) >= 0 for array in arrays.values())
    elapsed = arrays["wall_s"].sum(axis=(0, 2)) + sum(profile.outside.values())
    assert (elapsed <= 10.0 + 0.03 * len(values)).all()


def test_nobody_to_be_seen_is_an_error() -> None:
    with pytest.raises(AdvisorError, match="no process of the program"):
        analyze_recording(recording())
