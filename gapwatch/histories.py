"""The history from Python: runs that were seen, the advice on them, and what became of each item."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from advisor.cli.history_location import locate_default_history, resolve_location
from advisor.history.access import open_writer, read_history
from advisor.history.items import Item, ItemStore
from advisor.history.marks import mark_stored_item
from advisor.history.runs import ProfileUnit, RunEntry, RunStore

if TYPE_CHECKING:
    from datetime import date

    from advisor.analysis.comparison import Comparison
    from advisor.history.history_queries import StoredHistory
    from advisor.history.location import HistoryLocation
    from advisor.model.records import Advice
    from gapwatch.arguments import PathLike
    from gapwatch.runs import Run


class History:
    """The history in a directory, or on a server; each call opens it anew, so that a daemon may write meanwhile.

    Every method raises ``StoreError`` where there is no history or it cannot be read.
    """

    def __init__(self, folder: HistoryLocation) -> None:
        self.folder = folder

    def list_programs(self) -> tuple[str, ...]:
        """Return the programs, the one that ran last first."""
        with self._open_runs() as runs:
            return runs.list_programs()

    def list_runs(self, program: str | None = None) -> tuple[RunEntry, ...]:
        """Return the runs, of one program if given, the oldest first."""
        with self._open_runs() as runs:
            return runs.list_entries(program)

    def load_advice(self, number: int) -> Advice:
        """Return the advice on the run with that number; the arrays of its profile are left out."""
        with self._open_runs() as runs:
            return runs.load_advice(number)

    def list_items(self, program: str) -> tuple[Item, ...]:
        """Return the items of advice on a program with their state, and the seconds promised and realised."""
        with read_history(self.folder) as connection:
            return ItemStore(connection).items_of_program(program)

    def compare_builds(self, before: str, after: str, program: str | None = None) -> Comparison:
        """Return what changed between two builds by name, or two runs by number; raises ``UsageError``."""
        from advisor.history.build_comparison import compare_stored_builds

        with self._open_runs() as runs:
            return compare_stored_builds(runs, before, after, program).comparison

    def mark_applied(self, item: str, *, region: str | None = None, program: str | None = None) -> None:
        """Say that an action, or the item of a fingerprint, was carried out; the next build shows what it gained.

        Raises ``UsageError`` where none fits, or several.
        """
        mark_stored_item(self.folder, "applied", item, program, region)

    def mark_acknowledged(
        self, item: str, *, region: str | None = None, program: str | None = None, reason: str | None = None
    ) -> None:
        """Say that an item is known: it stays listed, but not as new; raises as ``mark_applied``."""
        mark_stored_item(self.folder, "acknowledged", item, program, region, reason=reason)

    def mark_suppressed(
        self,
        item: str,
        *,
        region: str | None = None,
        program: str | None = None,
        reason: str | None = None,
        until: date | None = None,
    ) -> None:
        """Leave an item out of the advice, for good or up to a day, with a reason; raises as ``mark_applied``."""
        day = until.isoformat() if until else None
        mark_stored_item(self.folder, "suppressed", item, program, region, reason=reason, until=day)

    def store_run(self, run: Run) -> int:
        """Add a run, and return its number; a run that was read from the same files before is replaced."""
        from advisor.daemon.child_tasks import hash_content
        from advisor.history.run_storage import store_run

        files = [path.resolve() for path in run.files]
        units = [ProfileUnit(path, run.profile.reader, hash_content(path)) for path in files]
        writer = open_writer(self.folder, watches=False)
        try:
            with writer.transaction() as connection:
                return store_run(connection, run.advise(), units, datetime.now(UTC))
        finally:
            writer.close()

    def open_past(self) -> StoredHistory:
        """Return the history as ``load`` takes it in."""
        from advisor.history.history_queries import StoredHistory

        return StoredHistory(self.folder)

    @contextmanager
    def _open_runs(self) -> Iterator[RunStore]:
        with read_history(self.folder) as connection:
            yield RunStore(connection)

    def __repr__(self) -> str:
        return f"gapwatch.open_history({str(self.folder)!r})"


def open_history(folder: PathLike | None = None) -> History:
    """Return the history in ``folder``, or on the server of a ``postgresql://`` URL.

    By default it is the user's own (``GAPWATCH_STATE``, else the configuration).
    It is made when the first run is stored.
    """
    return History(locate_default_history() if folder is None else resolve_location(str(folder)))
