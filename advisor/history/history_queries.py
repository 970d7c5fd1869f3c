"""The history as advice sees it: earlier runs of a program, and what its applied items have won."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.advice.earlier_runs import AppliedAction
from advisor.history import access
from advisor.history.dialect import HistoryConnection, StoreLost
from advisor.history.items import Item, ItemStore
from advisor.history.runs import LAST_NUMBER, LatestRuns, RunStore
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from advisor.history.location import HistoryLocation
    from advisor.model.records import Advice

#: So many runs of a program are looked at, the newest.
LATEST: Final = 100


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """The past in the history at ``location``; where there is none yet it is empty.

    Runs that were read from ``again`` are left out: what is read anew is not its own past. Of later runs than the one
    with the number ``until`` nothing is told, if it is given. What of it is damaged, and left out, ``problems`` say.
    """

    location: HistoryLocation
    again: tuple[Path, ...] = ()
    until: int = LAST_NUMBER
    held: HistoryConnection | None = field(default=None, compare=False)
    problems: list[str] = field(default_factory=list, compare=False)

    @contextmanager
    def hold_open(self) -> Iterator[StoredHistory]:
        """Return the history, opened once for all queries; unchanged if it cannot be opened."""
        with ExitStack() as stack:
            held = self.held
            if held is None and self._has_database():
                with suppress(StoreError):  # who asks is told
                    held = stack.enter_context(closing(access.open_read_only(self.location)))
            yield replace(self, held=held)

    @contextmanager
    def _read(self) -> Iterator[HistoryConnection]:
        """Give a connection; raises ``StoreError``, also for damage met later."""
        if self.held is None:
            with access.read_history(self.location) as connection:
                yield connection
            return
        with access.explain_errors(self.location):
            yield self.held

    def load_advice(self, program: str, most: int = LATEST) -> tuple[Advice, ...]:
        """Return the slim advice on the newest runs of a program, the oldest first; raises ``StoreError``."""
        return self._load_latest(RunStore.load_latest_advice, program, most)

    def load_summaries(self, program: str, most: int = LATEST) -> tuple[Advice, ...]:
        """Return summaries of the same advice (``run_packing``), in a fraction of the time; raises ``StoreError``."""
        return self._load_latest(RunStore.load_latest_summaries, program, most)

    def _load_latest(self, load: Callable[..., LatestRuns], program: str, most: int) -> tuple[Advice, ...]:
        if not self._has_database():
            return ()
        with self._read() as connection:
            runs = RunStore(connection)
            found = load(runs, program, most, runs.runs_of_paths(self.again), self.until)
        if found.problem is not None and found.problem not in self.problems:
            self.problems.append(found.problem)
        return found.advice

    def load_run_times(self, program: str, ranks: int, most: int = LATEST) -> tuple[tuple[str, float], ...]:
        """Return build and run time (s) of the newest runs of a program, of those on so many ranks whose build and time
        are known; raises ``StoreError``.
        """
        if not self._has_database():
            return ()
        with self._read() as connection:
            runs = RunStore(connection)
            again = runs.runs_of_paths(self.again)
            entries = runs.list_entries(program, most)
        return tuple(
            (one.build, one.actual_s)
            for one in entries
            if one.ranks == ranks and one.build is not None and one.actual_s is not None
            if one.number not in again and one.number <= self.until
        )

    def load_won_shares(self, program: str) -> dict[str, tuple[float, ...]]:
        """Return, for each action that was applied, the shares of its ceiling that it has won; raises ``StoreError``.

        The ceiling is that of the run after which the item was applied, or what was promised where that run is gone.
        """
        if not self._has_database():
            return {}
        found: dict[str, tuple[float, ...]] = {}
        with self._read() as connection:
            runs, items = RunStore(connection), ItemStore(connection)
            for item in items.items_of_program(program) if items.has_realised_gains(program) else ():
                ceiling_s = _find_ceiling(item, runs)
                if item.realised_s is not None and ceiling_s:
                    found[item.action] = (*found.get(item.action, ()), item.realised_s / ceiling_s)
        return found

    def update_item_states(self, advice: Advice) -> Advice:
        """Return ``load_advice`` with the state of each item as the history has it; raises ``StoreError``."""
        if not self._has_database():
            return advice
        with self._read() as connection:
            states = {
                item.fingerprint: item.state for item in ItemStore(connection).items_of_program(advice.profile.program)
            }
        items = tuple(replace(one, state=states.get(one.fingerprint, one.state)) for one in advice.recommendations)
        return replace(advice, recommendations=items)

    def find_applied_actions(self) -> tuple[AppliedAction, ...]:
        """Return what was applied to any program, with what it won or lost there; raises ``StoreError``.

        Items that followed a run which is gone from the history are left out.
        """
        if not self._has_database():
            return ()
        with self._read() as connection:
            runs = RunStore(connection)
            found = [_build_applied(item, runs) for item in ItemStore(connection).items_with_gains()]
        return tuple(one for one in found if one is not None)

    def _has_database(self) -> bool:
        return access.has_history(self.location)


def _build_applied(item: Item, runs: RunStore) -> AppliedAction | None:
    ceiling_s = _find_ceiling(item, runs)
    if item.realised_s is None or item.applied_after is None or not ceiling_s:
        return None
    try:
        return AppliedAction(item.action, runs.load_advice(item.applied_after), item.realised_s, ceiling_s)
    except StoreLost:
        raise
    except StoreError:
        return None


def _find_ceiling(item: Item, runs: RunStore) -> float | None:
    """Return what an item could win at most when it was applied, in seconds."""
    if item.realised_s is None or item.applied_after is None:
        return None
    try:
        advised = runs.load_summary(item.applied_after).recommendations
    except StoreLost:
        raise
    except StoreError:
        return item.promised_s
    return next((one.ceiling_s for one in advised if one.fingerprint == item.fingerprint), item.promised_s)
