"""Tasks of OpenMP under the recorder: all are seen, and what runs in a wait is no waiting. No time is asserted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from recorded_runs import compile_program, record_run

from advisor.formats import recording
from advisor.formats.recording.contents import read_recording
from advisor.formats.recording.tasks import nest_tasks
from advisor.trace import nesting
from advisor.trace.events import Kind, Role

if TYPE_CHECKING:
    from pathlib import Path

LOOPS = 50


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_tasks_are_work_wherever_they_run(tmp_path: Path, compiler: str) -> None:
    program = compile_program(tmp_path, (compiler, "-fopenmp"), "tasks.c")
    folder, out, err = record_run(tmp_path, str(program), str(LOOPS), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    run, deep, result, parts = (int(word) for word in out.split())
    assert (run, result, parts) == (3 * LOOPS, 144, 10 * LOOPS)
    profile = recording.advisor_read(folder)
    tasks = profile.counts["tasks"].sum()
    # a runtime may hand out the parts of a taskloop by further tasks
    assert run + deep + LOOPS <= tasks <= run + deep + 2 * LOOPS
    assert bool(profile.counts["tasks.recording_s"].any()) == (compiler == "gcc"), "OMPT tells no creation by itself"
    named = [region for region in profile.regions if region.name == "omp task"]
    assert {region.file for region in named} == {"tasks.c"}
    assert len({region.line for region in named}) >= 5
    total = sum(phase.arrays["wall_s"].sum(axis=(0, 2)) for phase in profile.phases) + sum(profile.outside.values())
    assert np.allclose(total, profile.actual_s, rtol=1e-9, atol=0.0)
    trace = recording.read_trace(folder)
    calls = nesting.pair_calls(trace)
    assert (calls.leave >= 0).all()
    roles = nesting.roles_of_regions(trace)[calls.region]
    work = roles == Role.OMP_WORK
    assert work.any()
    assert (calls.anchor[work] < 0).all()  # none lies inside of a wait
    entered = trace.kind == Kind.ENTER
    assert (np.diff(trace.time_s) >= 0)[~np.isin(np.arange(len(trace.time_s) - 1), trace.first[1:] - 1)].all()
    assert int(entered.sum()) == len(calls.region)


def test_tasks_without_lines_belong_to_the_program(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-g0", "-fopenmp"), "tasks.c")
    folder, out, err = record_run(tmp_path, str(program), str(LOOPS), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    run, deep, *_ = (int(word) for word in out.split())
    profile = recording.advisor_read(folder)
    assert profile.counts["tasks"].sum() >= run + deep + LOOPS
    rows = np.flatnonzero(profile.counts["tasks"].sum(axis=1))
    assert {profile.regions[row].name for row in rows.tolist()} == {profile.program}


def test_the_seconds_of_tasks_are_their_own(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-fopenmp"), "tasks.c")
    folder, _, err = record_run(tmp_path, str(program), str(LOOPS), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    for thread in read_recording(folder).threads:
        found = nest_tasks(thread)
        assert found is not None
        inside = found.parent >= 0
        assert (found.start_ns[inside] > found.start_ns[found.parent[inside]]).all()
        assert (found.end_ns[inside] < found.end_ns[found.parent[inside]]).all()
        lasted = int((found.end_ns - found.start_ns)[~inside].sum())
        assert 0 < int(found.busy_ns(thread)[found.is_task].sum()) <= lasted


def test_a_plugin_brings_a_runtime_of_its_own(tmp_path: Path) -> None:
    part = compile_program(tmp_path, ("gcc", "-fopenmp", "-DPART", "-fPIC", "-shared", "-O2"), "plugin.c")
    part = part.rename(part.with_name("part.so"))
    program = compile_program(tmp_path, ("gcc",), "plugin.c", "-ldl")
    folder, out, err = record_run(tmp_path, str(program), str(part), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    assert out == "499500\n"
    assert len(recording.advisor_read(folder).processors) == 2
