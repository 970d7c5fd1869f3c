"""Recorded traces: replayed as recorded they give their own times; on a network they stay what they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from replay_traces import trace_of

from advisor.trace.profile import from_trace
from advisor_simulation.replay import conversion, outcome, outcome_report, rebuilding
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Op, Program

if TYPE_CHECKING:
    from collections.abc import Callable

PROFILES = Path(__file__).parents[2] / "profiles"
TIMED = sorted(
    [path for path in (PROFILES / "otf2").iterdir() if path.is_dir()]
    + [path.parent for path in (PROFILES / "paraver").rglob("trace.prv*") if "simulated" not in path.parts]
)


@pytest.fixture
def program_of(tmp_path: Path) -> Callable[[Path], Program]:
    return lambda folder: conversion.convert_trace(trace_of(folder, tmp_path / "unpacked"))


@pytest.mark.parametrize("path", TIMED, ids=lambda path: path.name)
def test_recorded_times_come_back(path: Path, program_of: Callable[[Path], Program]) -> None:
    program = program_of(path)
    found = outcome.replay_recorded(program, Network())
    assert program.end_s is not None
    np.testing.assert_allclose(found.end_s, program.end_s, rtol=0, atol=1e-9)
    assert found.path is not None
    assert found.path.alpha == pytest.approx(found.time_s, rel=1e-12)


def test_computation_can_change_while_the_network_stays_as_recorded(program_of: Callable[[Path], Program]) -> None:
    program = program_of(PROFILES / "otf2" / "scorep-multiphase")
    slower = outcome.replay_recorded(program, Network(cpu_ratio=2.0))
    once, twice = outcome.replay_recorded(program, Network()).compute_s, slower.compute_s
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-9)
    assert slower.time_s > 1.3 * outcome.replay_recorded(program, Network()).time_s


def test_a_region_alone_can_be_changed(program_of: Callable[[Path], Program]) -> None:
    program = program_of(PROFILES / "otf2" / "scorep-multiphase")
    phase = np.flatnonzero((program.op == Op.BURST) & (program.region == program.names.index("phase1")))
    changed = outcome.replay_program(program, Network(region_ratios={"phase1": 0.0}))
    plain = outcome.replay_program(program, Network())
    saved = plain.compute_s.sum() - changed.compute_s.sum()
    assert saved == pytest.approx(program.value[phase].sum(), rel=1e-9)


def test_requests_and_messages_are_those_of_the_trace(program_of: Callable[[Path], Program]) -> None:
    program = program_of(PROFILES / "otf2" / "eztrace-lu")
    counts = {op: int((program.op == op).sum()) for op in Op}
    assert counts[Op.SEND] == len(program.source) == 1131
    assert (counts[Op.RECV], counts[Op.IRECV], counts[Op.DONE]) == (1020, 111, 111)
    assert not program.left_out


def test_the_replayed_run_is_a_trace_again(program_of: Callable[[Path], Program]) -> None:
    program = program_of(PROFILES / "otf2" / "scorep-multiphase")
    found = outcome.replay_program(program, Network(5e-6, 1e9))
    again = conversion.convert_trace(rebuilding.rebuild_trace(program, found.end_s))
    assert len(again.source) == len(program.source)
    assert len(again.collectives) == len(program.collectives)
    profile = from_trace(rebuilding.rebuild_trace(program, found.end_s))
    assert profile.actual_s == pytest.approx(found.time_s, rel=1e-9)
    assert outcome.replay_recorded(again, Network()).time_s == pytest.approx(found.time_s, rel=1e-9)


def test_waiting_is_told_by_its_cause(program_of: Callable[[Path], Program]) -> None:
    """The program of the trace works 4 ms more on rank 0 before each of 20 sends, and so rank 1 waits for it."""
    program = program_of(PROFILES / "paraver" / "faultlab-late4")
    waited = outcome.replay_program(program, Network(1e-6, 1e9)).waits.sum_by_cause()
    assert waited[0] == pytest.approx(0.080, rel=0.01)
    assert waited[1] < 1e-4


def test_the_picture_holds_the_computation(program_of: Callable[[Path], Program]) -> None:
    found = outcome.replay_program(program_of(PROFILES / "otf2" / "scorep-multiphase"), Network(5e-6, 1e9))
    cells = np.array(outcome_report.build_timeline(found).cells)
    width = found.time_s / cells.shape[1]
    np.testing.assert_allclose(cells.sum(axis=1) * width, found.compute_s, rtol=1e-9)
