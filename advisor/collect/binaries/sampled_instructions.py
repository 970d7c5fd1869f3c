"""Where in a function samples found it, and for which loads and branches it waited there (x86-64).

A timer finds a thread behind the instruction that it waited for: that one has just been completed. Of an addition to
something in memory, a comparison with it, or a move from it, that is the load, where its address can't be foreseen. An
address that advances by the same step each time is fetched before it is needed, and what the first cache holds comes in
time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, get_args

from advisor.collect.binaries.back_jumps import find_loop_spans, order_spans
from advisor.collect.binaries.float_arithmetic import is_slow
from advisor.collect.binaries.integer_divisions import DIVIDES
from advisor.collect.binaries.load_chains import address_registers, find_load_chain
from advisor.collect.binaries.mispredicted_branches import find_mispredicted
from advisor.collect.binaries.registers import find_steps, find_writes, whole_register
from advisor.collect.binaries.sampled_addresses import estimate_reach_B, find_addresses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from advisor.collect.binaries.disassembly import Instruction
    from advisor.collect.binaries.sampled_addresses import Registers

#: ``pointer``: at an address that was itself loaded; ``chain``: at one made of a number that the iteration before has
#: loaded, as in a table of links or states; ``scatter``: at another one that is computed anew each time; ``guess``: no
#: load, but the right way behind a branch that was guessed wrong; ``quotient``: a division of integers; ``divider``: a
#: division of floating-point numbers, or a root; ``atomic``: an update that no other core may interrupt.
WaitKind = Literal["pointer", "chain", "scatter", "guess", "quotient", "divider", "atomic"]
WAIT_KINDS: Final[tuple[WaitKind, ...]] = get_args(WaitKind)

_UNKNOWN: Final[Mapping[int, Registers]] = MappingProxyType({})
#: First caches hold 32 to 64 KiB.
_FIRST_CACHE_B: Final = 48 << 10
#: Fewer samples of a function do not say where in it they were taken.
FEW: Final = 20
#: An instruction that holds up its loop has this many times as many samples as the average one of it, or more.
_STANDS_OUT: Final = 2.0
_STACK: Final = frozenset({"rsp", "rbp", "rip"})
_MOVES: Final = re.compile(r"mov(?:zx|sx|sxd|abs)?|cmov\w+")
#: Kinds that take long wherever their operands are.
_ALWAYS_LONG: Final = frozenset({"quotient", "divider", "atomic"})
_ADDS: Final = re.compile(r"(?:add|sub)")
#: What makes an address of numbers in registers, and how many such steps are followed from an access.
_COMPUTES: Final = re.compile(r"mov(?:zx|sx|sxd)?|lea|add|sub|imul|shl|sal|neg|cdqe")
_FOLLOWED: Final = 5
#: An update by compare and exchange has no more instructions than this.
_EXCHANGE: Final = 12
_PARAMETERS: Final = frozenset({"rdi", "rsi", "rdx", "rcx", "r8", "r9"})
#: Scalar additions of floating-point numbers wait for the sum before as well as for what they load.
_SUMS: Final = re.compile(r"v?(?:add|sub|fn?m(?:add|sub)(?:132|213|231)?)s[sd]")


@dataclass(frozen=True, slots=True)
class FunctionSamples:
    """The samples of a function: ``places`` are addresses in order, ``counts`` the samples there.

    ``waits`` are the kinds of what some of them wait for, by address.
    """

    places: tuple[int, ...]
    counts: tuple[int, ...]
    waits: Mapping[int, WaitKind]

    @property
    def total(self) -> int:
        """All samples of the function."""
        return sum(self.counts)

    def count_between(self, begin: int, end: int) -> int:
        """Return the samples from one address to another."""
        first, last = bisect_right(self.places, begin - 1), bisect_right(self.places, end - 1)
        return sum(self.counts[first:last])

    def count_waits(self, kind: WaitKind, except_in: Sequence[tuple[int, int]]) -> int:
        """Return the samples that wait for something of a kind, but for those in some pieces of the code."""
        return sum(
            count
            for place, count in zip(self.places, self.counts, strict=True)
            if self.waits.get(place) == kind and not any(begin <= place < end for begin, end in except_in)
        )


def read_samples(
    code: Sequence[Instruction], sampled: Mapping[int, int], registers: Mapping[int, Registers] = _UNKNOWN
) -> FunctionSamples | None:
    """Return the samples of a function, None where there are too few.

    ``sampled`` are those of the whole program by address, ``registers`` what these held at some of them.
    """
    found = {one.address: count for one in code if (count := sampled.get(one.address, 0))}
    if sum(found.values()) < FEW:
        return None
    spans = order_spans(find_loop_spans(code))
    waited = _find_waited_for(code, spans, found)
    near = _find_near(code, waited, registers)
    late = {address for address, (before, _) in waited.items() if before not in near}
    guessed = find_mispredicted(code, spans, found, late)
    waits: dict[int, WaitKind] = dict.fromkeys(guessed, "guess")
    for address, (before, kind) in waited.items():
        here = before in near and kind not in _ALWAYS_LONG
        if address not in guessed and (not here or _is_chained(code, spans, before)):
            waits[address] = kind
    waits |= dict.fromkeys(_find_exchanges(code) & found.keys(), "atomic")
    places = tuple(sorted(found))
    return FunctionSamples(places, tuple(found[place] for place in places), waits)


def _find_exchanges(code: Sequence[Instruction]) -> set[int]:
    """Return the addresses of all that an update by compare and exchange does: it loads, computes, and tries to store.

    Where other cores do the same, the load waits for the line of the cache as long as the exchange does.
    """
    found: set[int] = set()
    for at, one in enumerate(code):
        if one.mnemonic.startswith("lock cmpxchg"):
            before = range(at - 1, max(at - _EXCHANGE, -1), -1)
            load = next((b for b in before if code[b].memory == one.memory is not None), at)
            found.update(each.address for each in code[load + 1 : at + 2])
    return found


def _find_waited_for(
    code: Sequence[Instruction], spans: Sequence[tuple[int, int]], found: Mapping[int, int]
) -> dict[int, tuple[int, WaitKind]]:
    """Return by the address of samples that stand out the number of what they wait for, and its kind."""
    number = {one.address: at for at, one in enumerate(code)}
    sources = _find_sources(code)
    waited: dict[int, tuple[int, WaitKind]] = {}
    for address, count in found.items():
        body = next(iter(_enclosing(code, spans, address)), code)
        seen = sum(found.get(one.address, 0) for one in body)
        if count * len(body) < _STANDS_OUT * seen:
            continue
        for before in _find_waited(code, number[address], sources):
            kind = _classify_wait(code, spans, before)
            if kind is not None:
                waited.setdefault(address, (before, kind))
    for address, (before, kind) in tuple(waited.items()):
        behind = code[number[address] + 1 : number[address] + 2]
        if kind in _ALWAYS_LONG and behind and behind[0].address in waited:  # found one instruction later
            waited[behind[0].address] = (before, kind)
    return waited


def _is_chained(code: Sequence[Instruction], spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Return whether an iteration of the loop around a load needs what the one before has loaded."""
    body = next(iter(_enclosing(code, spans, code[at].address)), ())
    return find_load_chain(body) is not None


