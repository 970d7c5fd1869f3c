"""What the history holds of each program, as records for whoever shows it: a line of each, and all of one.

Runs are in order: by program, each with the build before it, and what changed since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.advice.earlier_runs import find_change, recall_summaries
from advisor.history import access
from advisor.history.file_states import FileStates, State
from advisor.history.history_queries import StoredHistory
from advisor.history.items import Item, ItemStore
from advisor.history.remarks import RemarkStore
from advisor.history.runs import RunEntry, RunStore

if TYPE_CHECKING:
    from advisor.analysis.comparison import Comparison
    from advisor.history.location import HistoryLocation
    from advisor.model.records import Advice


#: Runs of a program whose run times a line holds, and troubles that are listed.
MOST_RUN_TIMES: Final = 40
_TROUBLES: Final = 50
#: States of items that nobody has looked at yet.
_UNSEEN: Final = ("new", "back")


@dataclass(frozen=True, slots=True)
class ProgramSummary:
    """One program in a list: its newest run, the run times of the newest runs (s, the newest last), unseen items."""

    newest: RunEntry
    run_times: tuple[float | None, ...]
    new_items: int

    @property
    def program(self) -> str:
        """The name of the program."""
        return self.newest.program


@dataclass(frozen=True, slots=True)
class ProgramView:
    """The newest run of a program with the states of its items, the runs before it, and what changed since.

    ``earlier`` are summaries (``run_packing``); ``change`` is None where no other build is known; ``items`` are all of
    the program, those seen last first.
    """

    number: int
    advice: Advice
    earlier: tuple[Advice, ...]
    change: Comparison | None
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class FileOverview:
    """The files by state, what is in the way of some of them, and what the daemon said of itself."""

    counts: Mapping[State, int]
    troubles: tuple[tuple[str, State, str], ...]
    remarks: tuple[str, ...]


class HistoryViews:
    """The history at ``location``; each method reads it anew, and raises ``StoreError``. Threads may share it."""

    def __init__(self, location: HistoryLocation) -> None:
        self._location = location

    @property
    def has_history(self) -> bool:
        """Whether there is a history yet."""
        return access.has_history(self._location)

    def read_version(self) -> tuple[object, ...]:
        """Return what differs once a run was added or read again, or the state of an item changed."""
        if not self.has_history:
            return ()
        with access.read_history(self._location) as connection:
            runs = connection.execute("SELECT count(*), max(id), max(added) FROM runs").fetchone()
            steps = connection.execute("SELECT max(id) FROM steps").fetchone()
        return (*runs, *steps)

    def list_programs(self) -> tuple[ProgramSummary, ...]:
        """Return all programs, the one that ran last first."""
        if not self.has_history:
            return ()
        with access.read_history(self._location) as connection:
            runs, items = RunStore(connection), ItemStore(connection)
            return tuple(_summarize_program(program, runs, items) for program in runs.list_programs())

    def load_program(self, program: str) -> ProgramView | None:
        """Return all that is known of a program; None where it has no run."""
        if not self.has_history:
            return None
        with access.read_history(self._location) as connection:
            entries = RunStore(connection).list_entries(program, 1)
            if not entries:
                return None
            number = entries[0].number
            advice = RunStore(connection).load_advice(number)
            items = ItemStore(connection).items_of_program(program)
        past = StoredHistory(self._location, until=number)
        earlier = recall_summaries(past, advice)
        return ProgramView(number, past.update_item_states(advice), earlier, find_change(advice, earlier), items)

    def read_files(self) -> FileOverview:
        """Return what became of the files."""
        if not self.has_history:
            return FileOverview({}, (), ())
        with access.read_history(self._location) as connection:
            files = FileStates(connection)
            remarks = RemarkStore(connection).latest_remarks()
            return FileOverview(files.count_states(), tuple(files.find_troubles(_TROUBLES)), remarks)


def _summarize_program(program: str, runs: RunStore, items: ItemStore) -> ProgramSummary:
    entries = runs.list_entries(program, MOST_RUN_TIMES)
    unseen = sum(item.state in _UNSEEN for item in items.items_of_program(program))
    return ProgramSummary(entries[-1], tuple(entry.actual_s for entry in entries), unseen)


@dataclass(frozen=True, slots=True)
class RunOverview:
    """One run, the ``file`` of its page, and what changed since the build before; None where there is none."""

    advice: Advice
    file: str
    change: Comparison | None


@dataclass(frozen=True, slots=True)
class ProgramRuns:
    """The runs of one program, the oldest first."""

    name: str
    runs: tuple[RunOverview, ...]


def build_run_overview(advice: Advice, earlier: Sequence[Advice], file: str) -> RunOverview:
    """Return a run beside what is known of ``earlier`` ones, the oldest first."""
    return RunOverview(advice, file, find_change(advice, earlier))


def group_by_program(runs: Sequence[RunOverview]) -> tuple[ProgramRuns, ...]:
    """Return the runs by program, in the order in which the programs first appear."""
    found: dict[str, list[RunOverview]] = {}
    for one in runs:
        found.setdefault(one.advice.profile.program, []).append(one)
    return tuple(ProgramRuns(name, tuple(each)) for name, each in found.items())
