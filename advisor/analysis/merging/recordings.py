"""Several recordings of one run -> one Profile: the leader, additions and contradictions.

The recording with phases and waiting leads: its times stand. The others fill in what it lacks (``counts``, ``times``)
and what is known about the run; where two measured the same and disagree, that is reported and the leader's stands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.analysis.merging import counts, times
from advisor.analysis.merging.runs import match_processors, recording_weight
from advisor.model.records import Note
from advisor.model.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.model.records import Profile

#: Run times differ by this share and by this many seconds because tools begin and end at different points.
SHARE: Final = 0.1
SECONDS: Final = 0.1
PENALTY: Final = 0.1
_COMPARED: Final = {"cores": "cores", "language": "language", "machine": "machine", "ranks_expected": "ranks started"}

#: What one recording may know about a run and another may not.
_STATED: Final = ("build", "started", "machine", "cores", "language", "executable", "ranks_expected", "job")


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
    """Return ``leader`` with what ``other`` adds."""
    if _accounts_for_command(leader, other):
        return _add_command(leader, other)
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
    return counts.add_counts(times.add_times(found, other, columns), other, columns)


def _accounts_for_command(leader: Profile, other: Profile) -> bool:
    """Return whether ``other`` says nothing but what the whole command took that ran the leader's program."""
    return leader.command is None and other.command is not None


def _add_command(leader: Profile, account: Profile) -> Profile:
    """Return ``leader`` with what is known of the whole command that ran it."""
    beside = format_seconds(max(account.actual_s - leader.actual_s, 0.0))
    text = f"the whole command took {format_seconds(account.actual_s)}, {beside} beside what {leader.reader} recorded"
    return replace(
        leader, parameters={**account.parameters, **leader.parameters}, notes=(*leader.notes, Note("command", text))
    )


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
        for name, part in (
            ("counts", counts.find_new_counts(leader, other)),
            ("times", times.has_new_times(leader, other)),
        )
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
