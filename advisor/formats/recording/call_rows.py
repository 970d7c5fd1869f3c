"""Where in the tables of a profile recorded calls belong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.formats.recording.naming import RegionTable
from advisor.formats.recording.recorded_threads import RecordedThread, map_processors

if TYPE_CHECKING:
    from advisor.formats.recording.contents import Recording
    from advisor.model.records import IntArray, Profile


class CallRows:
    """The rows and columns of a profile, by what the calls and threads of its recording are called there."""

    def __init__(self, profile: Profile, recording: Recording) -> None:
        self._columns = map_processors(profile)
        places = [(one.name, one.file, one.line, one.threaded) for one in profile.regions]
        self._rows = {place: row for row, place in reversed(list(enumerate(places)))}  # calls come before samples
        self._regions = RegionTable(recording.places)

    def find_rows(self, thread: RecordedThread, calls: IntArray) -> tuple[IntArray, int]:
        """Return the row of each call, -1 for one without any, and the column of its thread."""
        column = self._columns.get((thread.rank, thread.processor))
        if column is None or not len(calls):
            return np.full(len(calls), -1, dtype=np.int64), 0
        called = self._regions.of_calls(thread.process, thread.records[calls])
        distinct, inverse = np.unique(called, return_inverse=True)
        rows = [self._find_row(number, threaded=thread.span.number > 0) for number in distinct.tolist()]
        return np.array(rows, dtype=np.int64)[inverse], column

    def _find_row(self, number: int, *, threaded: bool) -> int:
        region = self._regions.regions[number]
        keys = ((region.name, region.file, region.line, one) for one in (threaded, not threaded))
        return next((self._rows[key] for key in keys if key in self._rows), -1)
