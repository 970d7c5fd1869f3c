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


_UNNAMED: Final = (
    "no .pcf file beside the trace names its calls; they are told from the states of the threads, without phases"
)
_SIMULATED: Final = "states that only a simulator writes: the times are those of a simulated machine"


def build_notes(flaws: TraceFlaws) -> tuple[Note, ...]:
    """Return a note for each kind of flaw that occurs."""
    crossing = ", ".join(flaws.crossing_types)
    found = (
        (flaws.by_states, 0.3, "calls not named", _UNNAMED),
        (flaws.names_cut, 0.1, "names cut off", "the .pcf file with the names is not complete"),
        (flaws.short_s > 0, 0.4, "trace cut off", f"the last {flaws.short_s:.6f} s of the trace are missing"),
        (flaws.running_threads, 0.2, "ends missing", f"{flaws.running_threads} threads start, but do not end"),
        (flaws.undefined_calls, 0.1, "names missing", f"{flaws.undefined_calls} calls have no name in the .pcf file"),
        (
            0 if flaws.by_states else flaws.unlisted_events, 0.05, "types missing",
            f"{flaws.unlisted_events} events are of types that the .pcf file does not list",
        ),
        (
            flaws.unopened_calls + flaws.unclosed_calls, 0.1, "calls not whole",
            f"{flaws.unopened_calls} ends of calls without a beginning, {flaws.unclosed_calls} "
            "beginnings without an end",
        ),
        (
            flaws.stray_messages, 0.05, "messages outside of calls",
            f"{flaws.stray_messages} ends of messages lie in no call",
        ),
        (
            flaws.unknown_communicators, 0.05, "communicators unknown",
            f"{flaws.unknown_communicators} collectives belong to communicators that are not defined",
        ),
        (
            flaws.missing_communicators, 0.1, "communicators missing",
            f"{flaws.missing_communicators} communicators are announced, but not defined",
        ),
        (
            flaws.unlike_threads, 0.1, "states and calls disagree",
            f"{flaws.unlike_threads} threads spend other times in calls by their states than by their events",
        ),
        (len(crossing), 0.0, "events not used", f"these events do not enclose calls, and are left out: {crossing}"),
        (
            flaws.counter_values, 0.0, "counters not used",
            f"{flaws.counter_values} values of hardware counters are left out",
        ),
        (flaws.other_records, 0.0, "records not used", f"{flaws.other_records} records of other kinds are left out"),
        (flaws.simulated, 0.1, "simulated", _SIMULATED),
    )  # fmt: skip
    return tuple(Note(name, text, penalty) for count, penalty, name, text in found if count)
