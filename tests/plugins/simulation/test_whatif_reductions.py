"""Reductions with work in between, and pipelines told from late senders: what a change rests on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import recorded_rows
from recorded_rows import NETWORK, burst, everywhere
from replay_programs import Do, program

from advisor.trace.events import Kind, Role
from advisor_simulation.replay import outcome
from advisor_simulation.replay.program import Collectives, Op
from advisor_simulation.whatif import placing
from advisor_simulation.whatif.placing import is_well_placed
from advisor_simulation.whatif.traced import (
    background,
    chains,
    collectives,
    messages,
    operations,
    pipelines,
    row_replay,
    rows,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor_simulation.whatif.traced.rows import ReplayRows


recorded = partial(recorded_rows.recorded, name="allreduce")


def reduce_in_pieces(pieces: int, visits: int) -> ReplayRows:
    """Two ranks whose pieces differ in turn, 1 s and 3 s, a reduction after each."""
    ranks = [
        [do for link in range(pieces * visits) for do in (burst(1 if (link + rank) % 2 else 3), Do(Op.JOIN, 0, link))]
        for rank in range(2)
    ]
    return recorded(ranks, meet=[Role.ALL_TO_ALL] * (pieces * visits))


def test_a_rank_that_passes_on_the_data_of_another_waits_for_it() -> None:
    """Rank 2 stays in a reduction until rank 3 came: with as much work for both it leaves 2 s earlier."""
    joint = Collectives(
        np.zeros(1, dtype=np.int64), np.array([Role.ALL_TO_ONE]), np.zeros(1), np.full(1, 8), ("reduce",)
    )
    ranks = [[burst(1), Do(Op.JOIN, 0, 0)], [burst(1), Do(Op.JOIN, 0, 0)], [burst(1), Do(Op.JOIN, 0, 0)]]
    made = program([*ranks, [burst(5), Do(Op.JOIN, 0, 0)]], (), joint, ((0, 1, 2, 3),))
    ends = np.array([1, 5.5, 1, 1.1, 1, 5.2, 5, 5.1])
    found = rows.build_rows(replace(made, end_s=ends, start_s=np.zeros(4)))
    assert row_replay.replay_rows(found).end_s.tolist() == pytest.approx(ends.tolist())
    evened = replace(found, seconds=np.where(found.op_mask(Op.BURST), 2.0, found.seconds))
    assert row_replay.replay_rows(evened).end_s.tolist() == pytest.approx([2, 2.5, 2, 2.1, 2, 2.2, 2, 2.1])


@pytest.mark.parametrize(("leaves", "evened_s"), [(5.5, 3.5), (4.0, 6.0)])
def test_ranks_leave_the_shutdown_with_the_last_one(leaves: float, evened_s: float) -> None:
    """With 3 s of work for both; where the first one left before the other came, it took its own time."""
    ranks = [[burst(1), Do(Op.FIXED, leaves - 1)], [burst(5), Do(Op.FIXED, 0.5)]]
    made = program(ranks)
    made = replace(made, names=("MPI_Finalize",), call=np.array([-1, 0, -1, 0], dtype=np.int32))
    found = rows.build_rows(replace(made, end_s=np.array([1, leaves, 5, 5.5]), start_s=np.zeros(2)))
    assert row_replay.replay_rows(found).time_s == pytest.approx(5.5)
    evened = replace(found, seconds=np.where(found.op_mask(Op.BURST), 3.0, found.seconds))
    assert row_replay.replay_rows(evened).time_s == pytest.approx(evened_s)


def visits_of(these: ReplayRows, pieces: int) -> np.ndarray:
    joins = these.op_mask(Op.JOIN)
    visit = np.full(len(these), -1)
    visit[joins] = these.link[joins] // pieces
    return visit


def test_reductions_of_one_visit_become_one() -> None:
    """Each piece takes as long as the slower rank, 3 s; together both ranks have 8 s in each visit."""
    made = reduce_in_pieces(4, 2)
    fused = collectives.fuse_reductions(made, everywhere(made), visits_of(made, 4))
    assert fused is not None
    assert fused.op_mask(Op.JOIN).sum() == 2 * 2
    join_s = row_replay.replay_rows(made).time_s / 8 - 3
    assert row_replay.replay_rows(fused).time_s == pytest.approx(2 * (8 + join_s))


@pytest.mark.parametrize("pieces", [1, 2, 150])
def test_few_or_endless_reductions_stay(pieces: int) -> None:
    made = reduce_in_pieces(pieces, 1)
    assert collectives.fuse_reductions(made, everywhere(made), visits_of(made, pieces)) is None


def solver(pieces: int, steps: int = 2, exchanges: bool = True) -> ReplayRows:
    """Two ranks that exchange one message in each step, and then compute and reduce so many times."""
    ranks: list[list[Do]] = [[], []]
    pairs = []
    for step in range(steps):
        if exchanges:
            ranks[0].append(Do(Op.SEND, 0, step))
            ranks[1].append(Do(Op.RECV, 0, step))
            pairs.append((0, 1))
        for link in range(step * pieces, (step + 1) * pieces):
            for rank in ranks:
                rank += [burst(2), Do(Op.JOIN, 0, link)]
    if exchanges:
        ranks[0].append(Do(Op.SEND, 0, steps))
        ranks[1].append(Do(Op.RECV, 0, steps))
        pairs.append((0, 1))
    return recorded(ranks, pairs, meet=[Role.ALL_TO_ALL] * (pieces * steps))


@pytest.mark.parametrize("pieces", [3, 5, 100])
def test_of_reductions_in_a_row_between_messages_two_stay(pieces: int) -> None:
    """Inner products of a solver: one reduction for all, and the norm of what they were needed for."""
    made = solver(pieces)
    fused = chains.fuse_chains(made, everywhere(made))
    assert chains.are_in_chains(made).sum() == 2 * 2 * pieces
    assert fused is not None
    assert fused.op_mask(Op.JOIN).sum() == 2 * 2 * 2
    assert row_replay.replay_rows(fused).time_s < row_replay.replay_rows(made).time_s


@pytest.mark.parametrize(("pieces", "exchanges"), [(2, True), (101, True), (5, False)])
def test_few_or_endless_reductions_are_no_chain(pieces: int, exchanges: bool) -> None:
    """Without messages nothing tells one iteration from the next."""
    made = solver(pieces, exchanges=exchanges)
    assert not chains.are_in_chains(made).any()
    assert chains.fuse_chains(made, everywhere(made)) is None


def test_large_reductions_are_no_chain() -> None:
    made = solver(5)
    large = replace(made, value=np.where(made.op_mask(Op.JOIN), chains.SMALL_B + 1.0, made.value))
    assert chains.are_in_chains(replace(large, value=np.minimum(large.value, chains.SMALL_B))).any()
    assert not chains.are_in_chains(large).any()


def test_results_of_a_chain_are_needed_at_once() -> None:
    """Only where reductions are apart can work hide them."""
    rewrite = operations.REWRITES["collectives", "nonblocking"]
    near, apart = solver(5), solver(2)
    assert rewrite(near, everywhere(near)) is None
    assert rewrite(apart, everywhere(apart)) is not None


def test_visits_are_counted_by_what_was_entered() -> None:
    made = reduce_in_pieces(2, 2)
    enter, meet = Kind.ENTER, Kind.COLLECTIVE
    kinds = np.array([enter, meet, meet, enter, meet, meet] * 2, dtype=np.uint8)
    trace: Any = SimpleNamespace(
        regions=(SimpleNamespace(role=Role.USER),), region=np.where(kinds == enter, 0, -1),
        locations=(SimpleNamespace(rank=0), SimpleNamespace(rank=1)), first=np.array([0, 6, 12]), kind=kinds,
    )  # fmt: skip
    found = collectives.number_visits(made, trace)
    assert found[made.op_mask(Op.JOIN)].tolist() == [1, 1, 2, 2] * 2
    trace.regions = (SimpleNamespace(role=Role.ROOT),)
    assert (collectives.number_visits(made, trace) == -1).all(), "no function was recorded: nothing tells visits"
    trace.regions = (SimpleNamespace(role=Role.USER),)
    trace.first = np.array([0, 5, 12])
    assert (collectives.number_visits(made, trace) == -1).all(), "events and meetings that do not fit tell nothing"


@pytest.mark.parametrize(("name", "hidden"), [("allreduce", True), ("alltoall", False), ("gather", False)])
def test_only_reductions_go_on_in_the_background(name: str, hidden: bool) -> None:
    made = recorded(
        [[burst(5), Do(Op.JOIN, 0, 0), burst(5)], [burst(1), Do(Op.JOIN, 0, 0), burst(5)]],
        meet=[Role.ALL_TO_ALL],
        name=name,
    )
    assert (background.hide_collectives(made, everywhere(made)) is not None) == hidden


def test_one_message_behind_the_work_is_late_and_no_pipeline() -> None:
    step = [[burst(8), Do(Op.SEND, 0, 0), Do(Op.JOIN, 0, 0)], [Do(Op.RECV, 0, 0), burst(8), Do(Op.JOIN, 0, 0)]]
    late = recorded(step, [(0, 1)], meet=[Role.ALL_TO_ALL])
    assert pipelines.refine_pipelines(late, everywhere(late)) is None


def test_blocks_of_two_ranks_are_a_pipeline() -> None:
    blocks = recorded(
        [
            [do for link in range(3) for do in (burst(8), Do(Op.SEND, 0, link))],
            [do for link in range(3) for do in (Do(Op.RECV, 0, link), burst(8))],
        ],
        [(0, 1)] * 3,
    )
    assert pipelines.refine_pipelines(blocks, everywhere(blocks)) is not None


@pytest.mark.parametrize(
    ("hosts", "well"),
    [("aabb", True), ("abab", False), ("aaaa", True), ("aaab", False), ((None, "a", "a", "a"), False)],
)
def test_ranks_that_exchange_much_belong_on_one_host(hosts: Sequence[str | None], well: bool) -> None:
    """Ranks 0 and 1 exchange, and 2 and 3; of hosts with different numbers of ranks nothing is known."""
    made: Any = SimpleNamespace(
        ranks=4, source=np.array([0, 1, 2, 3]), target=np.array([1, 0, 3, 2]), sizes=np.full(4, 100.0),
        hosts=tuple(hosts),
    )  # fmt: skip
    assert is_well_placed(made) == well


def test_no_mapping_is_sought_for_very_many_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each sends to each would be a table of ranks x ranks."""
    made: Any = SimpleNamespace(
        ranks=4, source=np.array([0, 1]), target=np.array([1, 0]), sizes=np.full(2, 1.0), hosts=tuple("aabb")
    )
    monkeypatch.setattr(placing, "MOST_RANKS", 4)
    assert is_well_placed(made)
    monkeypatch.setattr(placing, "MOST_RANKS", 3)
    assert not is_well_placed(made)


