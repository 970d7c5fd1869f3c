"""Counts of operations as a recording of the run: a document beside the profile, which is merged with it.

The recording has no times, only counts by region and rank; ``gapwatch advise`` takes what lies in one directory and has
the same program for recordings of one run, and puts the counts to the regions of the recording with times. ``gapwatch
count`` and ``gapwatch incore`` write such documents as JSON; a user may write one as YAML (docs/plugins/processor.md).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np

from advisor.model.errors import DocumentError, InputError
from advisor.model.records import Note, Phase, Processor, Profile, Region
from advisor.support import documents, strict_json
from advisor.support.atomic_write import atomic_write
from advisor.support.documents import FieldErrors

SCHEMA: Final = "gapwatch/operations/1"
_LIMIT_B: Final = 64 << 20
_NAME: Final = re.compile(r"[a-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+){0,2}")
_RANKS: Final = 1_000_000
_KEYS: Final = ("schema", "program", "run", "counted_by", "ranks", "regions", "notes")
_REGION_KEYS: Final = ("name", "file", "line", "counts")


@dataclass(frozen=True, slots=True)
class RegionCounts:
    """The counts of one function: one number for each rank, or one that holds for each."""

    name: str
    counts: dict[str, tuple[float, ...]]
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class OperationsDocument:
    """A document of counts; ValueError (``FieldErrors``) for counts that are none."""

    schema: Literal["gapwatch/operations/1"]
    program: str
    regions: tuple[RegionCounts, ...]
    run: str = ""
    counted_by: str = "stated"
    ranks: int = 1
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        problems = [
            (("regions",), f"{region.name}: {problem}")
            for region in self.regions
            for problem in _check_region(region, self.ranks)
        ]
        if not 0 < self.ranks <= _RANKS:
            problems.append((("ranks",), f"expected 1 to {_RANKS:,} ranks"))
        if problems:
            raise FieldErrors(problems)


def _check_region(region: RegionCounts, ranks: int) -> Iterable[str]:
    for name, values in region.counts.items():
        if not _NAME.fullmatch(name):
            yield f"{name!r} is not the name of a count such as source_ops.fp_add"
        if len(values) not in (1, ranks):
            yield f"{name}: {len(values)} numbers for {ranks} ranks"
        if not all(math.isfinite(value) and value >= 0 for value in values):
            yield f"{name}: counts are numbers from zero"


def read_operations(path: Path) -> Profile:
    """Return the recording at ``path``; raises ``InputError`` with the place of what is wrong."""
    try:
        with path.open("rb") as stream:
            is_json = stream.read(100).lstrip().startswith(b"{")
        document = _read_json(path) if is_json else documents.load_document(path, OperationsDocument)
    except DocumentError as error:
        first = error.problems[0]
        raise InputError(path, first.message, f"{first.line}:{first.column}") from error
    except OSError as error:
        raise InputError(path, error.strerror or "may not be read") from error
    return build_profile(document, path.name)


def _read_json(path: Path) -> OperationsDocument:
    root = strict_json.read_json(path, _LIMIT_B)
    found = root.require_fields(_KEYS, needed=("schema", "program", "regions"))
    found["schema"].require_choice((SCHEMA,))
    try:
        return OperationsDocument(
            "gapwatch/operations/1",
            found["program"].require_text(),
            tuple(_parse_region(node) for node in found["regions"].require_items()),
            strict_json.optional_text(found, "run") or "",
            found["counted_by"].require_text() if "counted_by" in found else "stated",
            found["ranks"].require_whole(1) if "ranks" in found else 1,
            tuple(node.require_text() for node in found["notes"].require_items()) if "notes" in found else (),
        )
    except FieldErrors as error:
        raise root.make_error(str(error)) from error


def _parse_region(node: strict_json.JsonNode) -> RegionCounts:
    found = node.require_fields(_REGION_KEYS, needed=("name", "counts"))
    counts = {
        name: tuple(each.require_number(0) for each in row.require_items())
        for name, row in found["counts"].require_fields().items()
    }
    file = strict_json.optional_text(found, "file")
    return RegionCounts(
        found["name"].require_text(), counts, file, found["line"].require_whole() if "line" in found else None
    )


def build_profile(document: OperationsDocument, run: str) -> Profile:
    """Return the recording that a document states: arrays (regions, ranks) and no times."""
    shape = (len(document.regions), document.ranks)
    tables = {name: np.zeros(shape) for region in document.regions for name in region.counts}
    for number, region in enumerate(document.regions):
        for name, values in region.counts.items():
            tables[name][number] = values
    return Profile(
        program=document.program,
        run=document.run or run,
        reader=document.counted_by,
        actual_s=math.nan,
        processors=tuple(Processor(rank) for rank in range(document.ranks)),
        regions=tuple(Region(each.name, each.file, each.line) for each in document.regions),
        phases=(Phase("the whole run", "whole", np.arange(len(document.regions), dtype=np.int64), {}),),
        status={},
        counts=tables,
        notes=tuple(Note("counts", text) for text in document.notes),
    )


def write_operations(document: OperationsDocument, path: Path) -> None:
    """Write a document as JSON, a region a line; raises ``OSError``. It appears only when it is complete."""
    head = {"schema": document.schema, "program": document.program, "run": document.run}
    head |= {"counted_by": document.counted_by}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    lines += [f'"ranks": {document.ranks},', f'"notes": {json.dumps(list(document.notes))},', '"regions": [']
    rows = [json.dumps(_convert_region(region), allow_nan=False) for region in document.regions]
    text = "\n".join(["{", *lines, ",\n".join(rows), "]", "}", ""])
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _convert_region(region: RegionCounts) -> Mapping[str, object]:
    place = {"file": region.file, "line": region.line}
    return {
        "name": region.name,
        **{key: value for key, value in place.items() if value is not None},
        "counts": {name: list(values) for name, values in region.counts.items()},
    }


def build_document(
    program: str,
    counted_by: str,
    ranks: int,
    rows: Iterable[tuple[tuple[str, str | None, int | None], int, Mapping[str, float]]],
    notes: Sequence[str] = (),
) -> OperationsDocument:
    """Return the document of ``rows``: a region (name, file, line), the rank, and its counts; equal ones add up."""
    tables: dict[tuple[str, str | None, int | None], dict[str, list[float]]] = {}
    for region, rank, counts in rows:
        table = tables.setdefault(region, {})
        for name, value in counts.items():
            table.setdefault(name, [0.0] * ranks)[rank] += value
    regions = tuple(
        RegionCounts(name, {key: tuple(row) for key, row in table.items()}, file, line)
        for (name, file, line), table in tables.items()
    )
    return OperationsDocument("gapwatch/operations/1", program, regions, "", counted_by, ranks, tuple(notes))
