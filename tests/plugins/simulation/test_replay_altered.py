"""Programs that are changed before they are replayed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import program_changes
import pytest
from replay_programs import Do, halo, program

from advisor.formats.otf2 import advisor_trace
from advisor.model.errors import UsageError
from advisor_simulation.replay import conversion, outcome
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Op, Program

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

TRACE = Path(__file__).parents[2] / "profiles" / "otf2" / "scorep-multiphase"
NETWORK = Network(1e-5, 1e9)


@pytest.fixture(scope="module")
def recorded() -> Program:
    return conversion.convert_trace(advisor_trace(TRACE))


@pytest.mark.parametrize("network", [None, NETWORK])
def test_nothing_changed_is_the_same_run(recorded: Program, network: Network | None) -> None:
    plain = program_changes.replay_time_s(recorded, network)
    expected = (
        outcome.replay_recorded(recorded, Network()) if network is None else outcome.replay_program(recorded, network)
    )
    assert plain == expected.time_s
    ones = np.ones((recorded.ranks, len(recorded.names) + 1))
    assert program_changes.replay_time_s(program_changes.scale_computation(recorded, ones), network) == plain
    assert (
        program_changes.replay_time_s(program_changes.scale_computation(recorded, np.ones(len(recorded.op))), network)
        == plain
    )
    assert (
        program_changes.replay_time_s(
            program_changes.drop_operations(recorded, np.zeros(len(recorded.op), dtype=bool)), network
        )
        == plain
    )


@pytest.mark.parametrize("network", [None, NETWORK])
def test_a_region_of_a_rank_takes_another_time(recorded: Program, network: Network | None) -> None:
    factors = np.ones((recorded.ranks, len(recorded.names) + 1))
    factors[0, recorded.names.index("phase1")] = 0.5
    changed = program_changes.scale_computation(recorded, factors)
    inside = (recorded.op == Op.BURST) & (recorded.region == recorded.names.index("phase1")) & (recorded.rank == 0)
    assert changed.value[inside] == pytest.approx(0.5 * recorded.value[inside])
    assert (changed.value[~inside] == recorded.value[~inside]).all()
    by_point = Network(region_ratios={"phase1": 0.5})
    both = program_changes.scale_computation(recorded, np.repeat(factors[:1], recorded.ranks, axis=0))
    if network is None:
        assert program_changes.replay_time_s(both) == pytest.approx(
            outcome.replay_recorded(recorded, by_point).time_s, rel=1e-12
        )
    assert program_changes.replay_time_s(changed, network) < program_changes.replay_time_s(recorded, network)


def test_barriers_that_are_gone_wait_for_nobody(recorded: Program) -> None:
    """The two phases of the program are uneven in opposite ways: barriers between them cost 6 ms an iteration."""
    barriers = (recorded.op == Op.JOIN) & (recorded.call == recorded.names.index("MPI_Barrier"))
    fewer = program_changes.drop_operations(recorded, barriers)
    assert not ((fewer.op == Op.JOIN) & (fewer.call == recorded.names.index("MPI_Barrier"))).any()
    saved = program_changes.replay_time_s(recorded) - program_changes.replay_time_s(fewer)
    assert saved == pytest.approx(outcome.replay_recorded(recorded, Network()).waits.sum_by_cause()[2] / 2, rel=0.2)


def test_a_message_goes_with_both_ends() -> None:
    ping = program([[Do(Op.SEND, 1e6, 0), Do(Op.BURST, 1e-3)], [Do(Op.RECV, link=0)]], [(0, 1)])
    gone = program_changes.drop_operations(ping, np.array([True, False, False]))
    assert gone.op.tolist() == [Op.FIXED, Op.BURST, Op.FIXED]
    assert program_changes.replay_time_s(gone, NETWORK) == pytest.approx(1e-3)


@pytest.mark.parametrize("factors", [np.ones(3), np.full((4, 1), -1.0), np.full((4, 1), np.nan)])
def test_factors_that_do_not_fit_are_refused(factors: FloatArray) -> None:
    with pytest.raises(UsageError, match="factors on computation"):
        program_changes.scale_computation(halo(4, 1), factors)
