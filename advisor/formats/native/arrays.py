"""The arrays of a document: nested lists in the text itself, or members of the NPZ archive, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.support.documents.scalars import suggest_word
from advisor.support.strict_json import JsonNode

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.native.npz import NpzArchive
    from advisor.model.records import FloatArray, IntArray

#: The extents of an array, None where any will do.
Shape = tuple[int | None, ...]


class ArraySource:
    """Reads arrays and remembers which held missing values; ``archive`` is None where all stands in the text."""

    def __init__(self, archive: NpzArchive | None) -> None:
        self._archive = archive
        self.incomplete: list[str] = []

    def read_numbers(self, node: JsonNode, shape: Shape, least: float) -> FloatArray | None:
        """Return finite numbers of the shape, none below ``least``; None where one is null, since all then lack it.

        The last axis of several may be left out where its extent is 1.
        """
        array = self._read_array(node, shape, np.float64)
        if array is None:
            self.incomplete.append(node.place)
            return None
        numbers = array.astype(np.float64, copy=False)
        _refuse_impossible(node, numbers, least)
        return numbers

    def read_integers(self, node: JsonNode, shape: Shape) -> IntArray:
        """Return integers of the shape."""
        array = self._read_array(node, shape, np.int64)
        if array is None or array.dtype.kind not in "iu" or (array.size and int(array.max()) >= 2**63):
            raise node.make_error("expected integers of at most 63 bits")
        return array.astype(np.int64, copy=False)

    def refuse_unused(self, root: JsonNode) -> None:
        """Raise ``InputError`` where the archive holds arrays that the document never names."""
        if self._archive is not None and (unused := set(self._archive.members) - self._archive.used):
            raise root.make_error(f"the document names no array {min(unused)[:80]!r}, which the archive holds")

    def _read_array(self, node: JsonNode, shape: Shape, kind: type[np.generic]) -> npt.NDArray[np.generic] | None:
        if isinstance(node.value, str):
            return self._load_member(node, shape)
        found = _resolve_shape(node.value, shape)
        flat: list[float | None] = []
        _collect_numbers(node, found, flat)
        if None in flat:
            return None
        if kind is np.int64 and float in set(map(type, flat)):
            raise node.make_error("expected integers only")
        try:
            array = np.array(flat, kind)
        except OverflowError:
            raise node.make_error("a number is too large") from None
        return array.reshape([extent or 0 for extent in found] + [1] * (len(shape) - len(found)))

    def _load_member(self, node: JsonNode, shape: Shape) -> npt.NDArray[np.generic]:
        name = node.require_text()
        if self._archive is None:
            raise node.make_error(
                "names an array, which only a document inside an NPZ archive can do; write the numbers"
            )
        if name not in self._archive.members:
            raise node.make_error(
                f"the archive holds no array {name[:80]!r}{suggest_word(name, self._archive.members)}"
            )
        array = self._archive.load_array(name)
        if 0 < array.ndim == len(shape) - 1 and shape[-1] in (None, 1):
            array = array[..., np.newaxis]
        fits = array.ndim == len(shape) and all(
            want in (None, have) for want, have in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise node.make_error(f"has the shape {array.shape}, expected {_format_shape(shape)}")
        if array.dtype.kind not in "fiu":
            raise node.make_error(f"holds {array.dtype}, expected numbers")
        return array


def _format_shape(shape: Shape) -> str:
    return f"({', '.join('any' if extent is None else str(extent) for extent in shape)})"


def _resolve_shape(value: object, shape: Shape) -> Shape:
    """Return the shape with the open extents as they are found at the first place; the last axis may be missing."""
    found: list[int | None] = []
    for depth, extent in enumerate(shape):
        if not isinstance(value, list):
            return tuple(found) if found and depth == len(shape) - 1 and extent in (None, 1) else shape
        found.append(len(value) if extent is None else extent)
        value = value[0] if value else None
    return tuple(found)


def _collect_numbers(node: JsonNode, shape: Shape, flat: list[float | None]) -> None:
    """Append the numbers of nested lists in order, after a look at every length and type."""
    if not isinstance(node.value, list) or len(node.value) != shape[0]:
        found = f"one of {len(node.value)}" if isinstance(node.value, list) else "none"
        raise node.make_error(f"expected an array of {'any length' if shape[0] is None else shape[0]}, found {found}")
    if len(shape) > 1:
        for i, value in enumerate(node.value):
            _collect_numbers(JsonNode(node.file, f"{node.place}[{i}]", value), shape[1:], flat)
        return
    if not set(map(type, node.value)) <= {int, float, type(None)}:
        for member in node.require_items():
            if member.value is not None:
                member.require_number()
    flat.extend(node.value)


def _refuse_impossible(node: JsonNode, numbers: FloatArray, least: float) -> None:
    if not numbers.size:
        return
    with np.errstate(invalid="ignore"):
        low, high = numbers.min(), numbers.max()
    if low >= least and np.isfinite(low) and np.isfinite(high):
        return
    for i, block in enumerate(numbers):  # block by block: the array may be larger than memory
        bad = np.argwhere(~(np.isfinite(block) & (block >= least)))
        if len(bad):
            index = (i, *map(int, bad[0]))
            raise node.make_error(f"{numbers[index]:g} at {list(index)} is impossible")
