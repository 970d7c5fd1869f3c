"""What is to be said about the quality of a Paraver trace that could be read."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.records import Note


@dataclass(frozen=True, slots=True)
class Flaws:
    """What was found wanting, as counts or names.

    ``undefined`` events have values without a name, ``unlisted`` ones types without; ``unopened`` ends of calls lack
    a beginning, ``unclosed`` beginnings an end; ``strays`` ends of messages lie in no call; ``strangers`` are
    collectives of unknown communicators; ``crossing`` names event types of the user's own that do not enclose calls;
    ``counters`` counts values of hardware counters; ``others`` records of kinds that are not read. ``short_s``
    seconds are missing at the end, ``running`` threads do not end, ``unlike`` threads have other times in calls than in
    states; ``missing`` communicators are announced, but do not stand there.
    """

    by_states: bool
    names_cut: bool
    simulated: bool
    undefined: int
    unlisted: int
    unopened: int
    unclosed: int
    strays: int
    strangers: int
    crossing: tuple[str, ...]
    counters: int
    others: int
    short_s: float
    running: int
    unlike: int
    missing: int


def notes(flaws: Flaws) -> tuple[Note, ...]:
    """Return a note for each kind of flaw that occurs."""
    crossing = ", ".join(flaws.crossing)
    found = (
        (
            flaws.by_states,
            0.3,
            "calls not named",
            "no .pcf file beside the trace names its calls; they are told from the states of the threads, "
            "without phases",
        ),
        (flaws.names_cut, 0.1, "names cut off", "the .pcf file with the names is not complete"),
        (flaws.short_s > 0, 0.4, "trace cut off", f"the last {flaws.short_s:.6f} s of the trace are missing"),
        (flaws.running, 0.2, "ends missing", f"{flaws.running} threads start, but do not end"),
        (flaws.undefined, 0.1, "names missing", f"{flaws.undefined} calls have no name in the .pcf file"),
        (
            0 if flaws.by_states else flaws.unlisted,
            0.05,
            "types missing",
            f"{flaws.unlisted} events are of types that the .pcf file does not list",
        ),
        (
            flaws.unopened + flaws.unclosed,
            0.1,
            "calls not whole",
            f"{flaws.unopened} ends of calls without a beginning, {flaws.unclosed} beginnings without an end",
        ),
        (flaws.strays, 0.05, "messages outside of calls", f"{flaws.strays} ends of messages lie in no call"),
        (
            flaws.strangers,
            0.05,
            "communicators unknown",
            f"{flaws.strangers} collectives belong to communicators that are not defined",
        ),
        (flaws.missing, 0.1, "communicators missing", f"{flaws.missing} communicators are announced, but not defined"),
        (
            flaws.unlike,
            0.1,
            "states and calls disagree",
            f"{flaws.unlike} threads spend other times in calls by their states than by their events",
        ),
        (len(crossing), 0.0, "events not used", f"these events do not enclose calls, and are left out: {crossing}"),
        (flaws.counters, 0.0, "counters not used", f"{flaws.counters} values of hardware counters are left out"),
        (flaws.others, 0.0, "records not used", f"{flaws.others} records of other kinds are left out"),
        (
            flaws.simulated,
            0.1,
            "simulated",
            "states that only a simulator writes: the times are those of a simulated machine",
        ),
    )
    return tuple(Note(name, text, penalty) for count, penalty, name, text in found if count)
