"""Several recordings of one run -> one Profile: the leader, additions and contradictions.

The recording with phases and waiting leads: its times stand. The others fill in what it lacks (counts, I/O seconds, CPU
times) and what is known about the run; where two measured the same and disagree, that is reported and the leader's
stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from advisor.analysis.merging.runs import match_processors, recording_weight
from advisor.model.records import CAUSE_CATEGORIES, Causes, FloatArray, IntArray, Note, Phase, Profile, Region
from advisor.model.units import format_seconds

#: Run times differ by this share and by this many seconds because tools begin and end at different points.
SHARE: Final = 0.1
SECONDS: Final = 0.1
PENALTY: Final = 0.1
_COMPARED: Final = {"cores": "cores", "language": "language", "machine": "machine", "ranks_expected": "ranks started"}

#: What one recording may know about a run and another may not.
_STATED: Final = ("build", "started", "machine", "cores", "language", "executable", "ranks_expected", "job")
#: A region with this share of all work is all that the leader can tell apart.
_ALL: Final = 0.95
_IO: Final = CAUSE_CATEGORIES.index("io")
#: Phases with less of the I/O than this get none of its causes.
_LEAST: Final = 0.01


def merge_recordings(recordings: Sequence[Profile]) -> Profile:
    """Return the profile of one run from its ``recordings``, at least one; of one alone that itself.

    The leader's regions keep their places; regions that only others know follow, in no phase.
    """
    leader, *others = sorted(recordings, key=recording_weight, reverse=True)
    found = leader
    for other in others:
        found = _add_recording(found, other)
    if not others:
        return found
    readers = "+".join(dict.fromkeys(recording.reader for recording in (leader, *others)))
    text = f"times of {leader.reader}" + "".join(f"; {_describe_added(leader, other)}" for other in others)
    return replace(found, reader=readers, notes=(*found.notes, Note("merged", text)))


def _add_recording(leader: Profile, other: Profile) -> Profile:
    if _accounts_for_command(leader, other):
        # `leader` with what is known of the whole command that ran it
        beside = format_seconds(max(other.actual_s - leader.actual_s, 0.0))
        text = f"the whole command took {format_seconds(other.actual_s)}, {beside} beside what {leader.reader} recorded"
        return replace(
            leader, parameters={**other.parameters, **leader.parameters}, notes=(*leader.notes, Note("command", text))
        )
    found = replace(
        leader,
        program=leader.program or other.program,
        actual_s=leader.actual_s if leader.has_run_time else other.actual_s,
        paradigms=tuple(dict.fromkeys((*leader.paradigms, *other.paradigms))),
        parameters={**other.parameters, **leader.parameters},
        notes=tuple(
            dict.fromkeys((*leader.notes, *find_contradictions(leader, other), *_notes_without_penalty(other)))
        ),
        **{name: getattr(leader, name) or getattr(other, name) for name in _STATED},
    )
    columns = match_processors(leader, other)
    if columns is None:
        return replace(found, notes=(*found.notes, _partial_note(leader, other)))
    return add_counts(add_times(found, other, columns), other, columns)


def _accounts_for_command(leader: Profile, other: Profile) -> bool:
    """Return whether ``other`` says nothing but what the whole command took that ran the leader's program."""
    return leader.command is None and other.command is not None


def _notes_without_penalty(other: Profile) -> tuple[Note, ...]:
    """Return what a recording says about itself, without penalty: its times do not decide."""
    return tuple(replace(note, text=f"{other.reader}: {note.text}", penalty=0.0) for note in other.notes)


def _partial_note(leader: Profile, other: Profile) -> Note:
    """Return the note on a recording of other processors than the leader's."""
    who = f"{other.reader} recorded {len(other.processors)} of {len(leader.processors)} processors"
    return Note("partial recording", f"{who}; its counts and times are left out", 0.0, "record all ranks with it")


def _describe_added(leader: Profile, other: Profile) -> str:
    """Return what a recording added, in words."""
    if _accounts_for_command(leader, other):
        return f"the command of {other.reader}"
    if match_processors(leader, other) is None:
        return f"nothing of {other.reader}"
    what = [
        name
        for name, part in (("counts", find_new_counts(leader, other)), ("times", has_new_times(leader, other)))
        if part
    ]
    return f"{' and '.join(what) or 'nothing'} of {other.reader}"


def find_contradictions(leader: Profile, other: Profile) -> tuple[Note, ...]:
    """Return a note for everything that two recordings both know and do not agree on."""
    return tuple(Note("contradiction", text, PENALTY) for text in _iterate_contradictions(leader, other))


