"""What a traced process left behind, read back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import IntArray


@dataclass(slots=True)
class Stream:
    """One thread: cycles on the oracle machine, accesses to memory, operations by component over the cycles.

    ``buckets`` is (n, 6): the operations of ``2**shift`` cycles each. ``windows`` is (n, 7): running totals of
    cycles and operations at the end of each sampled window. ``counts`` maps blocks to how often they ran.
    """

    cycles: int
    loads: int
    stores: int
    unclaimed: int
    lost: int
    shift: int
    pages: int
    buckets: list[list[int]] = field(default_factory=list)
    windows: list[list[int]] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    rows: Path | None = None

    @property
    def operations(self) -> IntArray:
        """Operations by component, and unknown ones last (6,)."""
        sums: IntArray = np.array(self.buckets, dtype=np.int64).reshape(-1, 6).sum(axis=0)
        return sums


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that were translated together: their address and the numbers of their templates."""

    address: int
    templates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MemoryMapping:
    """A part of a process's memory, and the file that it shows, if any."""

    start: int
    end: int
    offset: int
    path: str


@dataclass(slots=True)
class Image:
    """One program in one process, from its start to its exit or until it became another."""

    process: int
    became_another: bool
    streams: list[Stream] = field(default_factory=list)
    blocks: dict[int, Block] = field(default_factory=dict)
    mappings: list[MemoryMapping] = field(default_factory=list)

    @property
    def instructions(self) -> int:
        """How many instructions ran in all threads."""
        lengths = {index: len(block.templates) for index, block in self.blocks.items()}
        return sum(lengths.get(index, 0) * count for stream in self.streams for index, count in stream.counts.items())


def read_images(folder: Path) -> list[Image]:
    """Return the images of all processes that ended properly; raises ``InputError`` for a damaged file."""
    return [_read_image(path) for path in sorted(folder.glob("*.result"))]


def parse_mapping(text: str) -> list[MemoryMapping]:
    """Return what a line of ``/proc/PID/maps`` says; nothing for another line."""
    fields = [*text.split(maxsplit=5), ""]
    if len(fields) < 6:
        return []
    start, end = (int(number, 16) for number in fields[0].split("-"))
    return [MemoryMapping(start, end, int(fields[2], 16), fields[5])]


def _read_image(path: Path) -> Image:
    try:
        lines = path.read_text(errors="surrogateescape").splitlines()
        if not lines or lines[-1] != "end":
            raise ValueError("it has no end")
        image = Image(int(lines[0].split()[1]), lines[0].split()[3] == "exec")
        for line in lines[1:-1]:
            _parse_line(image, line)
    except (ValueError, IndexError, OSError) as error:
        raise InputError(path, f"the tracer left a damaged result: {error}") from error
    for number, stream in enumerate(image.streams):
        rows = path.with_name(f"{path.stem}-{number}.rows")
        stream.rows = rows if rows.exists() else None
    return image


def _parse_line(image: Image, line: str) -> None:
    word, _, rest = line.partition(" ")
    if word == "map":
        image.mappings.extend(parse_mapping(rest))
        return
    numbers = [int(number) for number in rest.split()]
    if word == "stream":
        cycles, loads, stores, unclaimed, lost, shift, pages = numbers
        image.streams.append(Stream(cycles, loads, stores, unclaimed, lost, shift, pages))
    elif word == "bucket":
        image.streams[-1].buckets.append(numbers)
    elif word == "window":
        image.streams[-1].windows.append(numbers)
    elif word == "count":
        image.streams[-1].counts[numbers[0]] = numbers[1]
    elif word == "block":
        image.blocks[numbers[0]] = Block(numbers[1], tuple(numbers[2:]))
