"""The loops of a program's machine code and its accesses to memory, which the tracer has to watch.

Natural loops: a jump back to a block through which every way from the function's beginning to the jump leads (Aho, Lam,
Sethi, Ullman, section 9.6).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.disassembly import Instruction, disassemble
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from advisor.collect.binaries.elf_files import ElfImage, Symbol

#: Places that a record of the tracer has room for.
MOST_ACCESSES: Final = (1 << 14) - 1
MOST_MARKS: Final = (1 << 15) - 2
#: The own frame: scalars and what registers had no room for, which never leave the first cache.
_FRAME: Final = re.compile(r"\[(?P<base>r[sb]p)(?:[-+]\w+)?\]")
_SIZES: Final = {
    "byte": 1, "word": 2, "dword": 4, "qword": 8, "tbyte": 10, "xmmword": 16, "ymmword": 32, "zmmword": 64,
}  # fmt: skip
#: Functions that copy or fill memory, and the pieces in which that is counted, bytes.
_COPYING: Final = frozenset({"memcpy", "memmove", "memset", "__memcpy_chk", "__memmove_chk", "__memset_chk"})
_PIECE_B: Final = 8
_ENDS: Final = ("ret", "hlt", "ud2")
#: Functions of the C library's start-up, which are part of every program.
_START: Final = frozenset({"_start", "_init", "_fini", "deregister_tm_clones", "register_tm_clones", "frame_dummy"})


@dataclass(frozen=True, slots=True)
class CodeLoop:
    """A natural loop: the address of its first instruction, its function, the loop around it (its number, or -1)."""

    header: int
    function: int
    parent: int
    depth: int


@dataclass(frozen=True, slots=True)
class CodeAccess:
    """An instruction that accesses memory, ``size`` bytes as it says (0: it does not).

    Its function, and its innermost loop: its number, or -1. A call that copies or fills memory ``returns`` there, 0 for
    others. What the allocator of the C library accesses has neither address nor function.
    """

    address: int
    size: int
    function: int
    loop: int
    returns: int = 0


_ALLOCATOR: Final = CodeAccess(0, _PIECE_B, -1, -1)


@dataclass(frozen=True, slots=True)
class SecondEntry:
    """A jump that begins another iteration of a loop behind its header: the jump's address, where to, the loop."""

    source: int
    target: int
    loop: int


@dataclass(frozen=True, slots=True)
class ProgramCode:
    """What is watched in a program.

    ``marks`` are the addresses of marked places: first the headers of the ``loops`` in their order, then the ``exits``
    of functions (the function of each), then the stubs through which functions of MPI are called (``calls``: names),
    then sources of ``entries`` in their order and their targets, each once.
    """

    functions: tuple[Symbol, ...]
    loops: tuple[CodeLoop, ...]
    accesses: tuple[CodeAccess, ...]
    exits: tuple[int, ...]
    calls: tuple[str, ...]
    entries: tuple[SecondEntry, ...]
    marks: tuple[int, ...]

    def write_places(self) -> str:
        """Return the file of places that the tracer reads."""
        lines = [
            f"c {one.returns:x} {one.size}\n"
            if one.returns
            else f"{'a' if one.address else 'h'} {one.address:x} {one.size}\n"
            for one in self.accesses
        ]
        lines += [f"m {address:x} 0\n" for address in self.marks]
        return "".join(lines)