def _iterate_contradictions(leader: Profile, other: Profile) -> Iterator[str]:
    for name, words in _COMPARED.items():
        first, second = getattr(leader, name), getattr(other, name)
        if first is not None and second is not None and first != second:
            yield f"{words}: {leader.reader} says {first}, {other.reader} {second}"
    if not (leader.has_run_time and other.has_run_time):
        return
    if abs(leader.actual_s - other.actual_s) > SECONDS + SHARE * leader.actual_s:
        first, second = format_seconds(leader.actual_s), format_seconds(other.actual_s)
        yield f"the run took {first} for {leader.reader}, {second} for {other.reader}; they may be different runs"


def find_new_counts(leader: Profile, other: Profile) -> tuple[str, ...]:
    """Return the counts that only ``other`` has."""
    return tuple(name for name in other.counts if name not in leader.counts)


def add_counts(leader: Profile, other: Profile, columns: IntArray) -> Profile:
    """Return ``leader`` with the counts that only ``other`` has; ``columns`` (Q,) are its processors there.

    Regions are the same by name, and by file where both know one. Functions that the leader does not know go to the
    region that holds all of its work, if one does, else they follow as regions in no phase.
    """
    names = find_new_counts(leader, other)
    if not names:
        return leader
    rows, extra = _match_regions(leader, other)
    regions = (*leader.regions, *extra)
    grown = {name: np.vstack((table, np.zeros((len(extra), len(columns))))) for name, table in leader.counts.items()}
    for name in names:
        grown[name] = np.zeros((len(regions), len(columns)))
        np.add.at(grown[name], rows, other.counts[name][:, columns])
    return replace(leader, regions=regions, counts=grown)


def _match_regions(leader: Profile, other: Profile) -> tuple[IntArray, tuple[Region, ...]]:
    """Return the leader's region of each of the other's, and the regions to add for those without one."""
    # the region that holds nearly all of the leader's working time, None where several share it
    work: FloatArray = leader.sum_by_region("wall_s").sum(axis=1)
    for name in ("wait_s", "sync_s", "transfer_s", "io_s"):
        work -= leader.sum_by_region(name).sum(axis=1)
    largest = int(work.argmax())
    everything = largest if work[largest] >= _ALL * work.sum() > 0 else None
    places: dict[str, list[int]] = {}
    for number, region in enumerate(leader.regions):
        places.setdefault(region.name, []).append(number)
    rows: list[int] = []
    extra: list[Region] = []
    for region in other.regions:
        found = [n for n in places.get(region.name, ()) if _is_same_file(leader.regions[n], region)]
        if found:
            rows.append(next((n for n in found if leader.regions[n].threaded == region.threaded), found[0]))
        elif everything is not None:
            rows.append(everything)
        else:
            rows.append(len(leader.regions) + len(extra))
            extra.append(region)
    return np.array(rows, dtype=np.int64), tuple(extra)


def _is_same_file(one: Region, other: Region) -> bool:
    if one.file is None or other.file is None:
        return True
    return one.file.rsplit("/", 1)[-1] == other.file.rsplit("/", 1)[-1]


# Times of other recordings are totals per processor, or per region and processor, so where they fell in the run is
# estimated: like the time in which the processor computed. That moves seconds between computation and I/O; the work of
# processors stays the same.


def has_new_times(leader: Profile, other: Profile) -> bool:
    """Return whether ``other`` recorded I/O that the leader lacks."""
    return (
        leader.has_measure("wall_s")
        and other.has_measure("io_s")
        and not _sum_measure(leader, "io_s")
        and bool(_sum_measure(other, "io_s"))
    )


def add_times(leader: Profile, other: Profile, columns: IntArray) -> Profile:
    """Return ``leader`` with the I/O that only ``other`` saw; ``columns`` (Q,) are its processors there.

    Each processor's I/O seconds are laid over its computing time in proportion, at most all of it, and its causes
    over the phases likewise.
    """
    if not has_new_times(leader, other):
        return leader
    seconds = sum((phase.arrays["io_s"].sum(axis=(0, 2)) for phase in other.phases), np.zeros(1))[columns]
    computing = [_computing_seconds(phase) for phase in leader.phases]
    room = sum((cells.sum(axis=(0, 2)) for cells in computing), np.zeros(1))
    share = np.divide(np.minimum(seconds, room), room, out=np.zeros_like(room), where=room > 0)
    phases = tuple(
        replace(phase, arrays=_with_io(phase, cells * share[None, :, None]))
        for phase, cells in zip(leader.phases, computing, strict=True)
    )
    of_phase = np.array([cells.sum(axis=(0, 2)) for cells in computing])
    shares = np.divide(of_phase, room, out=np.zeros_like(of_phase), where=room > 0)
    found = replace(leader, phases=phases, status={**leader.status, "io_s": "estimated"})
    return distribute_io_causes(found, other, columns, shares)