def _find_near(
    code: Sequence[Instruction], waited: Mapping[int, tuple[int, WaitKind]], registers: Mapping[int, Registers]
) -> set[int]:
    """Return the loads, by their numbers, of which the first cache holds all that they go through."""
    addresses: dict[int, list[Registers]] = {}
    for address, (load, _) in waited.items():
        drawn = find_addresses(code[load], registers[address]) if address in registers else None
        if drawn is not None:
            addresses.setdefault(load, []).append(drawn)
    reaches = {load: estimate_reach_B(drawn) for load, drawn in addresses.items()}
    return {load for load, reach in reaches.items() if reach is not None and reach <= _FIRST_CACHE_B}


def _enclosing(
    code: Sequence[Instruction], spans: Sequence[tuple[int, int]], address: int
) -> Iterator[Sequence[Instruction]]:
    """Return the bodies of the loops around an address, the innermost first."""
    for begin, end in spans:
        if begin <= address < end:
            yield [one for one in code if begin <= one.address < end]


def _find_sources(code: Sequence[Instruction]) -> Mapping[int, list[int]]:
    """Return by address the numbers of the jumps to it."""
    sources: dict[int, list[int]] = {}
    for at, one in enumerate(code):
        if one.jumps and one.target is not None:
            sources.setdefault(one.target, []).append(at)
    return sources


