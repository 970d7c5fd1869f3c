"""The extents of arrays of Fortran, and how many elements a section of one has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import sympy

from advisor_processor.symbolic.integer_functions import Quotient

if TYPE_CHECKING:
    from advisor_processor.symbolic.walk_records import Frame


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
