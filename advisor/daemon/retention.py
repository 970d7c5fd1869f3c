"""How much history is kept: a number of runs and of bytes; the oldest runs go first, a few at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.history import dialect
from advisor.history.runs import RunStore

if TYPE_CHECKING:
    from advisor.daemon.config import DaemonConfig
    from advisor.history.access import Writer

#: After so many new runs it is looked whether there are too many; they go in transactions of that many.
_EVERY: Final = 200


class HistoryRetention:
    """Keeps the history within the bounds of a configuration."""

    def __init__(self, writer: Writer, config: DaemonConfig) -> None:
        self._writer, self._config = writer, config
        self._new = 0

    def count_new_run(self) -> None:
        """Note a new run; now and then the oldest are dropped."""
        self._new += 1
        if self._new >= _EVERY:
            self._new = 0
            self.drop_excess_runs()

    def drop_excess_runs(self) -> int:
        """Drop the oldest runs until the history is within its bounds; return how many were dropped."""
        dropped = 0
        while many := self._count_excess_runs():
            with self._writer.transaction() as connection:  # one that lasts is made after those of other daemons
                dropped += RunStore(connection).drop_oldest(min(many, _EVERY))
            with self._writer.lend_connection() as connection:
                dialect.release_space(connection)
        return dropped

    def _count_excess_runs(self) -> int:
        """Return how many runs are too many; those over the size are at least one, and never the newest."""
        with self._writer.lend_connection() as connection:
            runs = RunStore(connection)
            count = runs.count_runs()
            size = runs.size_B()
        over = count - self._config.keep_runs
        if self._config.keep_B is not None and size > self._config.keep_B:
            over = max(over, min(count * (size - self._config.keep_B) // size + 1, count - 1))
        return max(over, 0)