@pytest.mark.parametrize(("size", "sent"), [(messages.EAGER_B, True), (messages.EAGER_B + 1, False)])
def test_large_messages_are_not_sent_at_once(size: int, sent: bool) -> None:
    """They would be copied twice, which costs more than the wait for the receive."""
    asking = replace(NETWORK, eager_bytes=0.0, bandwidth=1e9)
    made = program([[Do(Op.SEND, size, 0)], [burst(5), Do(Op.RECV, 0, 0)]], [(0, 1)])
    found = outcome.replay_program(made, asking)
    these = rows.build_rows(replace(made, end_s=found.end_s, start_s=np.zeros(2)))
    waiting = replace(these, awaits=np.where(these.op_mask(Op.SEND), 0, these.awaits).astype(np.int32))
    assert (messages.send_at_once(waiting, everywhere(waiting)) is not None) == sent


def test_messages_of_a_rank_to_itself_do_not_travel() -> None:
    made = recorded([[Do(Op.ISEND, 8, 0), Do(Op.RECV, 0, 0), Do(Op.SEND, 8, 1)], [Do(Op.RECV, 0, 1)]], [(0, 0), (0, 1)])
    own = messages.find_own_messages(made)
    assert set(made.link[own].tolist()) == {0}
    assert own.any()


def test_ranks_that_wait_for_their_turn_work_at_the_same_time() -> None:
    """A message of a few bytes is a token; one of more brings data, and stays."""
    turn = [[burst(8), Do(Op.SEND, 4, 0)], [Do(Op.RECV, 0, 0), burst(8)]]
    made = recorded(turn, [(0, 1)])
    together = messages.drop_tokens(made, everywhere(made))
    assert together is not None
    assert row_replay.replay_rows(made).time_s > 16
    assert row_replay.replay_rows(together).time_s == pytest.approx(8)
    turn[0][1] = Do(Op.SEND, messages.TOKEN_B + 1, 0)
    large = recorded(turn, [(0, 1)])
    assert messages.drop_tokens(large, everywhere(large)) is None
