"""Changes of recorded messages and meetings, replayed: programs by hand, and what real traces make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from recorded_rows import burst, everywhere, recorded, time_of
from replay_programs import Do

import advisor_simulation
from advisor.advice import rules
from advisor.extension import host
from advisor.trace.events import Role
from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.changes import CHANGES
from advisor_simulation.whatif.gains import try_change, try_jointly
from advisor_simulation.whatif.measured_run import MeasuredRun, PhaseRun, build_run
from advisor_simulation.whatif.reasons import OF_RUNS
from advisor_simulation.whatif.run_report import describe_conflicts, select_compatible
from advisor_simulation.whatif.traced import background, collectives, loads, messages, pipelines, row_replay, rows
from advisor_simulation.whatif.traced.operations import REWRITES
from advisor_simulation.whatif.trial import Trial, build_trial

if TYPE_CHECKING:
    from advisor_simulation.whatif.traced.rows import ReplayRows

PROFILES = Path(__file__).parents[2] / "profiles"


def test_without_the_barrier_between_them_ranks_still_wait_for_roots_and_roots_for_ranks() -> None:
    """The other one has 2 s more of the first part, the root 4 s more of the second: dropping wins 1 s a round."""
    meet = [Role.ALL_TO_ONE, Role.BARRIER, Role.ONE_TO_ALL] * 2
    joins = [Do(Op.JOIN, 0, number) for number in range(6)]
    root, other = [], []
    for gather, barrier, scatter in (joins[:3], joins[3:]):
        root += [burst(10), gather, burst(5), barrier, scatter]
        other += [burst(12), gather, burst(1), barrier, scatter]
    made = recorded([root, other], meet=meet)
    assert time_of(made) == 2 * (12 + 1 + 5 + 1 + 1)
    assert time_of(collectives.drop_barriers(made, everywhere(made))) == 2 * (12 + 1 + 5 + 1)


def test_unchanged_rows_take_as_long_as_recorded() -> None:
    made = recorded(
        [[burst(5), Do(Op.SEND, 2, 0), burst(1)], [burst(1), Do(Op.RECV, 0, 0), burst(4)]], [(0, 1)]
    )  # send at 5, there at 5 + 1 + 2 = 8
    assert time_of(made) == pytest.approx(12)
    assert row_replay.replay_rows(made).end_s == pytest.approx(made.program.end_s)


def test_messages_of_one_stretch_become_one() -> None:
    """Three messages of 1 s startup each, one after the other: two startups go on each side."""
    send = [Do(Op.SEND, 0, link) for link in range(3)]
    receive = [Do(Op.RECV, 0, link) for link in range(3)]
    made = recorded([[burst(10), *send, burst(10)], [burst(10), *receive, burst(10)]], [(0, 1)] * 3)
    fewer = messages.group_messages(made, everywhere(made))
    assert time_of(made) == pytest.approx(23)
    assert time_of(fewer) == pytest.approx(21)


def test_messages_of_one_collective_among_neighbours_are_not_grouped() -> None:
    send = [Do(Op.SEND, 0, link) for link in range(3)]
    receive = [Do(Op.RECV, 0, link) for link in range(3)]
    made = recorded([[burst(10), *send], [burst(10), *receive]], [(0, 1)] * 3)
    calls = np.where(rows.message_mask(made), 0, -1)
    for name, grouped in (("MPI_Neighbor_alltoall", False), ("MPI_Ineighbor_alltoallv", False), ("MPI_Send", True)):
        these = replace(made, program=replace(made.program, names=(name,)), call=calls)
        assert (messages.group_messages(these, everywhere(these)) is not None) == grouped


def handed_out(turns: int, rounds: int = 1) -> ReplayRows:
    """A hub answers two others in ``turns``; each works 2 s for an answer, and for none of the last of a round."""
    hub = [do for turn in range(turns) for do in (Do(Op.SEND, 0, 2 * turn), Do(Op.RECV, 0, 2 * turn + 1))]
    asking: list[list[Do]] = [[], []]
    for turn in range(turns):
        work = () if rounds > 1 and (turn // 2 + 1) % (turns // 2 // rounds) == 0 else (burst(2),)
        asking[turn % 2] += [Do(Op.RECV, 0, 2 * turn), *work, Do(Op.SEND, 0, 2 * turn + 1)]
    return recorded([hub, *asking], [pair for k in range(turns) for pair in ((0, 1 + k % 2), (1 + k % 2, 0))])


def test_a_hub_that_gives_more_work_each_time_is_asked_less_often() -> None:
    """Of 320 messages to each of two others and back a sixteenth and the last one are left, and all of the work."""
    made = handed_out(640)
    less = messages.hand_out_more(made, everywhere(made))
    assert less is not None
    assert len(np.unique(less.link[rows.message_mask(less)])) == 4 * (320 // 16 + 1)
    assert less.seconds[less.op_mask(Op.BURST)].sum() == made.seconds[made.op_mask(Op.BURST)].sum() == 2 * 640
    assert 640 <= time_of(less) < 720 < time_of(made)


@pytest.mark.parametrize(("turns", "rounds", "left"), [(648, 4, 84), (640, 8, None), (80, 1, 21), (78, 1, None)])
def test_a_hub_goes_on_to_hand_out_enough_pieces_for_a_balance(turns: int, rounds: int, left: int | None) -> None:
    """Of 80 pieces in a round four become one, of 40 two, of 39 one: each is needed. The end of each round stays."""
    made = handed_out(turns, rounds)
    less = messages.hand_out_more(made, everywhere(made))
    assert (less and len(np.unique(less.link[rows.message_mask(less)])) // 4) == left


def test_messages_of_a_wavefront_are_not_grouped() -> None:
    """Rank 1 computes between what it receives; so do the senders: there is nothing to group."""
    first = [do for link in range(3) for do in (burst(5), Do(Op.SEND, 0, link))]
    second = [do for link in range(3) for do in (Do(Op.RECV, 0, link), burst(5))]
    made = recorded([first, second], [(0, 1)] * 3)
    assert messages.group_messages(made, everywhere(made)) is None


def test_sending_before_the_work_ends_the_wait_for_a_late_sender() -> None:
    ranks = [
        [burst(1), Do(Op.JOIN, 0, 0), burst(10), Do(Op.SEND, 0, 0)],
        [burst(1), Do(Op.JOIN, 0, 0), Do(Op.RECV, 0, 0), burst(10)],
    ]
    made = recorded(ranks, [(0, 1)], [Role.BARRIER])
    gained = time_of(made) - time_of(messages.send_early(made, everywhere(made)))
    assert gained == pytest.approx(10)


def test_what_is_computed_from_a_message_is_not_sent_before_it_came() -> None:
    ranks = [
        [burst(3), Do(Op.SEND, 0, 0)],
        [Do(Op.RECV, 0, 0), burst(10), Do(Op.SEND, 0, 1)],
        [Do(Op.RECV, 0, 1), burst(3)],
    ]
    made = recorded(ranks, [(0, 1), (1, 2)])
    moved = messages.send_early(made, everywhere(made))
    # only the first rank may send earlier, by its 3 s
    assert time_of(made) - time_of(moved) == pytest.approx(3)


def test_a_pipeline_in_finer_pieces_fills_sooner() -> None:
    """Three ranks, 8 s each in turn: in quarters the last one begins after two quarters and ends with its own 8 s."""
    ranks = [
        [burst(8), Do(Op.SEND, 0, 0)],
        [Do(Op.RECV, 0, 0), burst(8), Do(Op.SEND, 0, 1)],
        [Do(Op.RECV, 0, 1), burst(8)],
    ]
    made = recorded(ranks, [(0, 1), (1, 2)])
    send = (time_of(made) - 24) / 2
    pieces = pipelines.refine_pipelines(made, everywhere(made))
    # each piece costs the ranks before the last one a send, and a receive that waits for it
    assert 2 + 2 + 8 < time_of(pieces) <= 2 + 2 + 8 + 12 * send


def test_only_what_is_passed_on_is_cut_in_a_pipeline() -> None:
    """The second rank goes on with something else behind the last block: pieces of that do not hold up the first."""
    blocks = [each for link in range(4) for each in (burst(8), Do(Op.SEND, 0, link))]
    behind = [each for link in range(4) for each in (Do(Op.RECV, 0, link), burst(8))]
    made = recorded([[*blocks, burst(20)], [*behind, burst(20)]], [(0, 1)] * 4)
    last = np.flatnonzero(made.op_mask(Op.BURST) & (made.value == 20))
    region = np.zeros(len(made), dtype=made.region.dtype)
    region[last] = 1
    named = replace(made, region=region)
    cut = pipelines.refine_pipelines(named, everywhere(named))
    assert cut is not None
    assert (cut.value[cut.op_mask(Op.BURST)] == 20).sum() == 2
    assert (cut.value[cut.op_mask(Op.BURST)] == 2).sum() == 4 * pipelines.PIECES * 2


def test_a_send_that_ends_as_its_receive_is_posted_waited_for_nothing() -> None:
    """The first message is gone long before it is received; so the second, as large, had no need to wait either."""
    ranks = [
        [Do(Op.SEND, 2, 0), burst(10), Do(Op.SEND, 2, 1)],
        [burst(8), Do(Op.RECV, 0, 0), burst(2.5), Do(Op.RECV, 0, 1)],
    ]
    made = recorded(ranks, [(0, 1)] * 2)
    sends = np.flatnonzero(made.op_mask(Op.SEND))
    assert (made.awaits[sends] == -1).all()
    assert time_of(made) == pytest.approx(float(made.program.end_s.max()) if made.program.end_s is not None else 0.0)


def test_an_exchange_is_no_pipeline() -> None:
    one = [burst(8), Do(Op.SEND, 0, 0), Do(Op.RECV, 0, 1), burst(8)]
    other = [burst(8), Do(Op.RECV, 0, 0), Do(Op.SEND, 0, 1), burst(8)]
    made = recorded([one, other], [(0, 1), (1, 0)])
    assert pipelines.refine_pipelines(made, everywhere(made)) is None


def test_blocks_that_go_round_a_ring_are_no_pipeline() -> None:
    """Each rank sends its block on and receives the next one in one stretch, after all have computed at once."""
    rounds, ranks = 3, 3
    pairs = [(rank, (rank + 1) % ranks) for _ in range(rounds) for rank in range(ranks)]
    shift = [
        [
            each
            for turn in range(rounds)
            for each in (
                burst(8), Do(Op.ISEND, 0, turn * ranks + rank), Do(Op.RECV, 0, turn * ranks + (rank - 1) % ranks)
            )
        ]
        + [burst(8)]
        for rank in range(ranks)
    ]  # fmt: skip
    made = recorded(shift, pairs)
    assert pipelines.refine_pipelines(made, everywhere(made)) is None
    assert not pipelines.are_in_pipelines(made, everywhere(made)).any()


def test_a_pipeline_may_turn_back() -> None:
    """Two blocks go from the first rank to the second, then two back: the last one of the way out belongs to it."""
    first = [burst(8), Do(Op.SEND, 0, 0), burst(8), Do(Op.SEND, 0, 1), Do(Op.RECV, 0, 2), burst(8), Do(Op.RECV, 0, 3)]
    second = [Do(Op.RECV, 0, 0), burst(8), Do(Op.RECV, 0, 1), burst(8), burst(8), Do(Op.SEND, 0, 2), burst(8)]
    made = recorded([[*first, burst(8)], [*second, Do(Op.SEND, 0, 3)]], [(0, 1), (0, 1), (1, 0), (1, 0)])
    mine = pipelines.are_in_pipelines(made, everywhere(made))
    assert set(made.link[mine].tolist()) == {0, 1, 2, 3}


def test_receives_posted_early_spare_the_sender_the_wait() -> None:
    """A send of a large message goes on 1 s after the receiver is ready, which it is at 6 s, or from the beginning."""
    ranks = [[Do(Op.SEND, 8, 0), burst(20)], [burst(6), Do(Op.RECV, 0, 0), burst(1)]]
    made = recorded(ranks, [(0, 1)], eager=0.0)
    assert time_of(made) == pytest.approx(6 + 1 + 20)
    assert time_of(messages.post_early(made, everywhere(made))) == pytest.approx(1 + 20)


def test_messages_travel_behind_the_computation_that_follows() -> None:
    """A message of 5 s hides behind 8 of 10 s of computation, one of 12 s sticks out by 4 s on the side that waits."""
    for size, hidden in ((4.0, 5.0), (11.0, 8.0)):
        ranks = [[burst(1), Do(Op.RECV, 0, 0), burst(10)], [burst(1), Do(Op.SEND, size, 0), burst(1)]]
        made = recorded(ranks, [(1, 0)])
        assert time_of(made) == pytest.approx(1 + size + 1 + 10)
        assert time_of(made) - time_of(background.hide_messages(made, everywhere(made))) == pytest.approx(hidden)


def test_a_fuzzy_barrier_lets_a_processor_compute_before_it_waits() -> None:
    """Alternately slow ranks: 5 s of every wait for the other are spent on the 8 of 10 s that need nothing."""
    late, soon = burst(15), burst(10)
    ranks = [[late, Do(Op.JOIN, 0, 0), soon, Do(Op.JOIN, 0, 1)], [soon, Do(Op.JOIN, 0, 0), late, Do(Op.JOIN, 0, 1)]]
    made = recorded(ranks, [], [Role.BARRIER] * 2)
    over = row_replay.replay_rows(made).time_s - 30
    fuzzy = background.hide_barriers(made, everywhere(made))
    assert time_of(made) - time_of(fuzzy) == pytest.approx(5 + over / 2)


def test_barriers_go_and_messages_keep_the_order() -> None:
    ranks = [
        [burst(9), Do(Op.SEND, 0, 0), Do(Op.JOIN, 0, 0), burst(1)],
        [burst(1), Do(Op.RECV, 0, 0), Do(Op.JOIN, 0, 0), burst(9)],
        [burst(1), Do(Op.JOIN, 0, 0), burst(18)],
    ]
    made = recorded(ranks, [(0, 1)], [Role.BARRIER])
    assert time_of(collectives.drop_barriers(made, everywhere(made))) == pytest.approx(9 + 1 + 9)


def test_of_several_meetings_in_a_row_one_is_left() -> None:
    def rank(work: float) -> list[Do]:
        return [burst(work), *(Do(Op.JOIN, 0, link) for link in range(3)), burst(10), Do(Op.JOIN, 0, 3)]

    made = recorded([rank(5), rank(6)], [], [Role.ALL_TO_ALL] * 3 + [Role.BARRIER])
    one = collectives.merge_collectives(made, everywhere(made))
    assert one is not None
    assert len(made) - len(one) == 4
    assert collectives.merge_barriers(made, everywhere(made)) is None


def test_a_receiver_that_gets_faster_still_waits_for_the_message() -> None:
    made = recorded([[burst(10), Do(Op.SEND, 0, 0)], [burst(20), Do(Op.RECV, 0, 0)]], [(0, 1)])
    seconds = np.where((made.line == 1) & made.op_mask(Op.BURST), 1.0, made.seconds)
    assert time_of(replace(made, seconds=seconds)) >= 10


def test_faster_processors_and_networks() -> None:
    made = recorded([[burst(10), Do(Op.SEND, 4, 0)], [Do(Op.RECV, 0, 0), burst(2)]], [(0, 1)])
    assert time_of(made) == pytest.approx(10 + 5 + 2)
    assert time_of(loads.scale_speed(made, 2.0, 1.0)) == pytest.approx(5 + 5 + 1)
    assert time_of(loads.scale_speed(made, 1.0, 5.0)) == pytest.approx(10 + 1 + 2)


def test_a_synchronous_send_waits_whatever_the_limit_of_the_library() -> None:
    made = recorded([[burst(1), Do(Op.SEND, 20, 0)], [burst(50), Do(Op.RECV, 0, 0)]], [(0, 1)], eager=0)
    assert messages.send_at_once(made, everywhere(made)) is not None
    names = (*made.program.names, "MPI_Ssend")
    call = np.where(made.op_mask(Op.SEND), len(names) - 1, made.call).astype(np.int32)
    synchronous = replace(made, program=replace(made.program, names=names), call=call)
    assert messages.send_at_once(synchronous, everywhere(synchronous)) is None


def test_output_becomes_shorter_and_not_what_is_computed_beside_it() -> None:
    """A phase that computes 10 s and writes for 4 s: hidden, the 4 s are gone, and the 10 s stay."""
    made = recorded([[burst(10), burst(4)]])
    names = (*made.program.names, "write")
    region = np.array([-1, len(names) - 1], dtype=np.int32)
    made = replace(made, program=replace(made.program, names=names, region=region), region=region)
    nothing = np.zeros((1, 1))
    phase = PhaseRun(
        0, False, np.full((1, 1), 10.0), nothing, np.full((1, 1), 4.0), nothing, nothing, np.zeros(1), np.zeros(1)
    )
    team: Any = SimpleNamespace(is_hybrid=False)
    profile: Any = SimpleNamespace(actual_s=14.0, processors=[0])
    before = MeasuredRun(profile, team, (phase,), 0.0, 0.0)
    after = before.with_phases([replace(phase, io=nothing)])
    place = np.zeros(2, dtype=np.int64)
    assert time_of(loads.carry_loads(made, (place, place), before, after)) == pytest.approx(10.0)


def trial_of(case: str) -> Trial:
    plugins = host.load_plugins()
    found = plugins.find_profiles(PROFILES / case)[0]
    run = build_run(plugins.read_profile(found))
    assert run is not None
    return build_trial(run, plugins.read_trace(found))


@pytest.fixture(scope="module")
def late() -> Trial:
    return trial_of("faults/late-send-15")


def test_a_trace_with_all_its_messages_is_replayed(late: Trial) -> None:
    assert late.is_replayed
    assert late.total_seconds() == pytest.approx(late.run.profile.actual_s, rel=1e-6)
    found = try_change(late, {"send": "early"})
    assert found is not None
    assert 0.064 < found.expected_s < 0.074  # really won: 72.6 ms
    assert found.gap_changes()["W"] == pytest.approx(-found.expected_s, rel=0.05)


def test_a_trace_that_lacks_ends_of_messages_is_tried_by_phases() -> None:
    assert not trial_of("faults/late-15").is_replayed


def test_a_wavefront_gains_nothing_by_grouping_its_messages() -> None:
    trial = trial_of("otf2/eztrace-lu")
    grouped, by_phases = (
        try_change(trial, {"messages": "grouped"}),
        try_change(Trial(trial.run), {"messages": "grouped"}),
    )
    assert grouped is not None
    assert by_phases is not None
    assert abs(grouped.expected_s) < 0.001
    assert abs(grouped.expected_s) < by_phases.expected_s


def test_changes_of_messages_and_loads_are_joined_and_what_can_not_be_is_named(late: Trial) -> None:
    changes = [
        ({"send": "early"}, set[int]()),
        ({"rebalance": "ranks"}, set[int]()),
        ({"threads": "everywhere"}, set[int]()),
    ]
    found = try_jointly(late, changes)
    alone = try_change(late, {"send": "early"})
    assert alone is not None
    assert found.gain.changed.is_replayed
    assert found.gain.expected_s >= alone.expected_s - 1e-3
    assert found.left_out == (2,)


def test_every_change_of_the_rules_is_simulated_or_has_a_reason() -> None:
    of_replay = tuple(advisor_simulation.advisor_rules())
    book = rules.load_default(of_replay, advisor_simulation.advisor_facts(), examples=False)
    words = {word for action in book.actions for word in action.change.items()}
    simulated = CHANGES.keys() | REWRITES.keys()
    assert words == simulated | OF_RUNS.keys()
    assert not simulated & OF_RUNS.keys()


def test_what_is_won_by_other_loops_is_tried_on_no_messages() -> None:
    of_code = [
        action
        for action in rules.load_default((), examples=False).actions
        if action.gain is not None and action.gain.of.startswith("code.") and action.gain.of != "code.pickled_share"
    ]  # packing what workers get is no loop
    assert len(of_code) > 10
    assert not {word for action in of_code for word in action.change.items()} & (CHANGES.keys() | REWRITES.keys())


def test_conflicts_of_actions_are_named_whatever_they_win() -> None:
    known = {action.id: action for action in rules.load_default((), examples=False).actions}
    told = [part.text for part in describe_conflicts([known["A-31"], known["A-16"], known["G-13"]])]
    assert len(told) == 1
    assert told[0].startswith("A-31 and G-13 are in conflict")
    assert [one.id for one in select_compatible([known["A-31"], known["A-16"], known["G-13"]])] == ["A-31", "A-16"]
