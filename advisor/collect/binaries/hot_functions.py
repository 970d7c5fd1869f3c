"""What the code of a function tells: was it optimized, are its loops vectorized and why not, what holds them up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, get_args

from advisor.collect.binaries.carried_values import share_of_carrying_pieces
from advisor.collect.binaries.disassembly import disassemble
from advisor.collect.binaries.inner_loops import ScalarReason, count_arithmetic, find_inner_loops, is_on_stack
from advisor.collect.binaries.library_functions import classify_library_function
from advisor.collect.binaries.registers import free_frame_pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from advisor.collect.binaries.compilers import SourceUnit
    from advisor.collect.binaries.elf_files import ElfImage, Symbol
    from advisor.collect.binaries.inner_loops import InnerLoop

REASONS: Final[tuple[ScalarReason, ...]] = get_args(ScalarReason)
#: Without optimization every variable lives on the stack: most accesses to memory go there, and a quarter or more of
#: all instructions. In most optimized code one of both is far lower (docs/validation.md), but where registers run out …
_STACK_OF_ACCESSES: Final = 0.65
_STACK_OF_INSTRUCTIONS: Final = 0.25
#: … and then this share or more of the pieces between jumps begins with values in registers; without optimization, one
#: in three at most.
_CARRYING: Final = 0.4
#: Of shorter functions nobody can say that.
_FEW_INSTRUCTIONS: Final = 8
#: How often a loop runs is not known; one that is nested deeper is taken to run so many times as often.
_DEEPER: Final = 100.0
#: A loop with this share of accesses of a kind is of that kind: of two arrays one is walked through in that way.
_SOME: Final = 0.25
#: A loop in which one in so many arithmetic instructions divides or takes a root is bound by that unit.
_SLOW_SHARE: Final = 0.05


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """One function: its innermost loops, and how it was compiled as far as that is known (``source``).

    ``on_stack`` are the instructions that access its own frame, ``in_memory`` all that access memory; of the loops
    where it has any. ``carrying`` is the share of the pieces of its code that find values in registers
    (``carried_values``). ``calling_math`` are the beginnings of loops that call functions of the math library.
    """

    symbol: Symbol
    source: SourceUnit | None
    loops: tuple[InnerLoop, ...]
    on_stack: int
    in_memory: int
    instructions: int
    carrying: float
    scalar: int
    packed: int
    called: frozenset[str]
    calling_math: frozenset[int]

    def without_remainders(self, lines: Mapping[int, tuple[str | None, int | None]]) -> FunctionCode:
        """Return the function without the scalar loops that only take over what is left by, or replace, a vector loop.

        They compute the same lines; where no lines are known, they are taken for such.
        """
        vectors = [one for one in self.loops if one.is_vector]
        covered = {lines.get(address) for one in vectors for address in one.arithmetic}
        kept = [
            one
            for one in self.loops
            if not (vectors and one.scalar_reason and {lines.get(place) for place in one.arithmetic} <= covered)
        ]
        return replace(self, loops=tuple(kept))

    @property
    def main_loop(self) -> InnerLoop | None:
        """The loop that probably takes most of the time: the one nested deepest, of several the longest."""
        return max(self.loops, key=lambda one: (one.depth, one.instructions), default=None)

    @property
    def unoptimized(self) -> bool | None:
        """Whether it was compiled without optimization: as recorded, else by where its variables live."""
        recorded = self.source.unoptimized if self.source is not None else None
        if recorded is not None:
            return recorded
        if self.instructions < _FEW_INSTRUCTIONS:  # too few to tell, but for a loop whose counter is in a register
            return False if self.loops and not self.on_stack else None
        of_accesses, of_all = _ratio(self.on_stack, self.in_memory), _ratio(self.on_stack, self.instructions)
        in_memory = of_accesses >= _STACK_OF_ACCESSES and of_all >= _STACK_OF_INSTRUCTIONS
        return in_memory and self.carrying < _CARRYING

    @property
    def checked(self) -> bool:
        """Whether its loops contain tests that assertions, sanitizers or bounds checks add."""
        return any(classify_library_function(name) == "check" for name in self.called)

    def loop_shares(self) -> dict[str, float]:
        """Return the shares of its loops' arithmetic or accesses that are of a kind, by the name of the kind.

        ``scalar``: of the arithmetic; the reasons for it: of the instructions, as loops that compute nothing take
        time, too, but for loops that call mathematical functions, which are ``math``; ``slow``: loops that divide or
        take roots, of the arithmetic; ``strided``, ``far`` and ``indexed``: loops with a quarter of such accesses or
        more, and ``fixed``: those that update one place, of the instructions.
        """
        deepest = max((one.depth for one in self.loops), default=0)  # jumps back over all of a function count, too
        weights = [_DEEPER ** (one.depth - deepest) for one in self.loops]
        loops = list(zip(self.loops, weights, strict=True))
        arithmetic = sum(w * (one.scalar + one.packed) for one, w in loops)
        total = sum(w * one.instructions for one, w in loops)
        reasons = dict.fromkeys(REASONS, 0.0)
        for one, w in loops:
            if one.scalar_reason is not None and one.begin not in self.calling_math:
                reasons[one.scalar_reason] += w * one.instructions
        slow = sum(w * (one.scalar + one.packed) for one, w in loops if _is_slow(one))
        return {
            **{reason: _ratio(count, total) for reason, count in reasons.items()},
            "scalar": _ratio(sum(w * one.scalar for one, w in loops), arithmetic),
            "slow": _ratio(slow, arithmetic),
            "strided": _ratio(sum(w * one.instructions for one, w in loops if _is_mostly(one, one.strided)), total),
            "far": _ratio(sum(w * one.instructions for one, w in loops if _is_mostly(one, one.far)), total),
            "indexed": _ratio(sum(w * one.instructions for one, w in loops if _is_mostly(one, one.indexed)), total),
            "math": _ratio(sum(w * one.instructions for one, w in loops if one.begin in self.calling_math), total),
            "fixed": _ratio(sum(w * one.instructions for one, w in loops if one.fixed_updates), total),
            "branches": _ratio(sum(w * one.instructions for one, w in loops if one.branches), total),
        }


def _is_mostly(loop: InnerLoop, count: int) -> bool:
    return count > 0 and count >= _SOME * loop.accesses


def _is_slow(loop: InnerLoop) -> bool:
    """Return whether a loop is held up by its divisions and roots, and can do with fewer of them.

    Where each iteration waits for the one before, only a divisor that stays the same can go.
    """
    if loop.recurs and not loop.fixed_divisors:
        return False
    return loop.slow > 0 and loop.slow >= _SLOW_SHARE * (loop.scalar + loop.packed)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def analyze_function(image: ElfImage, symbol: Symbol, source: SourceUnit | None) -> FunctionCode:
    """Return what the code of a function tells; raises ``UsageError`` where it can't be disassembled."""
    code = free_frame_pointer(disassemble(image, symbol.begin, symbol.end))
    loops = tuple(loop for loop in find_inner_loops(code) if not _communicates(image, loop))
    inside = [one for one in code if any(loop.begin <= one.address < loop.end for loop in loops)] or list(code)
    scalar, packed, _ = count_arithmetic(code)
    targets = (one.target for one in inside if one.mnemonic == "call")
    return FunctionCode(
        symbol=symbol,
        source=source,
        loops=loops,
        on_stack=sum(map(is_on_stack, inside)),
        in_memory=sum(one.memory is not None for one in inside),
        instructions=len(inside),
        carrying=share_of_carrying_pieces(code),
        scalar=scalar,
        packed=packed,
        calling_math=frozenset(loop.begin for loop in loops if _calls_math(image, loop)),
        called=frozenset(_name_targets(image, (target for target in targets if target is not None))),
    )


def _communicates(image: ElfImage, loop: InnerLoop) -> bool:
    """Return whether a loop calls MPI: what it takes is no computation, however deep it lies."""
    names = _name_targets(image, (target for target in loop.calls if target is not None))
    return any(name.lower().startswith(("mpi_", "pmpi_")) for name in names)


def _calls_math(image: ElfImage, loop: InnerLoop) -> bool:
    names = _name_targets(image, (target for target in loop.calls if target is not None))
    return any(classify_library_function(name) == "math" for name in names)


def _name_targets(image: ElfImage, targets: Iterable[int]) -> Iterable[str]:
    stubs: Mapping[int, str] = image.stubs
    for target in targets:
        if target in stubs:
            yield stubs[target]
        elif (symbol := image.find_function(target)) is not None:
            yield symbol.name
