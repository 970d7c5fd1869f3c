"""How much is remembered: so many runs, and so many bytes; the oldest runs go first, a few at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.history.runs import Runs

if TYPE_CHECKING:
    from advisor.daemon.config import Config
    from advisor.history.database import Writer

#: After so many new runs it is looked whether there are too many; they go in transactions of that many.
_EVERY: Final = 200


class Retention:
    """Keeps the history within the bounds of a configuration."""

    def __init__(self, writer: Writer, config: Config) -> None:
        self._writer, self._config = writer, config
        self._new = 0

    def run_added(self) -> None:
        """Note a new run; now and then the oldest are dropped."""
        self._new += 1
        if self._new >= _EVERY:
            self._new = 0
            self.keep()

    def keep(self) -> int:
        """Drop the oldest runs until the history is within its bounds; return how many were dropped."""
        dropped = 0
        while many := self._too_many():
            with self._writer.transaction() as connection:
                dropped += Runs(connection).drop_oldest(min(many, _EVERY))
            with self._writer.reading() as connection:
                connection.executescript("PRAGMA incremental_vacuum;")
        return dropped

    def _too_many(self) -> int:
        """Return how many runs are too many; those over the size are at least one, and never the newest."""
        with self._writer.reading() as connection:
            runs = Runs(connection)
            count = runs.count()
            size = runs.size_B()
        over = count - self._config.keep_runs
        if self._config.keep_B is not None and size > self._config.keep_B:
            over = max(over, min(count * (size - self._config.keep_B) // size + 1, count - 1))
        return max(over, 0)
