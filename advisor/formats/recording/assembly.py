"""From a recording to a ``Trace``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.formats.recording.columns import begin_ns, thread_columns
from advisor.formats.recording.communicators import Communicators
from advisor.formats.recording.naming import RegionTable
from advisor.formats.recording.notes import trace_notes
from advisor.formats.recording.slots import join_columns
from advisor.trace.events import COLUMNS, Location, Trace
from advisor.trace.meetings import meet_in_calls
from advisor.trace.recordings.families import name_program

if TYPE_CHECKING:
    from advisor.formats.recording.contents import Recording
    from advisor.formats.recording.recorded_threads import RecordedThread
    from advisor.formats.recording.slots import Columns


def assemble_trace(recording: Recording) -> Trace:
    """Return the events of all threads of a recording."""
    regions, comms = RegionTable(recording.places), Communicators(recording.processes)
    files: dict[str, int] = {}
    tables = {
        id(process): {number: files.setdefault(name, len(files)) for number, name in process.files.items()}
        for process in recording.processes
    }
    threads = Counter(thread.rank for thread in recording.threads)
    slots: dict[tuple[int, int], list[RecordedThread]] = {}
    for thread in recording.threads:
        same = slots.setdefault((thread.rank, thread.processor), [])
        same.insert(0 if thread.span.number == thread.processor else len(same), thread)

    def columns_of(thread: RecordedThread) -> Columns:
        alone = threads[thread.rank] == 1
        return thread_columns(thread, regions, tables[id(thread.process)], comms, alone=alone)

    parts = [join_columns(columns_of(first), [*map(columns_of, others)]) for first, *others in slots.values()]
    columns: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    columns["time_s"] = (columns["time_s"] - begin_ns(recording)) / 1e9
    first = recording.processes[0]
    trace = Trace(
        program=name_program(first),
        tool="gapwatch",
        locations=tuple(
            Location(f"{thread.rank}.{thread.processor}", thread.rank, thread.processor, thread.process.host)
            for thread, *_ in slots.values()
        ),
        regions=regions.regions,
        communicators=comms.members,
        files=tuple(files),
        first=np.cumsum([0, *(len(part["kind"]) for part in parts)]).astype(np.int64),
        **columns,
        notes=trace_notes(recording),
        cpu_timed=True,
    )
    return meet_in_calls(trace)
