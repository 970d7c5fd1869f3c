"""Innermost loops of machine code (x86-64), and what holds each of them up: the reason why it is scalar, its strides.

A loop runs from the target of a backward jump to that jump. What is told here is read off the code; how often a loop
ran, it does not know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.back_jumps import LONGEST, find_loop_spans, order_spans
from advisor.collect.binaries.derived_steps import derive_steps, estimate_trips
from advisor.collect.binaries.float_arithmetic import count_arithmetic, divides_by_same, is_arithmetic
from advisor.collect.binaries.float_chains import count_ordered_sums, has_recurrence
from advisor.collect.binaries.integer_loops import find_packed_integers, find_scalar_integers, has_integer_recurrence
from advisor.collect.binaries.load_chains import find_load_chain
from advisor.collect.binaries.loop_accesses import count_accesses, find_accesses, find_unit_strides, transposes_operand
from advisor.collect.binaries.loop_nests import LoopNest
from advisor.collect.binaries.loop_records import InnerLoop
from advisor.collect.binaries.memory_accesses import is_on_stack, step_of
from advisor.collect.binaries.registers import find_steps, find_writes
from advisor.collect.binaries.sampled_addresses import read_constants, read_steps
from advisor.collect.binaries.search_loops import is_bisection, is_search, is_selection
from advisor.collect.binaries.spin_loops import is_spin
from advisor.collect.binaries.streaming import measure_memory_share, waits_for_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from advisor.collect.binaries.disassembly import Instruction
    from advisor.collect.binaries.loop_accesses import Terms
    from advisor.collect.binaries.memory_accesses import Access
    from advisor.collect.binaries.sampled_addresses import Registers

#: A loop with this share of its samples in the loops that it holds, or less, spends its time around them …
_INSIDE: Final = 1 / 3
#: … if it has so many samples or more, and no more instructions than one can look over.
_FEWEST_SAMPLES: Final = 20
_LONGEST_AROUND: Final = 500
#: Of fewer elements none is found faster than by looking at all.
_MANY_TRIPS: Final = 64


def find_inner_loops(
    code: Sequence[Instruction],
    sampled: Mapping[int, int] | None = None,
    registers: Mapping[int, Registers] | None = None,
    progress: Mapping[int, Registers] | None = None,
) -> tuple[InnerLoop, ...]:
    """Return the innermost loops of a function, in the order of their addresses.

    Where samples by address show that a loop spends its time around the short ones in it, it counts instead of them.
    ``registers`` are what these held at some of the samples, ``progress`` at two one after the other.
    """
    spans = find_loop_spans(code)
    ordered = order_spans(spans)
    inner: list[tuple[int, int]] = []
    absorbed: set[tuple[int, int]] = set()
    for begin, end in ordered:
        within = [other for other in inner if begin <= other[0] and other[1] <= end]
        touched = [other for other in inner if begin < other[1] and other[0] < end]
        if sampled and within and touched == within and _spends_around(code, (begin, end), within, sampled):
            inner = [other for other in inner if not (begin <= other[0] and other[1] <= end)]
            absorbed.add((begin, end))
            within = []
        if not within:
            inner.append((begin, end))
    ends = [one.address for one in code if one.mnemonic == "ret"]
    found = []
    for begin, end in _join_overlapping([span for span in inner if not any(span[0] <= at < span[1] for at in ends)]):
        body = [one for one in code if begin <= one.address < end]
        if body:
            depth = len({begin, *(other[0] for other in spans if other[0] <= begin and end <= other[1])})
            loop = _describe_loop(body, depth, _find_nest(code, spans, (begin, end)), registers or {}, progress or {})
            found.append(replace(loop, around=(begin, end) in absorbed))
    return tuple(found)


def _join_overlapping(spans: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of loops in order, those that overlap as one: a loop may jump back at two places."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def _spends_around(
    code: Sequence[Instruction], span: tuple[int, int], within: Collection[tuple[int, int]], sampled: Mapping[int, int]
) -> bool:
    """Return whether a loop has most of its samples around the loops in it."""
    body = [one.address for one in code if span[0] <= one.address < span[1]]
    if len(body) > _LONGEST_AROUND:
        return False
    seen = sum(sampled.get(address, 0) for address in body)
    inside = sum(sampled.get(address, 0) for address in body if any(a <= address < b for a, b in within))
    return seen >= _FEWEST_SAMPLES and inside <= _INSIDE * seen


def _find_nest(
    code: Sequence[Instruction], spans: Collection[tuple[int, int]], inner: tuple[int, int]
) -> LoopNest | None:
    """Return an inner loop with the next one around it, None for a loop in no other."""
    begin, end = inner
    around = [one for one in spans if one[0] <= begin and end <= one[1] and one[0] < begin]
    if not around:
        return None
    first, last = min(around, key=lambda span: span[1] - span[0])
    if last - first > LONGEST:
        return None
    return LoopNest(
        [one for one in code if first <= one.address < begin],
        [one for one in code if begin <= one.address < end],
        [one for one in code if end <= one.address < last],
    )


def _group_accesses(
    accesses: Mapping[int, Access], steps_at: Callable[[int], Mapping[str, int | str]], writes: Mapping[str, int]
) -> dict[tuple[Terms, int | str | None], list[Access]]:
    """Return the accesses of a loop, by their numbers, by the registers of the address and its step."""
    groups: dict[tuple[Terms, int | str | None], list[Access]] = {}
    for at, access in accesses.items():
        groups.setdefault((access.terms, step_of(access.terms, steps_at(at), writes)), []).append(access)
    return groups


def _find_integers(
    body: Sequence[Instruction], steps: Mapping[str, int | str], writes: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the addresses of arithmetic on integers, one by one and as vectors."""
    return find_scalar_integers(body, find_unit_strides(body, steps, writes)), find_packed_integers(body)


