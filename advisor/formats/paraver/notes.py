"""What is to be said about the quality of a Paraver trace that could be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from advisor.model.records import Note


@dataclass(frozen=True, slots=True)
class TraceFlaws:
    """What was found wanting, as counts or names.

    ``undefined_calls`` events have values without a name, ``unlisted_events`` ones types without; ``unopened_calls``
    ends of calls lack a beginning, ``unclosed_calls`` beginnings an end; ``stray_messages`` ends of messages lie in no
    call; ``unknown_communicators`` are collectives of unknown communicators; ``crossing_types`` names event types of
    the user's own that do not enclose calls; ``counter_values`` counts values of hardware counters; ``other_records``
    records of kinds that are not read. ``short_s`` seconds are missing at the end, ``running_threads`` threads do not
    end, ``unlike_threads`` threads have other times in calls than in states; ``missing_communicators`` communicators
    are announced, but do not stand there.
    """

    by_states: bool
    names_cut: bool
    simulated: bool
    undefined_calls: int
    unlisted_events: int
    unopened_calls: int
    unclosed_calls: int
    stray_messages: int
    unknown_communicators: int
    crossing_types: tuple[str, ...]
    counter_values: int
    other_records: int
    short_s: float
    running_threads: int
    unlike_threads: int
    missing_communicators: int


_UNNAMED: Final = "no .pcf file names the calls; they are inferred from thread states, without phases"
_SIMULATED: Final = "only a simulator writes these states, so the times are of a simulated machine"


def build_notes(flaws: TraceFlaws) -> tuple[Note, ...]:
    """Return a note for each kind of flaw that occurs."""
    crossing = ", ".join(flaws.crossing_types)
    found = (
        (flaws.by_states, 0.3, "calls not named", _UNNAMED),
        (flaws.names_cut, 0.1, "names cut off", "the .pcf file that names the calls is truncated"),
        (flaws.short_s > 0, 0.4, "trace cut off", f"the trace lacks its last {flaws.short_s:.6f} s"),
        (flaws.running_threads, 0.2, "ends missing", f"threads that start but never end: {flaws.running_threads:,}"),
        (flaws.undefined_calls, 0.1, "names missing", f"calls missing in the .pcf file: {flaws.undefined_calls:,}"),
        (
            0 if flaws.by_states else flaws.unlisted_events, 0.05, "types missing",
            f"events of types that the .pcf file does not list: {flaws.unlisted_events:,}",
        ),
        (
            flaws.unopened_calls + flaws.unclosed_calls, 0.1, "calls not whole",
            f"calls without a begin event: {flaws.unopened_calls:,}, without an end event: {flaws.unclosed_calls:,}",
        ),
        (
            flaws.stray_messages, 0.05, "messages outside of calls",
            f"sends and receives outside any call: {flaws.stray_messages:,}",
        ),
        (
            flaws.unknown_communicators, 0.05, "communicators unknown",
            f"collectives on undefined communicators: {flaws.unknown_communicators:,}",
        ),
        (
            flaws.missing_communicators, 0.1, "communicators missing",
            f"communicators announced but not defined: {flaws.missing_communicators:,}",
        ),
        (
            flaws.unlike_threads, 0.1, "states and calls disagree",
            f"threads whose states and events disagree on the time in calls: {flaws.unlike_threads:,}",
        ),
        (len(crossing), 0.0, "events not used", f"ignored, because they do not enclose calls: {crossing}"),
        (
            flaws.counter_values, 0.0, "counters not used",
            f"hardware counter values ignored: {flaws.counter_values:,}",
        ),
        (flaws.other_records, 0.0, "records not used", f"records of other kinds ignored: {flaws.other_records:,}"),
        (flaws.simulated, 0.1, "simulated", _SIMULATED),
    )  # fmt: skip
    return tuple(Note(name, text, penalty) for count, penalty, name, text in found if count)