def _with_io(phase: Phase, seconds: FloatArray) -> dict[str, FloatArray]:
    """Return the arrays of a phase with ``seconds`` of I/O, which were taken for computation before."""
    arrays = {**phase.arrays, "io_s": seconds}
    if "cpu_s" in arrays and "os_s" in arrays:
        arrays["os_s"] = arrays["os_s"] - seconds
    return arrays


def _computing_seconds(phase: Phase) -> FloatArray:
    """Return the seconds of a phase in which nothing else is known to have happened, shaped as its arrays."""
    cells = phase.arrays["wall_s"].copy()
    for name in ("wait_s", "sync_s", "transfer_s"):
        if name in phase.arrays:
            cells -= phase.arrays[name]
    return np.maximum(cells, 0.0)


def _sum_measure(profile: Profile, name: str) -> float:
    return sum(float(phase.arrays[name].sum()) for phase in profile.phases if name in phase.arrays)


def distribute_io_causes(leader: Profile, other: Profile, columns: IntArray, shares: FloatArray) -> Profile:
    """Return ``leader`` with the I/O causes of ``other``; the calls follow as regions in no phase.

    ``columns`` (Q,) are the leader's processors in ``other``; ``shares`` (phases, Q) says how much of a processor's I/O
    falls into each phase.
    """
    causes = other.causes
    mine = np.flatnonzero(causes.category == _IO) if causes is not None else np.zeros(0, dtype=np.int64)
    if causes is None or not len(mine):
        return leader
    used, call = np.unique(causes.call[mine], return_inverse=True)
    place = np.full(len(other.processors) + 1, -1)
    place[columns] = np.arange(len(columns))
    processor = place[causes.processor[mine]]
    weights = _phase_weights(shares)[:, processor]
    phase, row = np.nonzero(weights)
    found = _scale_rows(causes, mine[row], weights[phase, row])
    found |= {"phase": phase, "call": len(leader.regions) + call[row], "processor": processor[row]}
    return replace(
        leader,
        regions=(*leader.regions, *(other.regions[number] for number in used.tolist())),
        counts={name: np.vstack((table, np.zeros((len(used), len(columns))))) for name, table in leader.counts.items()},
        causes=_join_causes(leader.causes, causes, found),
    )


def _phase_weights(shares: FloatArray) -> FloatArray:
    """Return the shares (phases, Q + 1), small ones left out, adding up to one; the last column is of no processor."""
    every = np.column_stack((shares, shares.mean(axis=1)))
    kept = np.where(every >= np.minimum(_LEAST, every.max(axis=0)), every, 0.0)
    total = kept.sum(axis=0)
    weights: FloatArray = np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)
    return weights


def _scale_rows(causes: Causes, rows: IntArray, weight: FloatArray) -> dict[str, Any]:
    """Return the columns of ``rows`` with their amounts times ``weight``; who called them is not known."""
    nothing = np.full(len(rows), -1)
    return {
        "category": causes.category[rows],
        "kind": causes.kind[rows],
        "caller": nothing,
        "partner": nothing,
        "target": causes.target[rows],
        "size_class": causes.size_class[rows],
        "seconds": causes.seconds[rows] * weight,
        "count": np.rint(causes.count[rows] * weight).astype(np.int64),
        "bytes": np.rint(causes.bytes[rows] * weight).astype(np.int64),
    }


def _join_causes(own: Causes | None, theirs: Causes, found: dict[str, Any]) -> Causes:
    """Return the causes of both, with the kinds and targets of theirs behind those of the own."""
    kinds = own.kinds if own is not None else ()
    targets = own.targets if own is not None else ()
    found["kind"] = found["kind"] + len(kinds)
    found["target"] = np.where(found["target"] < 0, -1, found["target"] + len(targets))
    columns = {
        name: values if own is None else np.concatenate((getattr(own, name), values)) for name, values in found.items()
    }
    return Causes(kinds=(*kinds, *theirs.kinds), targets=(*targets, *theirs.targets), **columns)