def _describe_loop(
    body: Sequence[Instruction],
    depth: int,
    nest: LoopNest | None,
    registers: Mapping[int, Registers],
    progress: Mapping[int, Registers],
) -> InnerLoop:
    writes = find_writes(body)
    constants = read_constants(body, writes, registers)
    coded = find_steps(body, writes)
    steps = read_steps(coded, body, constants)
    scalar, packed, slow = count_arithmetic(body)
    accesses = find_accesses(body, steps)
    groups = _group_accesses(accesses, lambda at: derive_steps(body, at, steps, writes, constants), writes)
    rows = {each.terms for at, each in accesses.items() if nest is not None and nest.strides_across_rows(at, each)}
    counts = count_accesses(groups, rows, (coded, writes))
    floating = tuple(one.address for one in body if is_arithmetic(one))
    integers, packed_integers = ((), ()) if floating else _find_integers(body, steps, writes)
    recurs = counts.reads_back or has_recurrence(body) or (bool(scalar or integers) and has_integer_recurrence(body))
    calls = tuple(one.target for one in body if one.mnemonic == "call")
    sums = count_ordered_sums(body)
    walks = {} if recurs or counts.indexed or calls else {at: by for at, by in groups if isinstance(by, int) and by}
    trips = estimate_trips(body, steps, writes, registers)
    return InnerLoop(
        begin=body[0].address,
        end=body[-1].address + body[-1].size,
        depth=depth,
        instructions=len(body),
        scalar=scalar,
        packed=packed,
        slow=slow,
        on_stack=sum(map(is_on_stack, body)),
        accesses=len(accesses),
        strided=counts.strided,
        far=counts.far,
        indexed=counts.indexed,
        fixed_updates=counts.fixed,
        locked=sum(one.mnemonic.startswith("lock ") for one in body),
        branches=sum(one.jumps and one.mnemonic != "jmp" for one in body[:-1]),
        ordered_sums=sums,
        recurs=recurs,
        calls=calls,
        arithmetic=floating or packed_integers or integers,
        integers=len(integers),
        packed_integers=len(packed_integers),
        fixed_divisors=sum(divides_by_same(one, steps, writes) for one in body),
        interleaved=counts.interleaved,
        leaps=counts.leaps,
        unshaped=counts.unshaped,
        trips=trips,
        load_chain=(chain := find_load_chain(body)),
        searches=(chain is None and is_search(body, steps)) or is_bisection(body),
        selects=trips is not None and trips >= _MANY_TRIPS and is_selection(body, steps),
        spins=is_spin(body, coded),
        streams=waits_for_memory(body, walks, (sums, slow), registers, progress),
        memory_share=measure_memory_share(body, walks, registers, progress),
        transposes=bool(counts.strided)
        and nest is not None
        and transposes_operand(nest, [terms for terms, _ in groups], rows, (steps, writes)),
    )
