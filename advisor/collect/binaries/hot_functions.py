"""What the code of a function tells: was it optimized, are its loops vectorized and why not, what holds them up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, get_args

from advisor.collect.binaries.disassembly import disassemble
from advisor.collect.binaries.filter_loops import is_filter, leaves_to_work
from advisor.collect.binaries.float_arithmetic import count_arithmetic, is_extended
from advisor.collect.binaries.inner_loops import find_inner_loops
from advisor.collect.binaries.integer_divisions import count_divisions
from advisor.collect.binaries.live_in_registers import share_of_live_in_pieces
from advisor.collect.binaries.loop_records import ScalarReason
from advisor.collect.binaries.memory_accesses import is_on_stack
from advisor.collect.binaries.pure_recursion import computes_again
from advisor.collect.binaries.registers import free_frame_pointer
from advisor.collect.binaries.run_time_checks import calls_kind, tests_much
from advisor.collect.binaries.sampled_instructions import WAIT_KINDS, read_samples
from advisor.collect.binaries.shared_lines import find_sharing
from advisor.trace.library_functions import classify_library_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from advisor.collect.binaries.compilers import SourceUnit
    from advisor.collect.binaries.disassembly import Instruction
    from advisor.collect.binaries.elf_files import ElfImage, Symbol
    from advisor.collect.binaries.loop_records import InnerLoop
    from advisor.collect.binaries.sampled_addresses import Registers
    from advisor.collect.binaries.sampled_instructions import FunctionSamples, WaitKind

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
#: A function with this share of floating-point arithmetic among its instructions spends its time on it.
_COMPUTING: Final = 0.15
#: A walk along pointers with more instructions than this does other work while it waits for the next one.
_SHORT: Final = 20
#: A loop with this share of its samples behind branches that were guessed wrong, or divisions of integers, or more, is
#: held up by them: what else it does goes on beside.
_HELD_UP: Final = 0.4
#: A loop in which one in so many arithmetic instructions divides or takes a root is bound by that unit; so is one in
#: which one in so many of all instructions divides integers.
_SLOW_SHARE: Final = 0.05
#: Waits for what lies far away in memory.
_OF_MEMORY: Final[tuple[WaitKind, ...]] = ("pointer", "chain", "scatter")
#: Waits in which comparisons cost nothing: they have been made when the loop goes on.
_HIDING: Final[tuple[WaitKind, ...]] = (*_OF_MEMORY, "guess")


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """One function: its innermost loops, and how it was compiled as far as that is known (``source``).

    ``on_stack`` are the instructions that access its own frame, ``in_memory`` all that access memory; of the loops
    where it has any. ``carrying`` is the share of the pieces of its code that find values in registers
    (``live_in_registers``). ``calling_math``, ``calling_inlinable``, ``calling_checks`` and ``recursing`` are the
    beginnings of loops that call transcendental functions, what an instruction would do, what reports failed checks,
    and the function itself. ``baseline``: it has no instructions of AVX or later. ``computes``: it has no loops, and
    does little else than floating-point arithmetic. ``relaxed``: the compiler was free to put reciprocals for
    divisions, so that none is left that can go. ``recomputes``: it calls itself and meets equal arguments
    (``pure_recursion``). ``samples`` say where in it the time was spent, None where too few are known.
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
    calling_inlinable: frozenset[int]
    calling_checks: frozenset[int]
    recursing: frozenset[int]
    baseline: bool
    computes: bool
    relaxed: bool = False
    recomputes: bool = False
    samples: FunctionSamples | None = None

    def without_remainders(self, lines: Mapping[int, tuple[str | None, int | None]]) -> FunctionCode:
        """Return the function without the scalar loops that only take over what is left by, or replace, a vector loop.

        They compute the same lines. Where no lines are known, they take less of the time than vector loops do, or,
        without samples, are taken for such.
        """
        shares = dict(zip(self.loops, self.time_shares(), strict=True))
        vectors = [one for one in self.loops if one.is_vector]
        covered = {lines.get(address) for one in vectors for address in one.arithmetic}
        longest = max((shares[one] for one in vectors), default=0.0)

        def is_remainder(loop: InnerLoop) -> bool:
            if not vectors or loop.scalar_reason is None:
                return False
            mine = {lines.get(address) for address in loop.arithmetic}
            told = None not in mine or self.samples is None
            return mine <= covered and (told or shares[loop] <= longest)

        kept = [one for one in self.loops if not is_remainder(one)]
        return replace(self, loops=tuple(kept))

    @property
    def main_loop(self) -> InnerLoop | None:
        """The loop that takes most of the samples; without them, the one nested deepest, of several the longest."""
        if self.samples is not None and any(self.time_shares()):
            return max(zip(self.time_shares(), self.loops, strict=True), key=lambda pair: pair[0])[1]
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

    def time_shares(self) -> tuple[float, ...]:
        """Return the share of the function's time that each of its loops takes: of its samples.

        Without samples, of the instructions of all loops, where one that is nested deeper runs more often.
        """
        if self.samples is not None:
            count, total = self.samples.count_between, self.samples.total
            return tuple(_ratio(count(one.begin, one.end), total) for one in self.loops)
        deepest = max((one.depth for one in self.loops), default=0)  # jumps back over all of a function count, too
        weights = [_DEEPER ** (one.depth - deepest) * one.instructions for one in self.loops]
        return tuple(_ratio(weight, sum(weights)) for weight in weights)

    def loop_shares(self) -> dict[str, float]:
        """Return the shares of its time in loops that are of a kind, by the name of the kind.

        ``scalar``: of that in arithmetic; the reasons for it, but for loops that call mathematical functions, which are
        ``math`` or ``inlinable``, those that walk a tree by calling themselves, and those that are a ``filter``;
        ``slow``: loops that divide or take roots, and wait for no memory meanwhile; without samples both are of the
        arithmetic. ``strided``, ``far``, ``indexed`` and
        ``shape`` (dense in steps that the code doesn't know): loops with a quarter of such accesses or more; ``fixed``:
        those that update one place, or lines of the cache that another thread stores to as well; ``filter``: those that
        test many and use few; ``select``: those that only look for the smallest; ``search``: those that only look for
        an element, which are not ``strided``, as no other order would do; ``pointer``, ``chain`` and ``scatter``:
        waiting for loads, by how their addresses come about, ``guess``: for branches that were guessed wrong,
        ``quotient``: for divisions of integers (``WaitKind``), all of a loop that these hold up; ``streamed``: waiting
        for memory that they go through in order, which vectors would not shorten. Of sums and
        other scalar loops the time that memory takes for their numbers is left out (``memory_share``).
        """
        loops = list(zip(self.loops, self.time_shares(), strict=True))
        reasons: dict[str, float] = dict.fromkeys(REASONS, 0.0)
        called = self.calling_math | self.calling_inlinable | self.recursing
        for one, share in loops:
            reason = one.scalar_reason if one.begin not in called else None
            if reason is not None and not one.filters and (reason == "objects" or not one.streams):
                reasons[reason] += share * one.computed_share

        def sum_of(holds: Callable[[InnerLoop], object]) -> float:
            return sum(share for one, share in loops if holds(one))

        computing = [(one, share * _arithmetic_share(one, share, self.samples)) for one, share in loops]
        divides = [(one, share) for one, share in computing if _is_slow(one) and not self.relaxed]
        slow = sum(share for one, share in divides if not self._waits(one))
        arithmetic = sum(share for _, share in computing) if self.samples is None else 1.0
        return {
            **reasons,
            "scalar": _ratio(sum(share * _ratio(one.scalar, one.floating) for one, share in computing), arithmetic),
            "slow": _ratio(slow, arithmetic),
            "strided": sum_of(lambda one: not one.searches and _is_mostly(one, one.strided)),
            "transposed": sum_of(lambda one: one.transposes and _is_mostly(one, one.strided)),
            "far": sum_of(lambda one: _is_mostly(one, one.far)),
            "indexed": sum_of(lambda one: _is_mostly(one, one.indexed)),
            "shape": sum_of(lambda one: not one.is_short and _is_mostly(one, one.unshaped)),
            "math": sum_of(lambda one: one.begin in self.calling_math),
            "inlinable": sum_of(lambda one: one.begin in self.calling_inlinable) or self._calls_inlinable(),
            "checked": sum_of(lambda one: one.begin in self.calling_checks),
            "baseline": max(
                sum_of(lambda one: _computes(one) and not self._waits_for_loads(one)),
                float(self.computes and not self._is_held_up()),
            )
            if self.baseline
            else 0.0,
            "fixed": sum_of(lambda one: one.is_shared) + self._atomic_share(),
            "branches": sum_of(lambda one: one.branches),
            "search": sum_of(lambda one: one.searches),
            "filter": sum_of(lambda one: one.filters),
            "select": sum_of(lambda one: one.selects),
            "streamed": sum_of(_is_streamed),
            "recomputed": float(self.recomputes),
            **self._wait_shares(loops),
        }

    def _calls_inlinable(self) -> float:
        """Return 1 for a function without loops, which others call in theirs, that calls what instructions would do."""
        return float(not self.loops and any(classify_library_function(name) == "inlinable" for name in self.called))

    def _wait_shares(self, loops: Sequence[tuple[InnerLoop, float]]) -> dict[str, float]:
        """Return the shares of its time that wait for pointers, for scattered numbers and for branches."""
        walks = [
            (one, share)
            for one, share in loops
            if one.load_chain == "pointer" and one.instructions <= _SHORT and not self._is_guessing(one)
        ]
        walking = sum(share for _, share in walks)
        if self.samples is None:
            return {**dict.fromkeys(WAIT_KINDS, 0.0), "pointer": walking}
        spans = [(one.begin, one.end) for one, _ in walks]
        waits: dict[str, float] = {
            kind: _ratio(self.samples.count_waits(kind, spans), self.samples.total) for kind in WAIT_KINDS
        }
        held = [(one, share) for one, share in loops if self._is_dividing(one)]
        outside = [(one.begin, one.end) for one, _ in held]
        quotient = sum(share for _, share in held) + _ratio(
            self.samples.count_waits("quotient", outside), self.samples.total
        )
        return {**waits, "pointer": waits["pointer"] + walking, "quotient": quotient}

    def _atomic_share(self) -> float:
        """Return the share of its time that waits for atomic updates in loops that don't store to one place only."""
        if self.samples is None:
            return 0.0
        fixed = [(one.begin, one.end) for one in self.loops if one.is_shared]
        return _ratio(self.samples.count_waits("atomic", fixed), self.samples.total)

    def _is_dividing(self, loop: InnerLoop) -> bool:
        """Return whether divisions of integers hold a loop up: it waits for them, or keeps their unit busy."""
        if _share_of_waits(self.samples, "quotient", loop) >= _HELD_UP:
            return True
        busy = 0 < _SLOW_SHARE * loop.instructions <= loop.divisions
        return busy and not self._waits(loop)

    def _waits(self, loop: InnerLoop) -> bool:
        """Return whether a loop is held up by memory, near or far: what takes long besides goes on meanwhile."""
        return bool(loop.streams) or self._waits_for_loads(loop)

    def _waits_for_loads(self, loop: InnerLoop) -> bool:
        """Return whether a loop is held up by numbers that lie far away: other instructions would wait as long."""
        return _share_of_all_waits(self.samples, _OF_MEMORY, loop) >= _HELD_UP

    def _is_held_up(self) -> bool:
        """Return whether all of the function is held up by numbers that lie far away."""
        if self.samples is None:
            return False
        waits = sum(self.samples.count_waits(kind, ()) for kind in _OF_MEMORY)
        return waits >= _HELD_UP * self.samples.total

    def _is_guessing(self, loop: InnerLoop) -> bool:
        """Return whether a loop waits for branches, and its loads come from the first cache."""
        return _share_of_waits(self.samples, "guess", loop) >= _HELD_UP


