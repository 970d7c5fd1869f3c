"""Adding a run to the history: the run itself, and what it means for the life of the items of its program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from advisor.history.dialect import HistoryConnection, StoreLost
from advisor.history.items import ItemStore
from advisor.history.runs import ProfileUnit, RunEntry, RunStore
from advisor.model.errors import StoreError
from advisor.model.run_points import is_same_point

if TYPE_CHECKING:
    from datetime import datetime

    from advisor.model.records import Advice

#: Among so many runs of a program, the latest, the build before is looked for.
_LATEST: Final = 50


def store_run(
    connection: HistoryConnection,
    advice: Advice,
    units: Sequence[ProfileUnit],
    now: datetime,
    applied: Sequence[tuple[str, str | None]] = (),
    reason: str = "said by a commit of",
) -> int:
    """Add a run, read from ``units``, inside the transaction that the caller opened, and return its number.

    ``applied`` are the actions, each with its region (None: anywhere), that its build carries out, and
    ``reason`` says who says so. Items change only if no newer run of the program has told more of them; a simulated run
    tells nothing of them.
    """
    runs, items = RunStore(connection), ItemStore(connection)
    profile = advice.profile
    if applied:
        items.apply_actions(profile.program, applied, f"{reason} build {profile.build}", now)
    number = runs.add_run(advice, units, now)
    entries = runs.list_entries(profile.program, _LATEST)
    if entries[-1].number == number and not profile.is_simulated:
        _update_items(items, runs, number, advice, entries[:-1], now)
    return number


def _update_items(
    items: ItemStore, runs: RunStore, number: int, advice: Advice, entries: Sequence[RunEntry], now: datetime
) -> None:
    """Take the advice on a run into the life of its items; ``entries`` are the runs before it, the oldest first."""
    asked = any(item.applied_after is not None for item in items.items_of_program(advice.profile.program))
    build, ranks = advice.profile.build, advice.profile.ranks

    @cache
    def is_alike(other: int) -> bool:
        """Return whether an earlier run was at the same point; one that is gone counts as if it were."""
        try:
            return is_same_point(runs.load_summary(other).profile, advice.profile)
        except StoreLost:
            raise
        except StoreError:
            return True

    alike = [entry for entry in entries if entry.ranks == ranks and is_alike(entry.number)] if asked else []
    earlier = [one for one in alike if one.build != build]
    before = [one for one in earlier if one.build == earlier[-1].build]
    repeats = [
        one for one in alike if before and (one.build, one.ranks) == (build, ranks) and one.number > before[-1].number
    ]
    items.update_items(
        number,
        advice,
        [runs.load_summary(one.number) for one in before],
        now,
        repeats=[runs.load_summary(repeat.number) for repeat in repeats],
        since=before[0].number if before else 0,
        is_same_point=is_alike,
    )