def read_program_code(image: ElfImage) -> ProgramCode:
    """Return the loops and accesses of a program; raises ``UsageError`` where it can't be disassembled."""
    functions = tuple(
        function for function in image.functions if function.end > function.begin and function.name not in _START
    )
    stubs = frozenset(image.stubs)
    loops: list[CodeLoop] = []
    accesses: list[CodeAccess] = []
    exits: list[tuple[int, int]] = []
    entries: list[SecondEntry] = []
    for number, symbol in enumerate(functions):
        if symbol.begin in stubs:
            continue
        code = disassemble(image, symbol.begin, symbol.end)
        found, innermost, again = find_loops(code)
        first = len(loops)
        entries += [SecondEntry(source, target, first + loop) for source, target, loop in again]
        for header, parent, depth in found:
            loops.append(CodeLoop(header, number, first + parent if parent >= 0 else -1, depth))
        framed = any(one.mnemonic == "mov" and one.operands == ("rbp", "rsp") for one in code[:4])
        for one, loop in zip(code, innermost, strict=True):
            inside = first + loop if loop >= 0 else -1
            if is_watched(one, framed):
                accesses.append(CodeAccess(one.address, _operand_size(one), number, inside))
            elif one.mnemonic == "call" and image.stubs.get(one.target or 0) in _COPYING:
                accesses.append(CodeAccess(one.address, _PIECE_B, number, inside, one.address + one.size))
        exits += [(one.address, number) for one in code if _leaves(one, symbol)]
    calls = sorted((at, name) for at, name in image.stubs.items() if name.lower().startswith("mpi_"))
    accesses.append(_ALLOCATOR)
    if len(accesses) > MOST_ACCESSES or len(loops) + len(exits) + len(calls) > MOST_MARKS:
        # what is executed most is inside of loops
        accesses = [*[access for access in accesses if access.loop >= 0][: MOST_ACCESSES - 1], _ALLOCATOR]
        looping = {one.function for one in loops}
        exits = [one for one in exits if one[1] in looping]
    marks = (
        *(one.header for one in loops), *(at for at, _ in exits), *(at for at, _ in calls),
        *(one.source for one in entries), *sorted({one.target for one in entries}),
    )  # fmt: skip
    if len(marks) > MOST_MARKS:
        raise UsageError(f"{image.path.name} has {len(loops):,} loops; at most {MOST_MARKS:,} places can be watched")
    return ProgramCode(
        functions,
        tuple(loops),
        tuple(accesses),
        tuple(number for _, number in exits),
        tuple(name for _, name in calls),
        tuple(entries),
        marks,
    )


def is_watched(one: Instruction, framed: bool) -> bool:
    """Return whether an instruction accesses memory outside of its own frame; ``framed`` where rbp points to that."""
    memory = one.memory
    if memory is None or one.mnemonic.startswith(("call", "jmp", "push", "pop", "endbr")):
        return False
    frame = _FRAME.search(memory)
    return frame is None or (frame["base"] == "rbp" and not framed)


def _operand_size(one: Instruction) -> int:
    """Return the bytes that an instruction accesses at a time; one that repeats itself accesses as often."""
    kind = (one.memory or "").partition(" ")[0]
    return _SIZES.get(kind, 0)


def _leaves(one: Instruction, symbol: Symbol) -> bool:
    if one.mnemonic.startswith("ret"):
        return True
    return one.mnemonic == "jmp" and one.target is not None and not symbol.begin <= one.target < symbol.end


def find_loops(code: Sequence[Instruction]) -> tuple[list[tuple[int, int, int]], list[int], list[tuple[int, int, int]]]:
    """Return the loops of a function, outer ones first, as (header, number of the loop around it or -1, depth), for
    each instruction the number of its innermost loop, or -1, and second entries as (jump, target, number of the loop).
    """
    if not code:
        return [], [], []
    begins, follows = _find_blocks(code)
    dominators = _find_dominators(follows)
    bodies = _find_bodies(follows, dominators)
    order = sorted(bodies, key=lambda header: (-len(bodies[header]), header))
    number = {header: place for place, header in enumerate(order)}
    loops: list[tuple[int, int, int]] = []
    for place, header in enumerate(order):
        around = [other for other in order[:place] if bodies[header] <= bodies[other]]
        parent = number[min(around, key=lambda other: len(bodies[other]))] if around else -1
        loops.append((begins[header], parent, loops[parent][2] + 1 if parent >= 0 else 1))
    innermost_block = [-1] * len(begins)
    for place, header in enumerate(order):
        for block in bodies[header]:
            innermost_block[block] = place
    leaders = set(begins)
    ends = [one.address for one, after in pairwise(code) if after.address in leaders] + [code[-1].address]
    again = []
    for block, target in _find_second_entries(follows, dominators):
        around = [number[header] for header in bodies if {block, target} <= bodies[header]]
        again.append((ends[block], begins[target], max(around, default=-1)))
    innermost = [innermost_block[bisect_right(begins, one.address) - 1] for one in code]
    return loops, innermost, [one for one in again if one[2] >= 0]