def _share_of_waits(samples: FunctionSamples | None, kind: WaitKind, loop: InnerLoop) -> float:
    """Return the share of a loop's samples that wait for something of a kind."""
    if samples is None:
        return 0.0
    waiting = samples.count_waits(kind, [(0, loop.begin), (loop.end, samples.places[-1] + 1)])
    return _ratio(waiting, samples.count_between(loop.begin, loop.end))


def _share_of_all_waits(samples: FunctionSamples | None, kinds: Iterable[WaitKind], loop: InnerLoop) -> float:
    return sum(_share_of_waits(samples, kind, loop) for kind in kinds)


def _arithmetic_share(loop: InnerLoop, share: float, samples: FunctionSamples | None) -> float:
    """Return what turns the share of a loop into that of its arithmetic; with samples, time is what counts."""
    return float(share > 0) if samples is not None else _ratio(loop.floating, loop.instructions)


def _computes(loop: InnerLoop) -> bool:
    """Return whether a loop spends its time on floating-point arithmetic, and waits for nothing else.

    Neither for the iteration before nor for memory.
    """
    return not (loop.recurs or loop.is_short or loop.streams) and loop.floating >= _COMPUTING * loop.instructions


def _is_streamed(loop: InnerLoop) -> bool:
    """Return whether a loop waits for memory that it goes through in order, and uses all of it."""
    return bool(loop.streams) and not _is_mostly(loop, loop.strided) and loop.scalar_reason != "objects"


