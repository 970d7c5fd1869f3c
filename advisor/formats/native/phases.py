"""The phases of a document, in each of the three ways in which it may state its measures (docs/formats/native.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast, get_args

import numpy as np

from advisor.model.records import MEASURES, Phase, PhaseKind

if TYPE_CHECKING:
    from advisor.formats.native.arrays import ArraySource, Shape
    from advisor.model.errors import InputError
    from advisor.model.records import FloatArray
    from advisor.support.strict_json import Node

#: Seconds by which a time may fall below zero: differences of clock readings do, by the clock's resolution.
RESOLUTION_S: Final = 1e-6
_PHASE: Final = ("name", "kind", "closed_by", "start_s", "duration_s", "regions", *MEASURES)


@dataclass(frozen=True, slots=True)
class PhaseReader:
    """Reads the phases of a document; ``extents`` is the number of its regions and of its processors."""

    root: Node
    regions: list[Node]
    extents: tuple[int, int]
    arrays: ArraySource

    def read(self) -> tuple[Phase, ...]:
        """Return the phases: explicit ones, or each region one where they are ``synchronized``, or the whole run."""
        found = self.root.fields()
        in_root = any(name in found for name in MEASURES)
        in_regions = any(name in node.fields() for node in self.regions for name in MEASURES)
        if ("phases" in found) + in_root + in_regions != 1:
            raise self.root.error("state measures either in 'phases', or in each of the regions, or beside them")
        synchronized = "synchronized" in found and found["synchronized"].flag()
        if "phases" in found and synchronized:
            raise found["synchronized"].error("contradicts explicit phases, which already say what is synchronized")
        if "phases" in found:
            return tuple(map(self._explicit, found["phases"].items()))
        if in_root:
            table = self._measures(self.root, (*self.extents, None))
            return self._sliced(table) if synchronized else (self._whole(table),)
        rows = [self._measures(node, (self.extents[1], None)) for node in self.regions]
        return self._each(rows) if synchronized else (self._whole(self._joined(rows)),)

    def _measures(self, node: Node, shape: Shape) -> dict[str, FloatArray]:
        """Return the complete measures that an object states; raises ``InputError`` where none is."""
        found = node.fields()
        read = {
            name: self.arrays.numbers(found[name], shape, -np.inf if name == "os_s" else -RESOLUTION_S)
            for name in MEASURES
            if name in found
        }
        complete = {name: array for name, array in read.items() if array is not None}
        if not complete:
            raise self._nothing(node)
        return complete

    def _nothing(self, node: Node) -> InputError:
        return node.error(f"states none of the measures {', '.join(MEASURES)} completely")

    def _explicit(self, node: Node) -> Phase:
        found = node.fields(_PHASE)
        if "name" not in found:
            raise node.error("'name' is missing")
        indices = np.arange(self.extents[0], dtype=np.int64)
        if "regions" in found:
            indices = self.arrays.integers(found["regions"], (None,))
        measures = self._measures(node, (len(indices), self.extents[1], None))
        return Phase(
            name=found["name"].text(),
            kind=cast("PhaseKind", found["kind"].choice(get_args(PhaseKind))) if "kind" in found else "parallel",
            regions=indices,
            arrays=measures,
            closed_by=found["closed_by"].text() if "closed_by" in found else None,
            start_s=self.arrays.numbers(found["start_s"], (None,), -np.inf) if "start_s" in found else None,
            duration_s=self.arrays.numbers(found["duration_s"], (None,), 0) if "duration_s" in found else None,
        )

    def _whole(self, measures: dict[str, FloatArray]) -> Phase:
        return Phase("run", "whole", np.arange(self.extents[0], dtype=np.int64), measures)

    def _sliced(self, table: dict[str, FloatArray]) -> tuple[Phase, ...]:
        """Return one phase per region, each a view of the arrays over all regions."""
        return self._each([{name: array[i] for name, array in table.items()} for i in range(self.extents[0])])

    def _each(self, rows: list[dict[str, FloatArray]]) -> tuple[Phase, ...]:
        names = [node.fields()["name"].text() for node in self.regions]
        return tuple(
            Phase(
                name,
                "parallel",
                np.array([i], np.int64),
                {measure: array[np.newaxis] for measure, array in row.items()},
            )
            for i, (name, row) in enumerate(zip(names, rows, strict=True))
        )

    def _joined(self, rows: list[dict[str, FloatArray]]) -> dict[str, FloatArray]:
        """Return the measures that all regions state, over all of them."""
        stated = [name for name in MEASURES if name in self.regions[0].fields()]
        for node in self.regions:
            if stated != [name for name in MEASURES if name in node.fields()]:
                raise node.error(f"states other measures than the first region, which has {', '.join(stated)}")
        complete = [name for name in stated if all(name in row for row in rows)]
        if not complete:
            raise self._nothing(self.root)
        try:
            return {name: np.stack([row[name] for row in rows]) for name in complete}
        except ValueError as error:
            raise self.root.error("the regions have different numbers of iterations") from error
