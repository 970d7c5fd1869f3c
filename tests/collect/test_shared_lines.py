"""Registers at samples of two threads tell whether these store to the same lines of the cache."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.collect.binaries.disassembly import Instruction
from advisor.collect.binaries.inner_loops import find_inner_loops
from advisor.collect.binaries.sampled_addresses import COLUMNS, FEW_SAMPLES, Registers
from advisor.collect.binaries.shared_lines import find_sharing

#: Dice are thrown: the number of spots is computed anew (r8), and counted in a row of a table (rdi).
DICE = (
    Instruction(0x10, 3, "mov", ("r8", "rcx")),
    Instruction(0x13, 4, "shr", ("r8", "0x3d")),
    Instruction(0x17, 4, "add", ("dword ptr [rdi+r8*4]", "1")),
    Instruction(0x1B, 4, "add", ("rsi", "1")),
    Instruction(0x1F, 3, "cmp", ("rsi", "r9")),
    Instruction(0x22, 2, "jne", ("0x10",), 0x10),
)
COUNTED = 0x1B
TABLE = 0x7F0000001000


def throws(rows: tuple[int, int], count: int = 100, spots: int = 6) -> Registers:
    """Return registers of two threads whose rows begin so many bytes from the table."""
    draw = np.random.default_rng(1)
    found = np.zeros((2, count, len(COLUMNS) - 1), dtype=np.uint64)
    found[:, :, COLUMNS["rdi"]] = TABLE + np.array(rows)[:, None]
    found[:, :, COLUMNS["r8"]] = draw.integers(0, spots, (2, count))
    return found


@pytest.mark.parametrize(
    ("pair", "shared"),
    [
        (throws((0, 24)), True),
        (throws((0, 64)), False),
        (throws((0, 0), spots=1 << 20), False),  # of a large table hardly ever the same line at a time
        (throws((0, 24), count=FEW_SAMPLES - 1), None),
        (throws((0, 24), count=FEW_SAMPLES), True),
    ],
)
def test_threads_share_a_line_if_most_of_their_stores_go_there(pair: Registers, *, shared: bool | None) -> None:
    assert find_sharing(DICE, {COUNTED: pair}) is shared


def test_where_the_address_is_computed_registers_hold_something_else() -> None:
    assert find_sharing(DICE, {0x13: throws((0, 24))}) is None, "the index comes later"
    assert find_sharing(DICE, {0x22: throws((0, 24))}) is True, "it is still there"
    assert find_sharing(DICE[3:], {COUNTED: throws((0, 24))}) is None, "nothing is stored"


def test_samples_decide_on_updates_before_the_code_does() -> None:
    (loop,) = find_inner_loops(DICE)
    assert not loop.is_shared, "the code alone says nothing of where the elements lie"
    assert replace(loop, shares_lines=True).is_shared
    one_place = replace(loop, fixed_updates=1)
    assert one_place.is_shared
    assert not replace(one_place, shares_lines=False).is_shared, "each thread has a line of its own"