def _is_mostly(loop: InnerLoop, count: int) -> bool:
    return count > 0 and count >= _SOME * loop.accesses


def _is_slow(loop: InnerLoop) -> bool:
    """Return whether a loop is held up by its divisions and roots, and can do with fewer of them.

    Where each iteration waits for the one before, only a divisor that stays the same can go.
    """
    if loop.recurs and not loop.fixed_divisors:
        return False
    return loop.slow > 0 and loop.slow >= _SLOW_SHARE * loop.floating


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def analyze_function(
    image: ElfImage,
    symbol: Symbol,
    source: SourceUnit | None,
    sampled: Mapping[int, int] | None = None,
    registers: Mapping[int, Registers] | None = None,
    pairs: Mapping[int, Registers] | None = None,
    progress: Mapping[int, Registers] | None = None,
    part: Mapping[int, int] | None = None,
) -> FunctionCode:
    """Return what the code of a function tells; raises ``UsageError`` where it can't be disassembled.

    ``sampled`` are the samples in it by address, ``registers`` what these held at some of them, ``pairs`` the same in
    two threads, ``progress`` at two samples of one. ``part`` are the samples that count as its time, None for all: what
    is inlined into it has its own.
    """
    code = free_frame_pointer(disassemble(image, symbol.begin, symbol.end))
    samples = read_samples(code, (sampled if part is None else part) or {}, registers or {})
    loops = tuple(
        _add_samples(loop, code, samples, sampled, pairs)
        for loop in find_inner_loops(code, sampled, registers, progress)
        if not _communicates(image, loop)
    )
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
        carrying=share_of_live_in_pieces(code),
        scalar=scalar,
        packed=packed,
        calling_math=frozenset(loop.begin for loop in loops if calls_kind(image, loop.calls, "math")),
        calling_inlinable=frozenset(loop.begin for loop in loops if calls_kind(image, loop.calls, "inlinable")),
        calling_checks=frozenset(
            loop.begin
            for loop in loops
            if calls_kind(image, loop.calls, "check")
            or (_share_of_all_waits(samples, _HIDING, loop) < _HELD_UP and tests_much(image, code, loop))
        ),
        recursing=frozenset(loop.begin for loop in loops if _recurses(image, symbol, loop)),
        baseline=not any(map(is_extended, code)),
        computes=not loops and scalar + packed >= _COMPUTING * len(code),
        called=frozenset(image.name_functions(targets)),
        recomputes=computes_again(code, symbol),
        relaxed=image.is_linked_fast if source is None or source.fast_math is None else source.fast_math,
        samples=samples,
    )