def _find_second_entries(follows: Sequence[Sequence[int]], dominators: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the edges that go back to a block which does not dominate theirs: a cycle that leaves out its header."""
    place = {block: at for at, block in enumerate(_walk_blocks(follows))}
    for block, targets in enumerate(follows):
        for target in targets:
            if block in place and place[target] <= place[block] and not dominators[block] >> target & 1:
                yield block, target


def _find_blocks(code: Sequence[Instruction]) -> tuple[list[int], list[list[int]]]:
    """Return where the blocks begin, and which blocks follow each."""
    inside = {one.address for one in code}
    leaders = {code[0].address}
    for one, after in pairwise(code):
        if one.jumps or one.mnemonic.startswith(_ENDS):
            leaders.add(after.address)
    leaders |= {one.target for one in code if one.jumps and one.target in inside and one.target is not None}
    begins = sorted(leaders)
    number = {address: place for place, address in enumerate(begins)}
    follows: list[list[int]] = [[] for _ in begins]
    for place, one in enumerate(code):
        following = code[place + 1] if place + 1 < len(code) else None
        if following is not None and following.address not in number:
            continue
        block = bisect_right(begins, one.address) - 1
        if one.jumps and one.target in number:
            follows[block].append(number[one.target])
        if following is not None and one.mnemonic != "jmp" and not one.mnemonic.startswith(_ENDS):
            follows[block].append(number[following.address])
    return begins, follows


def _list_before(follows: Sequence[Sequence[int]]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in follows]
    for block, targets in enumerate(follows):
        for target in targets:
            before[target].append(block)
    return before


def _find_bodies(follows: Sequence[Sequence[int]], dominators: Sequence[int]) -> Mapping[int, set[int]]:
    """Return the blocks of each natural loop by its header; loops of one header are one."""
    before = _list_before(follows)
    bodies: dict[int, set[int]] = {}
    for block, targets in enumerate(follows):
        for header in targets:
            if dominators[block] >> header & 1:
                body = bodies.setdefault(header, {header})
                waiting = [block]
                while waiting:
                    one = waiting.pop()
                    if one not in body:
                        body.add(one)
                        waiting += before[one]
    return bodies


def _find_dominators(follows: Sequence[Sequence[int]]) -> list[int]:
    """Return for each block the blocks on every way to it, as bits; none for what can't be reached."""
    before = _list_before(follows)
    order = list(_walk_blocks(follows))
    everything = (1 << len(follows)) - 1
    found = [0] * len(follows)
    for block in order:
        found[block] = everything
    found[0] = 1
    changed = True
    while changed:
        changed = False
        for block in order:
            if block == 0:
                continue
            common = everything
            for one in before[block]:
                if found[one]:
                    common &= found[one]
            common |= 1 << block
            if common != found[block]:
                found[block], changed = common, True
    return found


def _walk_blocks(follows: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the blocks that can be reached, each behind those on most ways to it (reverse postorder)."""
    seen, finished = {0}, []
    stack = [(0, iter(follows[0]))]
    while stack:
        block, rest = stack[-1]
        target = next((one for one in rest if one not in seen), None)
        if target is None:
            finished.append(block)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(follows[target])))
    return reversed(finished)
