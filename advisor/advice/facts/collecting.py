"""Facts about data that one rank collects from all others: by gathers, or by messages that all of them send to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts import event_rows
from advisor.advice.facts.source import FactSource, compute_share
from advisor.trace.counts import BYTES_TO_FIRST, TO_FIRST

if TYPE_CHECKING:
    from advisor.advice.facts.event_rows import EventRows
    from advisor.model.records import Profile

#: The first rank collects if all others send such a part of the bytes of all messages to it, and get no more than the
#: rest of that back.
_MAIN: Final = 0.5
#: The first rank hands work to the others if such a part of all messages is to it or from it, and it answers so many.
_ALONE: Final = 0.9
_ANSWERED: Final = 0.8


def _is_collected(profile: Profile) -> bool:
    """Return whether all other ranks send most of what they send to the first one, which keeps most of it."""
    to_first, sent = profile.counts.get(BYTES_TO_FIRST), profile.counts.get("bytes")
    if to_first is None or sent is None:
        return False
    rank = np.array([one.rank for one in profile.processors])
    taken, given = to_first[:, rank > 0].sum(), sent[:, rank == 0].sum()
    others = np.unique(rank[(to_first.sum(axis=0) > 0) & (rank > 0)])
    everybody = len(others) == len(np.unique(rank)) - 1 > 0
    return bool(everybody and taken - given >= _MAIN * taken and taken >= _MAIN * sent.sum())


def _select_collecting(source: FactSource, events: EventRows, *, sends: bool) -> EventRows:
    """Return the gathers, and messages to the first rank where it collects: if ``sends`` without its receives."""
    gathers, profile = events.select_rows("transfer", (), event_rows.GATHERS), source.profile
    if not _is_collected(profile):
        return gathers
    messages = events.select_rows("transfer", ("message",))
    causes, rows = messages.causes, messages.rows
    sending = events.calls[event_rows.SENDS][causes.call[rows]]
    most = profile.counts[TO_FIRST] > _MAIN * profile.counts["messages"]
    mine = sending & most[causes.call[rows], causes.processor[rows]]
    if not sends:
        rank = np.array([one.rank for one in profile.processors])
        mine |= ~sending & (rank[causes.processor[rows]] == 0)
    return type(events)(causes, events.calls, np.concatenate([gathers.rows, rows[mine]]))


def gather_share(source: FactSource) -> float | None:
    """Return the share of collecting in all transfer."""
    if source.events is None:
        return None
    mine = _select_collecting(source, source.events, sends=False)
    return compute_share(mine.seconds, source.events.select_rows("transfer").seconds)


def mean_gather_bytes(source: FactSource) -> float | None:
    """Return the bytes per call of who gives its data to the rank that collects."""
    return None if source.events is None else _select_collecting(source, source.events, sends=True).mean_bytes()


def count_gathers(source: FactSource) -> float | None:
    """Return the calls by which each rank gives its data away, in all iterations."""
    if source.family_events is None:
        return None
    return _select_collecting(source, source.family_events, sends=True).calls_per_processor()


def kept_share(source: FactSource) -> float | None:
    """Return which part of the bytes that one rank collects is not broadcast again; 0 without any."""
    if source.events is None:
        return None
    collected = _select_collecting(source, source.events, sends=True).sized_rows
    broadcast = source.events.select_rows("transfer", (), event_rows.BROADCASTS).sized_rows
    whole, back = (float(source.events.causes.bytes[rows.rows].sum()) for rows in (collected, broadcast))
    return compute_share(max(whole - back, 0.0), whole)


def count_answers(source: FactSource) -> float | None:
    """Return how often each rank asks the first one and gets an answer, in the whole run; 0 where others talk as well.

    Of two ranks every exchange looks like that: they count as nothing.
    """
    asked = _sum_asked(source.profile)
    return None if asked is None else asked[0] / asked[1]


def work_per_answer(source: FactSource) -> float | None:
    """Return the computation of those who ask for each answer; None where nobody does."""
    asked = _sum_asked(source.profile)
    if asked is None or not asked[0] or not source.is_work_known:
        return None
    rank = np.array([one.rank for one in source.profile.processors])
    return float(source.work[rank > 0].sum()) / asked[0]


def has_hub(profile: Profile) -> bool:
    """Return whether the first rank answers the others, who send nothing to each other: it hands out their work."""
    asked = _sum_asked(profile)
    return asked is not None and asked[0] > 0


def _sum_asked(profile: Profile) -> tuple[float, int] | None:
    """Return how many messages go to the first rank that it answers, and from how many; None without counts."""
    sent = profile.counts.get("messages")
    rank = np.array([one.rank for one in profile.processors])
    others = len(set(rank.tolist())) - 1
    if sent is None or others < 1:
        return None
    to_first = profile.counts.get(TO_FIRST, np.zeros_like(sent))
    asked, answered = float(to_first[:, rank > 0].sum()), float(sent[:, rank == 0].sum())
    alone = asked + answered >= _ALONE * float(sent.sum()) and min(asked, answered) >= _ANSWERED * max(asked, answered)
    return (asked if alone and others > 1 else 0.0), others