def _add_samples(
    loop: InnerLoop,
    code: Sequence[Instruction],
    samples: FunctionSamples | None,
    sampled: Mapping[int, int] | None,
    pairs: Mapping[int, Registers] | None,
) -> InnerLoop:
    """Return a loop of ``code`` with what samples in it show."""
    body = [one for one in code if loop.begin <= one.address < loop.end]
    filters = is_filter(body, loop.trips, sampled or {}) or leaves_to_work(body, code, sampled or {})
    return replace(
        loop,
        divides=_share_of_waits(samples, "divider", loop) >= _HELD_UP,
        divisions=count_divisions(body, sampled or {}),
        filters=loop.depth > 1 and filters,
        shares_lines=find_sharing(body, pairs or {}),
    )


def _communicates(image: ElfImage, loop: InnerLoop) -> bool:
    """Return whether a loop calls MPI: what it takes is no computation, however deep it lies."""
    return any(name.lower().startswith(("mpi_", "pmpi_")) for name in image.name_functions(loop.calls))


def _recurses(image: ElfImage, symbol: Symbol, loop: InnerLoop) -> bool:
    """Return whether a loop calls the function itself, or a part of it, and nothing else of the program."""
    own = image.name_functions(target for target in loop.calls if target not in image.stubs)
    return {name.partition(".")[0] for name in own} == {symbol.name.partition(".")[0]}