def _find_waited(code: Sequence[Instruction], at: int, sources: Mapping[int, list[int]]) -> list[int]:
    """Return the instructions that may have been completed just before one; a branch counts as its comparison."""
    before = [*sources.get(code[at].address, ())]
    if at and code[at - 1].mnemonic not in ("jmp", "ret"):
        before.append(at - 1)
    found = []
    for place in before:
        if code[place].jumps and place:
            place -= 1
        found.append(place)
    return found


def _classify_wait(code: Sequence[Instruction], spans: Sequence[tuple[int, int]], at: int) -> WaitKind | None:
    """Return what an instruction waits for: a load by how its address comes about, or what takes long by itself.

    None where it loads nothing, or what can be foreseen.
    """
    one = code[at]
    memory = one.memory
    if one.mnemonic in DIVIDES:
        return "quotient"
    if is_slow(one):
        return "divider"
    if memory is not None and (one.mnemonic.startswith("lock ") or one.mnemonic == "xchg"):
        return "atomic"
    if memory is None or one.mnemonic == "call":
        return None
    if any(_is_remainder(code[:at], register) for register in address_registers(memory)):
        return "quotient"
    if _SUMS.fullmatch(one.mnemonic) and not _is_begun_anew(code, spans, at):
        return None
    if memory == one.operands[0] and one.mnemonic.removeprefix("v").startswith("mov"):
        return None  # a store
    registers = address_registers(memory)
    if not registers or set(registers) & _STACK:
        return None
    for body in _enclosing(code, spans, one.address):
        writes = find_writes(body)
        changed = [register for register in registers if register in writes]
        if not changed:
            continue
        steps = find_steps(body, writes)
        if all(register in steps for register in changed):
            return None
        anew = next(register for register in changed if register not in steps)
        first, place = code.index(body[0]), body.index(one)
        before = (*reversed(body[:place]), *reversed(body[place:]), *reversed(code[:first]))
        if anew == registers[0] and _is_loaded(before, anew):
            return "pointer"
        return "chain" if find_load_chain(body) == "table" else "scatter"
    return "pointer" if len(registers) == 1 and _is_loaded(tuple(reversed(code[:at])), registers[0]) else None


def _is_begun_anew(code: Sequence[Instruction], spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Return whether an addition adds to a number that was moved there for it, and to no sum of other iterations."""
    one = code[at]
    body = next(iter(_enclosing(code, spans, one.address)), None)
    if body is None:
        return True
    term = one.operands[-2] if len(one.operands) > 2 else one.operands[0]
    before = body[: body.index(one)]
    written = next((each for each in reversed(before) if each.operands and each.operands[0] == term), None)
    return written is not None and written.mnemonic.removeprefix("v").startswith("mov")


def _is_remainder(before: Sequence[Instruction], register: str, followed: int = _FOLLOWED) -> bool:
    """Return whether a register holds what a division of integers left, as where an index goes round a ring.

    Or what was computed of that, as where a row and a column go round.
    """
    place = next((at for at in range(len(before) - 1, -1, -1) if register in find_writes((before[at],))), None)
    if place is None:
        return False
    last = before[place]
    if last.mnemonic in DIVIDES:
        return True
    if not followed or not _COMPUTES.fullmatch(last.mnemonic) or (last.memory is not None and last.mnemonic != "lea"):
        return False
    keeps = last.mnemonic in ("add", "sub", "imul", "shl", "sal", "neg", "cdqe")
    sources = {register} if keeps else set()
    for operand in last.operands[1:]:
        sources.update(address_registers(operand) if "[" in operand else (whole_register(operand),))
    return any(_is_remainder(before[:place], each, followed - 1) for each in sources)


def _is_loaded(before: Iterable[Instruction], register: str) -> bool:
    """Return whether a register holds what was loaded from memory or passed to the function.

    ``before`` are the instructions that come before its use, the last one first.
    """
    for one in before:
        if register not in find_writes((one,)):
            continue
        if one.mnemonic == "call":
            return register == "rax"
        if _MOVES.fullmatch(one.mnemonic) and whole_register(one.operands[0]) == register:
            if "[" in one.operands[1]:
                return True
            register = whole_register(one.operands[1])
        elif not (_ADDS.fullmatch(one.mnemonic) and one.operands[1][:1].isdigit()):
            return False
    return register in _PARAMETERS
