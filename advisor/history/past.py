"""The history as advice sees it: earlier runs of a program, and what its applied items have won."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from advisor.advice.past import Applied
from advisor.history import database
from advisor.history.items import Items
from advisor.history.runs import Runs
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.history.items import Item
    from advisor.model.records import Advice

#: So many runs of a program are looked at, the newest.
LATEST: Final = 100
#: The highest number that a run may have.
_LAST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StoredPast:
    """The past in the history at ``folder``; where there is none yet it is empty.

    Runs that were read from ``again`` are left out: what is read anew is not its own past. Of later runs than the one
    with the number ``until`` nothing is told, if it is given.
    """

    folder: Path
    again: tuple[Path, ...] = ()
    until: int = _LAST

    def advice(self, program: str, most: int = LATEST) -> tuple[Advice, ...]:
        """Return the slim advice on the newest runs of a program, the oldest first; raises ``StoreError``."""
        if not self._exists():
            return ()
        with closing(database.read(self.folder)) as connection:
            runs = Runs(connection)
            return runs.latest(program, most, runs.of_paths(self.again), self.until)

    def times(self, program: str, ranks: int, most: int = LATEST) -> tuple[tuple[str, float], ...]:
        """Return build and run time (s) of the newest runs of a program, of those on so many ranks whose build and time
        are known; raises ``StoreError``.
        """
        if not self._exists():
            return ()
        with closing(database.read(self.folder)) as connection:
            runs = Runs(connection)
            again = runs.of_paths(self.again)
            entries = runs.entries(program, most)
        return tuple(
            (one.build, one.actual_s)
            for one in entries
            if one.ranks == ranks and one.build is not None and one.actual_s is not None
            if one.number not in again and one.number <= self.until
        )

    def won(self, program: str) -> dict[str, tuple[float, ...]]:
        """Return, for each action that was applied, the shares of its ceiling that it has won; raises ``StoreError``.

        The ceiling is that of the run after which the item was applied, or what was promised where that run is gone.
        """
        if not self._exists():
            return {}
        found: dict[str, tuple[float, ...]] = {}
        with closing(database.read(self.folder)) as connection:
            runs, items = Runs(connection), Items(connection)
            for item in items.of(program) if items.have_won(program) else ():
                ceiling_s = _ceiling(item, runs)
                if item.realised_s is not None and ceiling_s:
                    found[item.action] = (*found.get(item.action, ()), item.realised_s / ceiling_s)
        return found

    def as_it_stands(self, advice: Advice) -> Advice:
        """Return ``advice`` with the state of each item as the history has it; raises ``StoreError``."""
        if not self._exists():
            return advice
        with closing(database.read(self.folder)) as connection:
            states = {item.fingerprint: item.state for item in Items(connection).of(advice.profile.program)}
        items = tuple(replace(one, state=states.get(one.fingerprint, one.state)) for one in advice.recommendations)
        return replace(advice, recommendations=items)

    def applied(self) -> tuple[Applied, ...]:
        """Return what was applied to any program, with what it won or lost there; raises ``StoreError``.

        Items that followed a run which is gone from the history are left out.
        """
        if not self._exists():
            return ()
        with closing(database.read(self.folder)) as connection:
            runs = Runs(connection)
            found = [_applied(item, runs) for item in Items(connection).won()]
        return tuple(one for one in found if one is not None)

    def _exists(self) -> bool:
        return (self.folder / database.NAME).exists()


def _applied(item: Item, runs: Runs) -> Applied | None:
    ceiling_s = _ceiling(item, runs)
    if item.realised_s is None or item.applied_after is None or not ceiling_s:
        return None
    try:
        return Applied(item.action, runs.advice(item.applied_after), item.realised_s, ceiling_s)
    except StoreError:
        return None


def _ceiling(item: Item, runs: Runs) -> float | None:
    """Return what an item could win at most when it was applied, in seconds."""
    if item.realised_s is None or item.applied_after is None:
        return None
    try:
        advised = runs.advice(item.applied_after).recommendations
    except StoreError:
        return item.promised_s
    return next((one.ceiling_s for one in advised if one.fingerprint == item.fingerprint), item.promised_s)
