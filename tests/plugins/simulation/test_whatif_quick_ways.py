"""The quick ways in which changes are looked for among many ranks find what slow, obvious ones find."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from replay_programs import programs

from advisor_simulation.replay import conversion, engine, rebuilding
from advisor_simulation.replay.engine import DeadlockError
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import RECEIVED, SENDING, Op, Program
from advisor_simulation.whatif import call_grouping
from advisor_simulation.whatif.traced import background, pipelines, row_replay, stretches
from advisor_simulation.whatif.traced.rows import build_rows

if TYPE_CHECKING:
    from advisor_simulation.whatif.traced.rows import ReplayRows

NETWORK = Network(1e-6, 1e9)


def recorded_rows(drawn: Program) -> ReplayRows:
    """Return the rows of a program as if it had been recorded."""
    assume((np.diff(drawn.first) > 0).all())
    try:
        plan = engine.prepare_program(drawn, NETWORK)
    except DeadlockError:
        reject()
    ends = engine.operation_ends(plan, engine.replay_steps(plan, NETWORK), drawn)
    return build_rows(conversion.convert_trace(rebuilding.rebuild_trace(drawn, ends)))


@given(drawn=programs())
@settings(max_examples=40, deadline=None)
def test_computations_to_speak_of_are_found_rank_by_rank(drawn: Program) -> None:
    rows = recorded_rows(drawn)
    expected = np.zeros(len(rows), dtype=bool)
    for line in set(rows.line.tolist()):
        mine = np.flatnonzero((rows.op == Op.BURST) & (rows.line == line))
        order = mine[np.argsort(rows.seconds[mine], kind="stable")]
        held = np.cumsum(rows.seconds[order])
        usual = (rows.seconds[order] ** 2).sum() / held[-1] if len(held) and held[-1] > 0 else 0.0
        for at, so_far in zip(order.tolist(), held.tolist(), strict=True):
            long = so_far > stretches.NOTHING * held[-1] or rows.seconds[at] > stretches.SHORT * usual
            expected[at] = long
    assert np.array_equal(stretches.computing_mask(rows), expected)


@given(drawn=programs())
@settings(max_examples=40, deadline=None)
def test_messages_of_pipelines_are_those_between_ranks_that_do_not_exchange(drawn: Program) -> None:
    rows = recorded_rows(drawn)
    parts = stretches.find_stretches(rows)
    joins = np.cumsum(rows.op == Op.JOIN)
    sends, receives = ({int(rows.link[at]): at for at in range(len(rows)) if rows.op[at] in ops}
                       for ops in (SENDING, RECEIVED))  # fmt: skip
    whole = sorted(sends.keys() & receives.keys())
    place = {message: (int(parts.number[sends[message]]), int(parts.number[receives[message]])) for message in whole}
    ends = {message: (int(rows.program.source[message]), int(rows.program.target[message])) for message in whole}
    expected = []
    for message in whole:
        (here, there), (source, target) = place[message], ends[message]
        if here == 0 or parts.line[here - 1] != parts.line[here]:
            continue
        if there + 1 == len(parts.line) or parts.line[there + 1] != parts.line[there]:
            continue
        meets = joins[sends[message]] != joins[parts.first[here] - 1]
        meets |= joins[receives[message]] != joins[parts.first[there + 1] - 1]
        back = [other for other in whole if ends[other] == (target, source)]
        answered = any(place[other][1] == here for other in back)
        answers = any(place[other][0] == there and sends[other] >= receives[message] for other in back)
        if not (meets or answered or answers):
            expected.append(message)
    meeting = {message: sum(rows.op[at] == Op.JOIN and rows.line[at] == ends[message][0]
                            for at in range(sends[message])) for message in expected}  # fmt: skip
    chains = set()
    for one, other in permutations(expected, 2):
        if meeting[one] == meeting[other] and (ends[one] == ends[other] or ends[one][1] == ends[other][0]):
            chains.add(meeting[one])
    found = pipelines._find_pipeline_messages(rows, parts, np.ones(len(rows), dtype=bool))
    assert found.tolist() == [message for message in expected if meeting[message] in chains]


@given(drawn=programs())
@settings(max_examples=40, deadline=None)
def test_steps_are_laid_out_alike_by_the_loop_and_by_arrays(drawn: Program) -> None:
    rows = recorded_rows(drawn)
    hidden = background.hide_messages(rows, np.ones(len(rows), dtype=bool))  # with marks, on lines in the background
    for each in (rows, hidden if hidden is not None else rows):
        first, last, columns = row_replay._lay_out_steps(each)
        room = len(each) * row_replay.STEPS
        made = np.empty(len(first), dtype=np.int64), np.empty(len(each), dtype=np.int64)
        filled = np.empty(room, dtype=np.uint8), np.empty(room), np.empty(room, dtype=np.int32)
        count = row_replay.lay_out_steps(*row_replay.loop_columns(each), *made, filled)
        assert np.array_equal(made[0], first)
        assert np.array_equal(made[1], last)
        for one, other in zip(filled, columns, strict=True):
            assert np.array_equal(one[:count], other)
            assert one.dtype == other.dtype


@given(drawn=programs(), at=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_changed_rows_share_what_did_not_change_and_tell_anew_what_did(drawn: Program, at: int) -> None:
    rows = recorded_rows(drawn)
    asked = rows.op_mask(Op.BURST), stretches.computing_mask(rows), stretches.count_since(rows, (Op.JOIN,))
    assert rows.op_mask(Op.BURST) is asked[0]
    assert not any(each.flags.writeable for each in asked)
    factor = np.ones(len(rows))
    factor[at % len(rows)] = 0.0
    scaled, fewer = rows.scale_seconds(factor), rows.select_rows(factor > 0)
    for name in ("line", "key", "op", "link", "awaits", "wait_s"):
        assert getattr(scaled, name) is getattr(rows, name)
    assert np.array_equal(scaled.seconds, np.where(factor > 0, rows.seconds, 0.0))
    for each in (scaled, fewer):
        assert np.array_equal(each.op_mask(Op.BURST), each.op == Op.BURST)
        assert np.array_equal(stretches.count_since(each, (Op.JOIN,)), np.cumsum(each.op == Op.JOIN))


@given(drawn=programs(), keys=st.lists(st.integers(-2, 8), min_size=1, max_size=12))
@settings(max_examples=20, deadline=None)
def test_rows_are_added_where_their_keys_say(drawn: Program, keys: list[int]) -> None:
    rows = recorded_rows(drawn)
    more = rows.select_rows(np.arange(len(keys)) % len(rows))
    more = replace(more, key=np.array(keys, dtype=np.float64) + 0.5, seconds=-1.0 - np.arange(len(keys)))
    both = rows.add_rows(more)
    place = list(zip(both.line.tolist(), both.key.tolist(), strict=True))
    assert place == sorted(place)
    assert np.array_equal(both.seconds[both.seconds >= 0], rows.seconds)
    assert sorted(both.seconds[both.seconds < 0].tolist()) == sorted(more.seconds.tolist())


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1e3)), min_size=1, max_size=60))
def test_medians_are_those_of_each_group(pairs: list[tuple[int, float]]) -> None:
    group, values = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    expected = [np.median(values[group == one]) for one in np.unique(group)]
    assert stretches.group_medians(values, group).tolist() == expected


ROWS = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(-1, 2), st.integers(0, 2), st.integers(-1, 4), st.integers(1, 9)),
    max_size=40,
)


@given(ROWS, st.integers(0, 2))
def test_partners_are_counted_for_all_processors_at_once(rows: list[tuple[int, ...]], phase: int) -> None:
    processor, phases, kind, partner, _ = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    causes: Any = SimpleNamespace(
        kinds=("message", "barrier", "collective"), processor=processor, phase=phases, kind=kind, partner=partner
    )
    expected = [max(len({row[3] for row in rows if row[:3] == (one, phase, 0) and row[3] >= 0}), 1) for one in range(4)]
    assert call_grouping._count_partners(causes, phase, "transfer", 4).tolist() == expected
    assert call_grouping._count_partners(causes, phase, "io", 4).tolist() == [1] * 4


def test_messages_that_go_round_are_told_from_chains() -> None:
    """A chain as long as a run is taken away from its ends at once, not message by message."""
    long = np.arange(200_000)
    assert not pipelines._are_in_rings(long, long + 1).any()
    sent, received = np.array([0, 1, 2, 2, 7, 8]), np.array([1, 2, 0, 7, 8, 9])
    assert pipelines._are_in_rings(sent, received).tolist() == [True, True, True, False, False, False]
