"""Jumps back that close a loop, and those that only go back into one."""

from __future__ import annotations

import pytest

from advisor.collect.binaries.back_jumps import find_loop_spans
from advisor.collect.binaries.disassembly import Instruction


def at(address: int, mnemonic: str, target: int | None = None) -> Instruction:
    return Instruction(address, 2, mnemonic, () if target is None else (str(target),), target)


def test_code_behind_a_function_that_jumps_back_into_a_loop_closes_none() -> None:
    """A loop from 0 to 8, whose seldom case stands behind the return."""
    code = (
        at(0, "cmp"), at(2, "je", 12), at(4, "add"), at(6, "jne", 0), at(8, "add"), at(10, "ret"),
        at(12, "sub"), at(14, "jmp", 4),
    )  # fmt: skip
    assert find_loop_spans(code) == {(0, 8)}


@pytest.mark.parametrize(
    ("code", "spans"),
    [
        (
            (at(0, "jmp", 4), at(2, "add"), at(4, "cmp"), at(6, "jne", 2), at(8, "ret")),
            {(2, 8)},
        ),  # entered in its midst
        ((at(0, "cmp"), at(2, "je", 6), at(4, "ret"), at(6, "add"), at(8, "jmp", 0)), {(0, 10)}),
        ((at(0, "cmp"), at(2, "jmp"), at(4, "add"), at(6, "jmp", 0)), {(0, 8)}),  # a switch may go to all cases
        ((at(0, "add"), at(2, "jmp", 2)), {(2, 4)}),
        ((at(0, "add"), at(2, "jne", -8), at(4, "jne", 64)), set()),
    ],
)
def test_a_loop_comes_by_all_that_lies_between_its_ends(code: tuple[Instruction, ...], spans: set[object]) -> None:
    assert find_loop_spans(code) == spans
