"""The extents of arrays, and the bytes of all data of a program on a rank, where they are declared and allocated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import sympy

from advisor_processor.symbolic.integer_functions import Quotient
from advisor_processor.symbolic.library_effects import ALLOCATING
from advisor_processor.symbolic.walk_records import Memory

if TYPE_CHECKING:
    from advisor_processor.source.records import CallSite, Source
    from advisor_processor.symbolic.walk_records import Frame

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


class ArrayShapes:
    """Extents by name, of arrays of procedures and of all (modules)."""

    def __init__(self) -> None:
        self._extents: dict[str, tuple[Any, ...]] = {}

    def note_extents(self, frame: Frame, name: str, local: bool, extents: Sequence[Any]) -> None:
        """Note the extents of an array that is declared or allocated."""
        (frame.extents if local else self._extents)[name] = tuple(extents)

    def find_extents(self, frame: Frame, name: str) -> tuple[Any, ...] | None:
        """Return the extents of an array, None where they are not known."""
        return frame.extents.get(name, self._extents.get(name))

    def count_elements(self, frame: Frame, name: str, subscripts: Sequence[str], parse: Callable[[str], Any]) -> Any:  # noqa: ANN401
        """Return the elements of an array, or of its section by ``subscripts`` as written; None where not known."""
        extents = self.find_extents(frame, name)
        if not subscripts:
            return None if extents is None or None in extents else sympy.expand(sympy.prod(extents))
        whole = extents if extents is not None and len(extents) == len(subscripts) else (None,) * len(subscripts)
        counts = [_count_along(each, extent, parse) for each, extent in zip(subscripts, whole, strict=True)]
        return None if None in counts else sympy.expand(sympy.prod(counts))


def _count_along(subscript: str, extent: Any, parse: Callable[[str], Any]) -> Any:  # noqa: ANN401
    """Return the elements along one dimension, whose index is taken to begin with 1."""
    if ":" not in subscript:
        return sympy.Integer(1)
    begin, end, step = ([each.strip() for each in subscript.split(":")] + ["1"])[:3]
    first = parse(begin) if begin else sympy.Integer(1)
    last = parse(end) if end else extent
    stride = parse(step)
    if first is None or last is None or stride is None or stride == 0:
        return None
    return Quotient(last - first + stride, stride)
