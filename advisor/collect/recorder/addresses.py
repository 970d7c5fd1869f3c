"""After a run: the addresses of its recording become functions and lines, while the program's files are still there."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.collect.binaries.addresses import resolve_addresses
from advisor.model.errors import InputError
from advisor.support.system_sources import is_system_source
from advisor.trace.recordings.addresses import locate_addresses, sorted_objects
from advisor.trace.recordings.layout import ADDRESS_MASK, CALL, map_records, map_samples
from advisor.trace.recordings.places import CodePlace, Places, write_places
from advisor.trace.recordings.processes import process_files, read_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy.typing as npt

    from advisor.trace.recordings.processes import Process


def name_addresses(folder: Path) -> None:
    """Resolve all addresses of a recording and keep what they stand for beside it.

    Objects that can't be read, or tell nothing, are left out: their addresses stay without names.
    """
    wanted: dict[str, set[int]] = defaultdict(set)
    for file in process_files(folder):
        process = read_process(file)
        paths = [one.path for one in sorted_objects(process)]
        for address in _addresses(process):
            located = locate_addresses(process, address)
            for number, offset in located[located[:, 0] >= 0].tolist():
                wanted[paths[number]].add(offset)
    places: dict[tuple[str, int], tuple[CodePlace, ...]] = {}
    for path, offsets in wanted.items():
        places |= _resolve(path, sorted(offsets))
    write_places(folder, places)


def _addresses(process: Process) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the addresses of a process: sampled ones as they are, callers lowered by one, into the call."""
    for number in process.threads:
        records = map_records(process.thread_file(number, "records"))
        callers = np.unique(records["caller"][records["kind"] == CALL] & ADDRESS_MASK)
        yield callers[callers > 0] - np.uint64(1)
        samples = map_samples(process.thread_file(number, "samples"))
        yield np.unique(samples["address"])
        behind: npt.NDArray[Any] = np.unique(samples["callers"])
        yield behind[behind > 0] - np.uint64(1)


def _resolve(path: str, offsets: list[int]) -> Places:
    try:
        found = resolve_addresses(Path(path), offsets, kind="file offset")
    except (InputError, OSError):
        return {}
    named = {}
    for offset, place in zip(offsets, found.places, strict=True):
        frames = tuple(CodePlace(frame.function, frame.file, frame.line) for frame in place.frames if frame.function)
        if frames:
            named[path, offset] = select_own_frames(frames)
    return named


def select_own_frames(frames: tuple[CodePlace, ...]) -> tuple[CodePlace, ...]:
    """Return the frames without inlined functions of the headers of compiler and system, which users can't change.

    What such a function takes is time of the one that it is inlined into. All frames where none is the user's.
    """
    own = tuple(frame for frame in frames if not is_system_source(frame.file or ""))
    return own or frames
