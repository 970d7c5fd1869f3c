"""Models with bodies: their loops interchanged and cut into blocks, and what other changes make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from aml_models import model

from advisor_simulation.model.world import build_world
from advisor_simulation.program.cache_check import CacheGeometry
from advisor_simulation.program.messages import render_messages
from advisor_simulation.program.model_check import simulate_plain
from advisor_simulation.whatif.modelled.loop_order import block_loops, interchange_loops
from advisor_simulation.whatif.modelled.setting import ModelSetting
from advisor_simulation.whatif.modelled.synchronization import drop_unneeded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from advisor_simulation.model.records import Model

HEAD = """\
aml: 1
name: loops
unit: cycle
parameters: {n: 600}
domains: {columns: {size: n, decomposition: {kind: static}}}
arrays: {A: {shape: [n, n], at: 4096 B}, B: {shape: [n, n], at: 8192000 B}}
control:
"""
COLUMNS = """\
  - parallel: sum
    over: columns
    weight: "10"
    body:
      - {for: j, times: n, body: [{read: "A[j, i]"}]}
"""
TRANSPOSITION = """\
  - parallel: transpose
    over: columns
    body:
      - {for: j, times: n, body: [{read: "A[j, i]"}, {write: "B[i, j]"}]}
"""
SMOOTHING = """\
  - {parallel: first, over: columns, body: [{for: j, times: n - 1, body: [{read: "A[i, j]"}, {write: "B[i, j]"}]}]}
  - {parallel: second, over: columns, body: [{for: j, times: n - 1, body: [{read: "B[j, i]"}, {write: "A[i, j]"}]}]}
"""


def count_misses(found: Model, folder: Path, processors: int = 1) -> int:
    log = simulate_plain(found, folder, processors, CacheGeometry())[1]
    assert log.transactions is not None
    return int(log.transactions.sum())


def change_model(
    text: str, folder: Path, change: Callable[[Model, ModelSetting], Model | None], processors: int
) -> tuple[Model, Model | None]:
    found = model(HEAD + text, folder)
    nothing = np.zeros((processors, processors), dtype=np.int64)
    return found, change(found, ModelSetting(folder, processors, 64, processors, lambda _: nothing))


@pytest.mark.parametrize("processors", [1, 3])
def test_loops_are_interchanged_for_small_steps(processors: int, tmp_path: Path) -> None:
    before, after = change_model(COLUMNS, tmp_path, interchange_loops, processors)
    assert after is not None
    lines = 600 * 600 // 8
    assert count_misses(before, tmp_path, processors) == 600 * 600, "each line is gone when its next item is due"
    assert count_misses(after, tmp_path, processors) == pytest.approx(lines, rel=0.02)
    works = [simulate_plain(one, tmp_path, processors)[1].spans[0].entries[0].work for one in (before, after)]
    assert works[1] == pytest.approx(works[0])


def test_both_orders_make_the_same_references(tmp_path: Path) -> None:
    before, after = change_model(COLUMNS, tmp_path, interchange_loops, 4)
    assert after is not None
    logs = [simulate_plain(one, tmp_path, 4)[1] for one in (before, after)]
    assert logs[0].references == logs[1].references == 600 * 600
    sets = [log.flows["sum"].working_set for log in logs]
    np.testing.assert_array_equal(*sets)


def test_blocks_serve_both_arrays_of_a_transposition(tmp_path: Path) -> None:
    before, after = change_model(TRANSPOSITION, tmp_path, block_loops, 1)
    assert after is not None
    assert count_misses(after, tmp_path) < 0.5 * count_misses(before, tmp_path)
    assert simulate_plain(after, tmp_path, 1)[1].references == 2 * 600 * 600


def test_a_good_order_is_left_alone(tmp_path: Path) -> None:
    rows = COLUMNS.replace("A[j, i]", "A[i, j]")
    assert change_model(rows, tmp_path, interchange_loops, 2)[1] is None
    assert change_model(rows, tmp_path, block_loops, 2)[1] is None


def test_lists_and_triangles_are_left_alone(tmp_path: Path) -> None:
    triangle = COLUMNS.replace("times: n", "times: i")
    assert change_model(triangle, tmp_path, interchange_loops, 2)[1] is None


def test_a_barrier_stays_where_bodies_hand_something_on(tmp_path: Path) -> None:
    assert change_model(SMOOTHING, tmp_path, drop_unneeded, 2)[1] is None
    own = SMOOTHING.replace("B[j, i]", "B[i, j]")
    assert change_model(own, tmp_path, drop_unneeded, 2)[1] is not None


def test_messages_become_steps_that_send_the_same(tmp_path: Path) -> None:
    from collections import Counter

    sent = Counter({("send", rank, (rank + 1) % 4, 80): 3 for rank in range(4)})
    sent.update({("send", 1, 3, 8): 2})
    sent.update({("allreduce", rank, -1, 16): 1 for rank in range(4)})
    steps = "".join(f"  {line}\n" for line in render_messages(sent, 4))
    found = model(HEAD.replace("control", "processors: 4\ncontrol") + steps, tmp_path)
    log = simulate_plain(found, tmp_path, 4)[1]
    single = sum(one.count for one in log.messages if not one.collective)
    np.testing.assert_array_equal(single, [3, 5, 3, 3])
    np.testing.assert_array_equal(sum(one.size_B for one in log.messages if not one.collective), [240, 256, 240, 240])
    np.testing.assert_array_equal(sum(one.count for one in log.messages if one.collective), [1, 1, 1, 1])


@pytest.mark.parametrize(("size", "parts"), [(10, 4), (8, 4), (3, 4)])
def test_static_parts_are_those_of_openmp(size: int, parts: int, tmp_path: Path) -> None:
    text = HEAD.replace("n: 600", f"n: {size}") + COLUMNS
    owner = build_world(model(text, tmp_path), tmp_path, parts).owner["columns"]
    expected = np.repeat(np.arange(parts), [size // parts + (k < size % parts) for k in range(parts)])
    np.testing.assert_array_equal(owner, expected)
