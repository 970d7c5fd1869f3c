"""What is told of an innermost loop of machine code, and why it works on one number at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from advisor.collect.binaries.load_chains import LoadChain

#: Why a loop works on one number at a time: it calls, needs what the iteration before computed, goes through indices
#: (then it waits for what they name), takes a few numbers of each object, keeps the order of a sum, branches on data,
#: or steps over numbers; ``overlap``: nothing of that, so the compiler was not asked, or feared overlapping arrays.
ScalarReason = Literal["call", "recurrence", "index", "objects", "order", "branch", "stride", "overlap"]

#: An addition, a comparison and a jump, or less, compute nothing from numbers in memory.
_FEWEST: Final = 4
#: In so few iterations vectors win nothing.
_FEW_TRIPS: Final = 6


@dataclass(frozen=True, slots=True)
class InnerLoop:
    """What one innermost loop does in an iteration; counts are instructions. ``depth`` is 1 for a loop in no other.

    ``accesses`` are places outside of the own frame, of which ``strided`` are walked through in steps over numbers, or
    from row to row where an array of pointers holds the rows,
    ``far`` in steps of pages, and ``indexed`` at addresses that were loaded or computed anew. ``fixed_updates`` are
    stores to the same place in every iteration. ``recurs`` says that an iteration needs what one before it computed,
    other than as a term of a sum, be it the next random number. ``arithmetic`` are the addresses of
    instructions that compute, ``calls`` the targets of calls, None for one through a pointer. Of loops without
    floating-point arithmetic, ``integers`` and ``packed_integers`` are the instructions that compute with one integer
    of an array, or several, at a time.
    ``fixed_divisors`` are divisions by a value that stays the same in all iterations. ``load_chain`` says how an
    address depends on a load of the iteration before. ``transposes`` says that an interchange with the loop around it
    would only make another operand strided. ``around`` marks one that spends its time around the short loops in it,
    ``searches`` one that only looks for an element of an array, ``spins`` one that waits for another thread to write.
    ``interleaved`` are accesses to a few numbers of each
    object of an array of objects. ``divides``: it waits for divisions and roots, as samples show, and how its numbers
    lie in memory does not matter. ``unshaped`` are those that go along memory, as samples show, though the code takes
    any step. ``trips`` is how many iterations it mostly has, None where samples
    don't tell. ``shares_lines``: two threads store to the same lines of the cache in it, None where samples don't tell.
    ``streams``: it waits for memory that it goes through in order, None where samples don't tell; ``memory_share``
    is the part of its time that bringing this takes at the least. ``divisions`` are
    those of integers in an iteration, as far as samples show that they run, ``leaps`` the constant steps of strided
    accesses, with their number. ``filters``: it computes a test that hardly any element passes, as samples show.
    ``selects``: it only looks for the place of the smallest or largest of many elements.
    """

    begin: int
    end: int
    depth: int
    instructions: int
    scalar: int
    packed: int
    slow: int
    on_stack: int
    accesses: int
    strided: int
    far: int
    indexed: int
    fixed_updates: int
    locked: int
    branches: int
    ordered_sums: int
    recurs: bool
    calls: tuple[int | None, ...]
    arithmetic: tuple[int, ...]
    integers: int = 0
    packed_integers: int = 0
    fixed_divisors: int = 0
    load_chain: LoadChain | None = None
    transposes: bool = False
    around: bool = False
    searches: bool = False
    spins: bool = False
    interleaved: int = 0
    divides: bool = False
    unshaped: int = 0
    trips: int | None = None
    shares_lines: bool | None = None
    streams: bool | None = None
    memory_share: float = 0.0
    divisions: int = 0
    leaps: tuple[tuple[int, int], ...] = ()
    filters: bool = False
    selects: bool = False

    @property
    def floating(self) -> int:
        """Floating-point instructions, of one number or of vectors."""
        return self.scalar + self.packed

    @property
    def is_shared(self) -> bool:
        """Whether threads store to the same lines, or may do so: to one place in each iteration."""
        return self.fixed_updates > 0 if self.shares_lines is None else self.shares_lines

    @property
    def computed_share(self) -> float:
        """The part of its time that computing faster can shorten, of sums and other simple loops."""
        return 1.0 - self.memory_share if self.scalar_reason in ("order", "overlap") else 1.0

    @property
    def is_vector(self) -> bool:
        """Whether most of what it computes is done with vectors."""
        return self.packed > self.scalar or self.packed_integers > self.integers

    @property
    def is_short(self) -> bool:
        """Whether it mostly ends before a vector of numbers and what is left over have been worth their beginning."""
        return self.trips is not None and self.trips <= _FEW_TRIPS

    @property
    def scalar_reason(self) -> ScalarReason | None:
        """Why the loop works on one number at a time, None where it has vectors or computes nothing.

        Of loops over integers only what vectors would help is told: most others search, sort or count.
        """
        if self.integers and not self.packed_integers:
            holds = self.calls or self.recurs or self.indexed or self.strided or self.branches or self.fixed_updates
            return None if holds or self.locked or self.is_short else "overlap"
        if not self.scalar or self.packed >= self.scalar:
            return None
        if self.instructions <= _FEWEST and not self.accesses:
            return None  # adds the same value until the sum is large enough
        if self.calls:
            return "call"
        if self.recurs:
            return "recurrence"
        if self.around:
            return "branch"
        if self.indexed:
            return "index"
        if self.is_short:
            return "branch" if self.branches else None
        if 2 * self.interleaved >= self.accesses > 0 and not self.divides:
            return "objects"
        if self.ordered_sums:
            return "order"
        if self.branches:
            return None if self.divides else "branch"  # goes on beside the divisions, which it waits for
        return "stride" if self.strided else "overlap"
