"""The bytes of all data of a program on a rank, added up where they are declared and allocated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import sympy

from advisor_processor.symbolic.library_names import ALLOCATING
from advisor_processor.symbolic.walk_records import Memory

if TYPE_CHECKING:
    from advisor_processor.source.records import CallSite, Source

FREEING: Final = frozenset({"free", "std::free"})
#: Ways in which the values of declared arrays are written.
DECLARING: Final = ("gapwatch_array(", "gapwatch_vector(", "new ")
#: Methods and functions that change the size of what is there.
_GROWING: Final = (".resize", ".push_back", ".emplace_back", ".reserve")


class DataSizes:
    """Sizes as formulas: declared ones once, allocated ones as often as the call is made; ``unsized`` are not known.

    What is allocated in a loop that frees memory counts among the latter: how much there is at a time is not told.
    """

    def __init__(self) -> None:
        self._declared: dict[tuple[str, str], Any] = {}
        self._allocated: list[Any] = []
        self.unsized: list[str] = []

    @property
    def total(self) -> Any:  # noqa: ANN401
        """Return the sum, None where something is not known."""
        return (
            None if self.unsized else sympy.expand(sum((*self._declared.values(), *self._allocated), sympy.Integer(0)))
        )

    def note_declared(self, function: str, name: str, value: Any) -> None:  # noqa: ANN401
        """Note an array that is declared, or allocated by a statement of the language."""
        if isinstance(value, Memory):
            self._declared[function, name] = value.args[0]
        else:
            self.unsized.append(f"{function}: {name}" if function else name)

    def note_shared(self, sources: Sequence[Source], parse: Callable[[str], Any]) -> None:
        """Note the arrays that are declared outside of all functions."""
        for source in sources:
            for name, value in source.values.items():
                if value.startswith(DECLARING):
                    self.note_declared("", name, parse(value))

    def note_call(
        self, call: CallSite, given: Sequence[Any], place: str, freed: bool, sum_calls: Callable[[Any], Any]
    ) -> None:  # fmt: skip
        """Note what a call allocates; ``freed`` where it stands in a loop that frees memory."""
        name = call.name.removeprefix("std::")
        value = find_allocated(name, given)
        if value is not None and name != "realloc" and not freed:
            self._allocated.append(sum_calls(value.args[0]))
        elif name in ALLOCATING or call.name.endswith(_GROWING):
            self.unsized.append(f"{call.name} at {place}")


def find_allocated(name: str, given: Sequence[Any]) -> Memory | None:
    """Return the memory that a call with the arguments ``given`` allocates, None where its size is not known."""
    sizes = [given[at] if at < len(given) else None for at in ALLOCATING.get(name, ())]
    return Memory(sympy.expand(sympy.prod(sizes))) if sizes and None not in sizes else None
