"""Changes are tried on the run as it would have been without the other programs that held its cores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from recorded_rows import NETWORK, recorded, time_of
from replay_programs import Do, program

from advisor.analysis.disturbance import LONGEST_DELAY, QUEUE_DELAY
from advisor.model.records import OTHER_PROGRAMS, Processor, Profile, Region
from advisor.trace.regions import NO_CORE_NAME
from advisor_simulation.replay import outcome
from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.traced import others, rows

if TYPE_CHECKING:
    from advisor_simulation.whatif.traced.rows import ReplayRows


def disturbed_profile(actual_s: float, queued_s: float) -> Profile:
    """A run of two ranks, each of which was ready to run and had no core for so long."""
    counts = {name: np.zeros((1, 2)) for name in (LONGEST_DELAY, QUEUE_DELAY)}
    counts[LONGEST_DELAY][0, 0] = queued_s
    counts[QUEUE_DELAY][0] = queued_s
    return Profile(
        program="program", run="1", reader="recording", actual_s=actual_s, processors=(Processor(0), Processor(1)),
        regions=(Region("program"),), phases=(), outside={OTHER_PROGRAMS: np.full(2, queued_s)}, counts=counts,
        status={},
    )  # fmt: skip


def named(made: ReplayRows, region: list[int]) -> ReplayRows:
    """Return rows of which those of region 0 wait for a core."""
    regions = np.array(region, dtype=np.int32)
    names = (NO_CORE_NAME, *made.program.names)
    return replace(made, program=replace(made.program, names=names, region=regions), region=regions)


def test_computation_without_a_core_takes_no_time() -> None:
    ranks = [[Do(Op.BURST, 3.0), Do(Op.BURST, 5.0), Do(Op.SEND, 0, 0)], [Do(Op.BURST, 1.0), Do(Op.RECV, 0, 0)]]
    made = named(recorded(ranks, [(0, 1)]), [-1, 0, -1, -1, -1])
    kept = others.drop_delay(made, disturbed_profile(time_of(made), 1.0))
    assert time_of(kept) == pytest.approx(time_of(made) - 5.0)
    assert others.drop_delay(made, replace(disturbed_profile(9.0, 1.0), outside={})) is None, "nobody else was there"


@pytest.mark.parametrize(("queued_s", "is_cut"), [(40.0, True), (10.0, False)])
def test_where_others_had_the_cores_most_of_the_time_messages_take_what_their_quickest_take(
    queued_s: float, is_cut: bool
) -> None:
    ranks = [[Do(Op.SEND, 1.0, n) for n in range(20)], [Do(Op.RECV, 0, n) for n in range(20)]]
    made_program = program(ranks, [(0, 1)] * 20)
    end_s = outcome.replay_program(made_program, NETWORK).end_s.copy()
    end_s[30:] += 10.0  # a receive in the middle lasts longer, as its rank had no core
    made: Any = rows.build_rows(replace(made_program, end_s=end_s, start_s=np.zeros(2)))
    kept = others.drop_delay(made, disturbed_profile(50.0, queued_s))
    assert (time_of(kept) < time_of(made) - 5.0) == is_cut


def test_what_a_call_takes_is_quick_as_a_whole() -> None:
    """Each exchange takes 1 s, of which now sending and now receiving takes all: none takes nothing."""
    ranks = [
        [part for n in range(20) for part in (Do(Op.SEND, 0, n + a), Do(Op.RECV, 0, n + b), Do(Op.BURST, 1e-9))]
        for a, b in ((0, 20), (20, 0))
    ]
    made = recorded(ranks, [(0, 1)] * 20 + [(1, 0)] * 20)
    passing = np.flatnonzero(~made.op_mask(Op.BURST) & (made.link >= 0))
    seconds, wait_s = np.zeros(len(made)), np.zeros(len(made))
    seconds[passing[::4]] = 1.0
    wait_s[passing[3::4]] = 1.0
    kept = others.drop_delay(replace(made, seconds=seconds, wait_s=wait_s), disturbed_profile(50.0, 40.0))
    assert kept is not None
    assert kept.seconds.sum() + kept.wait_s.sum() == seconds.sum() + wait_s.sum()
