"""Loops that jump back at several places, and what holds up one that branches and divides."""

from __future__ import annotations

from dataclasses import replace

from advisor.collect.binaries.disassembly import Instruction
from advisor.collect.binaries.inner_loops import find_inner_loops

#: Pair forces as gcc makes them: what seldom happens stands behind the jump back and returns into the middle.
FORCES = (
    Instruction(0x10, 4, "divsd", ("xmm1", "xmm9")),
    Instruction(0x14, 4, "addsd", ("xmm2", "xmm1")),
    Instruction(0x18, 4, "add", ("r14", "1")),
    Instruction(0x1C, 3, "cmp", ("rax", "r14")),
    Instruction(0x1F, 2, "je", ("0x50",), 0x50),
    Instruction(0x21, 5, "movsd", ("xmm9", "qword ptr [rsi+r14*8]")),
    Instruction(0x26, 4, "movapd", ("xmm1", "xmm4")),
    Instruction(0x2A, 4, "comisd", ("xmm3", "xmm9")),
    Instruction(0x2E, 2, "jbe", ("0x10",), 0x10),
    Instruction(0x30, 4, "divsd", ("xmm1", "xmm3")),
    Instruction(0x34, 2, "jmp", ("0x14",), 0x14),
    Instruction(0x50, 1, "ret", ()),
    Instruction(0x51, 5, "call", ("0x900",), 0x900),
    Instruction(0x56, 2, "jmp", ("0x18",), 0x18),
)


def test_a_loop_that_jumps_back_at_two_places_is_one() -> None:
    (loop,) = find_inner_loops(FORCES)
    assert (loop.begin, loop.end) == (0x10, 0x36), "the way through the end of the function is none of it"
    assert (loop.slow, loop.branches) == (2, 2)


def test_branches_hold_up_no_loop_that_waits_for_its_divisions() -> None:
    (loop,) = find_inner_loops(FORCES)
    branching = replace(loop, recurs=False, ordered_sums=0)
    assert branching.scalar_reason == "branch"
    assert replace(branching, divides=True).scalar_reason is None
