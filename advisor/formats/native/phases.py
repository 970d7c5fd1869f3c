"""The phases of a document, in each of the three ways in which it may state its measures (docs/formats/native.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast, get_args

import numpy as np

from advisor.model.records import MEASURES, FloatArray, Phase, PhaseKind
from advisor.support.strict_json import JsonNode, optional_text

if TYPE_CHECKING:
    from advisor.formats.native.arrays import ArraySource, Shape
    from advisor.model.errors import InputError

#: Seconds by which a time may fall below zero: differences of clock readings do, by the clock's resolution.
RESOLUTION_S: Final = 1e-6
_PHASE: Final = ("name", "kind", "closed_by", "start_s", "duration_s", "regions", *MEASURES)


@dataclass(frozen=True, slots=True)
class PhaseReader:
    """Reads the phases of a document; ``extents`` is the number of its regions and of its processors."""

    root: JsonNode
    regions: list[JsonNode]
    extents: tuple[int, int]
    arrays: ArraySource

    def read_phases(self) -> tuple[Phase, ...]:
        """Return the phases: explicit ones, or each region one where they are ``synchronized``, or the whole run."""
        found = self.root.require_fields()
        in_root = any(name in found for name in MEASURES)
        in_regions = any(name in node.require_fields() for node in self.regions for name in MEASURES)
        if ("phases" in found) + in_root + in_regions != 1:
            raise self.root.make_error("state measures either in 'phases', or in each of the regions, or beside them")
        synchronized = "synchronized" in found and found["synchronized"].require_flag()
        if "phases" in found and synchronized:
            raise found["synchronized"].make_error(
                "contradicts explicit phases, which already say what is synchronized"
            )
        if "phases" in found:
            phases = found["phases"].require_items()
            stated = any(name in phase.require_fields() for phase in phases for name in MEASURES)
            counted_only = "counts" in found and not stated
            return tuple(self._read_phase(phase, counted_only=counted_only) for phase in phases)
        if in_root:
            table = self._read_measures(self.root, (*self.extents, None))
            return self._slice_regions(table) if synchronized else (self._build_whole(table),)
        rows = [self._read_measures(node, (self.extents[1], None)) for node in self.regions]
        return self._build_region_phases(rows) if synchronized else (self._build_whole(self._join_measures(rows)),)

    def _read_measures(self, node: JsonNode, shape: Shape) -> dict[str, FloatArray]:
        """Return the complete measures that an object states; raises ``InputError`` where none is."""
        found = node.require_fields()
        read = {
            name: self.arrays.read_numbers(found[name], shape, -np.inf if name == "os_s" else -RESOLUTION_S)
            for name in MEASURES
            if name in found
        }
        complete = {name: array for name, array in read.items() if array is not None}
        if not complete:
            raise self._no_measures_error(node)
        return complete

    def _no_measures_error(self, node: JsonNode) -> InputError:
        return node.make_error(f"states none of the measures {', '.join(MEASURES)} completely")

    def _read_phase(self, node: JsonNode, *, counted_only: bool) -> Phase:
        """Return a phase, without measures where only operations were counted in the whole run."""
        found = node.require_fields(_PHASE, needed=("name",))
        indices = np.arange(self.extents[0], dtype=np.int64)
        if "regions" in found:
            indices = self.arrays.read_integers(found["regions"], (None,))
        measures = {} if counted_only else self._read_measures(node, (len(indices), self.extents[1], None))
        return Phase(
            name=found["name"].require_text(),
            kind=cast("PhaseKind", found["kind"].require_choice(get_args(PhaseKind)))
            if "kind" in found
            else "parallel",
            regions=indices,
            arrays=measures,
            closed_by=optional_text(found, "closed_by"),
            start_s=self.arrays.read_numbers(found["start_s"], (None,), -np.inf) if "start_s" in found else None,
            duration_s=self.arrays.read_numbers(found["duration_s"], (None,), 0) if "duration_s" in found else None,
        )

    def _build_whole(self, measures: dict[str, FloatArray]) -> Phase:
        return Phase("run", "whole", np.arange(self.extents[0], dtype=np.int64), measures)

    def _slice_regions(self, table: dict[str, FloatArray]) -> tuple[Phase, ...]:
        """Return one phase per region, each a view of the arrays over all regions."""
        return self._build_region_phases(
            [{name: array[i] for name, array in table.items()} for i in range(self.extents[0])]
        )

    def _build_region_phases(self, rows: list[dict[str, FloatArray]]) -> tuple[Phase, ...]:
        names = [node.require_fields()["name"].require_text() for node in self.regions]
        return tuple(
            Phase(
                name,
                "parallel",
                np.array([i], np.int64),
                {measure: array[np.newaxis] for measure, array in row.items()},
            )
            for i, (name, row) in enumerate(zip(names, rows, strict=True))
        )

    def _join_measures(self, rows: list[dict[str, FloatArray]]) -> dict[str, FloatArray]:
        """Return the measures that all regions state, over all of them."""
        stated = [name for name in MEASURES if name in self.regions[0].require_fields()]
        for node in self.regions:
            if stated != [name for name in MEASURES if name in node.require_fields()]:
                raise node.make_error(f"states other measures than the first region, which has {', '.join(stated)}")
        complete = [name for name in stated if all(name in row for row in rows)]
        if not complete:
            raise self._no_measures_error(self.root)
        try:
            return {name: np.stack([row[name] for row in rows]) for name in complete}
        except ValueError as error:
            raise self.root.make_error("the regions have different numbers of iterations") from error
