"""What is to be said about the quality of a profile of TAU that could be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from advisor.model.lists import join_clauses
from advisor.model.records import Note

if TYPE_CHECKING:
    from advisor.formats.tau.run_files import TauRun

_SHOWN: Final = 3
#: Fewer samples than this tell hardly anything about where time goes.
_FEW: Final = 100


def note_files(run: TauRun) -> Iterator[Note]:
    """Yield notes about files that could not be read or lack something."""
    if run.damage:
        share = len(run.damage) / len(run.places)
        shown = join_clauses([*map(str, run.damage.values())], _SHOWN)
        text = f"{len(run.damage)} of {len(run.places)} threads are left out: {shown}"
        yield Note("damaged profiles", text, 0.1 + 0.5 * share)
    if run.negative:
        yield Note("times below zero", "some times are a little less than nothing and were taken as nothing", 0.02)


def note_contradictions(run: TauRun, found: Sequence[tuple[int, str]]) -> Iterator[Note]:
    """Yield a note about what a profile says twice and not the same; ``found`` are processors and texts."""
    kept = [(number, text) for number, text in found if number not in run.damage]
    if not kept:
        return
    places = [f"profile.{'.'.join(map(str, run.places[number]))}: {text}" for number, text in kept]
    yield Note("contradictions in the profile", f"{len(kept)}: {join_clauses(places, _SHOWN)}", 0.3)


def note_names(groups: Sequence[frozenset[str]], names: Sequence[str], folded: int) -> Iterator[Note]:
    """Yield notes about functions that were not measured in full."""
    disabled = [
        name
        for name, group in zip(names, groups, strict=True)
        if "TAU_DISABLE" in group or name.endswith("[THROTTLED]")
    ]
    if disabled:
        text = f"TAU stopped timing {len(disabled)} short functions: from then on their time is in their callers"
        yield Note("functions not timed", text, 0.0, "TAU_THROTTLE=0 mpirun …")
    if folded:
        yield Note("functions folded", f"{folded} functions and call paths beyond the limit have no row", 0.1)


def note_others(
    *, samples: float, silent: Sequence[str], mixed: bool, sound: bool, wall: bool, shared_cpu: bool
) -> Iterator[Note]:
    """Yield the remaining notes; ``silent`` are the threads whose calls have no sizes that TAU always records."""
    if samples:
        text = f"{samples:.0f} samples divide the time of timers among functions: times of functions are estimates"
        yield Note("sampled functions", text, 0.05 if samples < _FEW else 0.0, "TAU_EBS_PERIOD=1000 tau_exec -ebs …")
    if silent:
        text = f"the files of {len(silent)} threads end without user events although they communicate ({silent[0]})"
        yield Note("sizes of messages missing", text, 0.05)
    if mixed:
        text = "profiles lie beside the folders MULTI__…: they are of another run and were left alone"
        yield Note("profiles of another run", text, 0.05)
    if not sound:
        yield Note("metadata not read", "the metadata are damaged: program, node and start are not known", 0.02)
    if shared_cpu:
        text = "threads that TAU did not see used CPU time: more of it was taken than time passed, so it is left out"
        yield Note("CPU times of several threads", text, 0.1, "OMP_TOOL=enabled tau_exec -T ompt -ompt mpirun …")
    if not wall:
        text = "no metric is wall time: nothing can be said about seconds"
        yield Note("no wall time", text, 0.3, "TAU_METRICS=TIME,CPU_TIME mpirun …")
