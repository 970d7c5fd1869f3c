"""What the recorder folds, and what programs may do to it: nothing is lost, and nothing of theirs is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from recorded_runs import compile_program, record_run

from advisor.analysis.proven_imbalance import ACQUISITIONS, CRITICAL_SECONDS, RECORDING_SECONDS
from advisor.formats import recording
from advisor.trace import nesting
from advisor.trace.recordings.layout import CALL, COUNTED, FOLDED, map_records
from advisor.trace.recordings.processes import read_process

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

TURNS = 200_000


def count_of(profile: Profile, count: str, name: str) -> float:
    """The sum of a count over the regions with a name."""
    rows = [row for row, region in enumerate(profile.regions) if region.name == name]
    return float(profile.counts[count][rows].sum())


def closed_accounts(profile: Profile) -> bool:
    total = sum(phase.arrays["wall_s"].sum(axis=(0, 2)) for phase in profile.phases) + sum(profile.outside.values())
    return bool(np.allclose(total, profile.actual_s, rtol=1e-9, atol=0.0))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_folded_calls_are_all_counted(tmp_path: Path, compiler: str) -> None:
    program = compile_program(tmp_path, (compiler, "-fopenmp"), "hot_lock.c")
    folder, out, err = record_run(tmp_path, str(program), str(TURNS), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    assert out.split() == [str(TURNS)]
    profile = recording.advisor_read(folder)
    assert count_of(profile, "calls", "omp critical") == TURNS
    assert count_of(profile, ACQUISITIONS, "omp critical") == TURNS
    assert count_of(profile, "calls", "write") == TURNS
    assert count_of(profile, "io_operations", "write") == TURNS
    assert count_of(profile, "io_bytes", "write") == 7 * TURNS
    assert 0 < count_of(profile, CRITICAL_SECONDS, "omp critical") < profile.actual_s
    assert closed_accounts(profile)
    assert any(note.name == "calls folded" for note in profile.notes)
    written = sum(int((map_records(file)["kind"] > 0).sum()) for file in folder.glob("*.records"))
    assert written < TURNS


def test_folded_records_follow_each_other(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-fopenmp"), "hot_lock.c")
    folder, _, err = record_run(tmp_path, str(program), str(TURNS), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    (process,) = (read_process(file) for file in folder.glob("*.process"))
    inside = [number for number, name in process.functions.items() if name != "omp_parallel"]
    for file in folder.glob("*.records"):
        records = map_records(file)
        folded = records[records["kind"] == FOLDED]
        assert (folded["tag"] > 0).all()
        shortest, longest = folded["cpu_start_ns"] & np.uint64(0xFFFFFFFF), folded["cpu_start_ns"] >> np.uint64(32)
        spent, calls = (folded["end_ns"] - folded["start_ns"]).astype(np.int64), folded["tag"].astype(np.int64) + 1
        assert (shortest.astype(np.int64) * calls <= spent).all()
        assert (longest.astype(np.int64) * calls >= spent).all()
        leaves = records[np.isin(records["kind"], (CALL, FOLDED)) & np.isin(records["function"], inside)]
        assert (leaves["start_ns"][1:] > leaves["end_ns"][:-1]).all(), "calls of a thread never overlap"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_locks_that_are_taken_all_the_time_are_counted(tmp_path: Path, compiler: str) -> None:
    """Behind 64 acquisitions in one record no more is done than to count and to time them, and that is said."""
    program = compile_program(tmp_path, (compiler, "-fopenmp"), "hot_lock.c")
    folder, _, err = record_run(tmp_path, str(program), str(10 * TURNS), OMP_NUM_THREADS="1")
    assert "recorded into" in err, err
    (process,) = (read_process(file) for file in folder.glob("*.process"))
    (taking,) = (number for number, name in process.functions.items() if name == "omp_critical")
    records = np.concatenate([map_records(file) for file in folder.glob("*.records")])
    taken = records[records["function"] == taking]
    assert (taken["tag"].astype(np.int64) + 1).sum() == 10 * TURNS
    assert taken["tag"].max() > COUNTED
    assert (taken["size"][taken["tag"] > COUNTED] > 0).all(), "they are held for some time"
    profile = recording.advisor_read(folder)
    (cost,) = (note for note in profile.notes if note.name == "cost of recording")
    assert 0 < cost.penalty <= 0.3
    prices = process.prices
    assert profile.counts[RECORDING_SECONDS].sum() == pytest.approx(
        len(taken) * prices.record_s
        + float(np.minimum(taken["tag"], COUNTED).sum()) * prices.folded_s
        + float(np.maximum(taken["tag"] - COUNTED, 0).sum()) * prices.counted_s
    )


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_detached_tasks_run_and_are_counted(tmp_path: Path, compiler: str) -> None:
    program = compile_program(tmp_path, (compiler, "-fopenmp"), "detached.c")
    folder, out, err = record_run(tmp_path, str(program), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    assert out.split() == ["40", "1"]
    profile = recording.advisor_read(folder)
    assert profile.counts["tasks"].sum() == 40
    assert closed_accounts(profile)


def test_descriptors_of_the_program_are_its_own(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-pthread"), "careless.c")
    folder, out, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    assert out.split() == ["done"]
    assert (tmp_path / "home" / "careless.out").read_text("ascii") == "mine\n" * 64
    (process,) = (read_process(file) for file in folder.glob("*.process"))
    assert process.ended
    assert len(process.threads) == 5, "the jump out of sleep ends that call"
    trace = recording.read_trace(folder)
    calls = nesting.pair_calls(trace)
    assert (calls.leave >= 0).all()
    profile = recording.advisor_read(folder)
    assert count_of(profile, "calls", "read") == 4 * 3000
    assert closed_accounts(profile)
