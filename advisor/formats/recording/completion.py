"""What a recording adds to the profile of its events: who ran, memory and switches, and where computation went."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.disturbance import BOUND_CORES, SPEED_SHARE, UNREPEATED
from advisor.formats.recording.delay import set_aside_delay
from advisor.formats.recording.formatted_io import count_formatting
from advisor.formats.recording.idle_threads import leave_out_idle_threads
from advisor.formats.recording.locks import count_locks
from advisor.formats.recording.recorded_threads import map_processors
from advisor.formats.recording.repeated_data import count_repeated_data
from advisor.formats.recording.sampling import divide_computation
from advisor.formats.recording.sequential_waits import count_sequential_waits
from advisor.formats.recording.tasks import count_tasks
from advisor.trace.recordings.families import name_program
from advisor.trace.recordings.passes import NAME as PASSES_FILE
from advisor.trace.recordings.passes import read_conclusions

if TYPE_CHECKING:
    from advisor.formats.recording.contents import Recording
    from advisor.model.records import FloatArray, Profile
    from advisor.trace.recordings.processes import Process


#: Libraries that read OMP_NUM_THREADS and the like: runtimes of OpenMP, and of linear algebra.
_HEEDING: Final = re.compile(r"lib(?:gomp|i?omp|mkl|openblas|blis|flexiblas|armpl|sci_)", re.IGNORECASE)


def complete_profile(profile: Profile, recording: Recording) -> Profile:
    """Return the profile with what the recorder knows beside the events, without threads that only start others."""
    first = recording.processes[0]
    showed = read_conclusions(recording.path)
    profile = set_aside_delay(leave_out_idle_threads(divide_computation(profile, recording), recording), recording)
    return replace(
        profile,
        cores=first.cores or None,
        counts={
            **profile.counts,
            **_counts(profile, recording),
            **_count_unrepeated(profile, showed.unrepeated_s),
            **count_tasks(profile, recording),
            **count_formatting(profile, recording),
            **count_locks(profile, recording),
            **count_sequential_waits(profile, recording),
            **count_repeated_data(profile, recording),
        },
        language="python" if first.interpreter.startswith("Python") else profile.language,
        executable=first.program if name_program(first) == PurePath(first.program).name else None,
        started=_format_start(first),
        parameters={**profile.parameters, **_parameters(recording)},
        job=(recording.command.job or None) if recording.command else None,
        ranks_expected=max(process.ranks for process in recording.processes),
        notes=(*profile.notes, *showed.notes),
    )


def _counts(profile: Profile, recording: Recording) -> dict[str, FloatArray]:
    """Return what the kernel counted for each process, in the row of the program and the column of its first thread.

    Processes that follow each other on a processor add up, but for what they had at a time.
    """
    row = next((number for number, region in enumerate(profile.regions) if region.name == profile.program), 0)
    counted = ("memory.peak_resident_B", "faults.minor", "faults.major", "switches.voluntary", "switches.involuntary")
    names = (*counted, BOUND_CORES)
    found = {name: np.zeros((len(profile.regions), len(profile.processors))) for name in names}
    columns = map_processors(profile)
    first: dict[int, int | None] = {}
    for thread in recording.threads:
        first.setdefault(id(thread.process), columns.get((thread.rank, thread.processor)))
    for process in recording.processes:
        column = first.get(id(process))
        if column is None or process.begin is None or process.end is None:
            continue
        begin, end = process.begin, process.end
        values = (
            end.peak_resident_B,
            end.minor_faults - begin.minor_faults,
            end.major_faults - begin.major_faults,
            end.voluntary - begin.voluntary,
            end.involuntary - begin.involuntary,
            len(process.affinity),
        )
        for name, value in zip(names, values, strict=True):
            before = found[name][row, column]
            found[name][row, column] = before + value if name in counted[1:] else max(before, value)
    return found


def _count_unrepeated(profile: Profile, unrepeated_s: float | None) -> dict[str, FloatArray]:
    """Return the imbalance that need not come back: what a second run told, else what equal work may differ by."""
    if len(profile.processors) == 1:
        return {}
    computed_s = sum(float(phase.arrays["cpu_s"].sum()) for phase in profile.phases if "cpu_s" in phase.arrays)
    table = np.zeros((len(profile.regions), len(profile.processors)))
    table[0, 0] = SPEED_SHARE * computed_s / len(profile.processors) if unrepeated_s is None else unrepeated_s
    return {UNREPEATED: table}


def _format_start(process: Process) -> str | None:
    """Return when a process began to be recorded, in local time."""
    try:
        return datetime.fromtimestamp(process.real_s, UTC).astimezone().isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return None


def _parameters(recording: Recording) -> dict[str, str]:
    """Return how the run was started; settings of OpenMP only where a library that heeds them was there."""
    command, mpi = recording.command, recording.processes[0].mpi
    objects = {PurePath(one.path).name for process in recording.processes for one in process.objects.values()}
    if command is not None and objects and not any(map(_HEEDING.match, objects)):
        command = replace(command, settings=())
    found = {"command": command.line, "directory": command.directory} if command else {}
    if command is not None and command.input:
        found["input"] = command.input
    if (recording.path / PASSES_FILE).is_file():
        found["passes"] = PASSES_FILE
    return {**found, **({"MPI library": mpi} if mpi else {})}
