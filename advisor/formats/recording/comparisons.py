"""Samples in functions of the program that a library calls to compare what it sorts: they are part of sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.library_functions import classify_library_function
from advisor.trace.recordings.addresses import locate_addresses, sorted_objects
from advisor.trace.recordings.layout import PYTHON_BIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.recorded_threads import RecordedThread
    from advisor.trace.recordings.places import Places


def find_comparisons(thread: RecordedThread, places: Places) -> npt.NDArray[np.bool_]:
    """Return which samples of a thread lie in code of the program that was called by a library which sorts."""
    samples, paths = thread.samples, [one.path for one in sorted_objects(thread.process)]
    own = {number for number, path in enumerate(paths) if path == thread.process.program}
    compiled = (samples["callers"][:, 3] & PYTHON_BIT) == 0
    callers = np.where(compiled, samples["callers"][:, 0], 0)
    inner = locate_addresses(thread.process, samples["address"])[:, 0]
    outer = locate_addresses(thread.process, np.maximum(callers, np.uint64(1)) - np.uint64(1))
    known: dict[tuple[int, int], bool] = {}
    found = np.zeros(len(samples), dtype=np.bool_)
    for at in np.flatnonzero(np.isin(inner, list(own)) & (outer[:, 0] >= 0) & compiled).tolist():
        number, address = outer[at].tolist()
        if number in own:
            continue
        if (number, address) not in known:
            frames = places.get((paths[number], address), ())
            known[number, address] = any(classify_library_function(one.function) == "sort" for one in frames)
        found[at] = known[number, address]
    return found
