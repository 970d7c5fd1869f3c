"""What the daemon has to say of itself, for ``gapwatch status``: the latest remarks, and the plugins it leaves out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

_MOST: Final = 10


class RemarkStore:
    """The remarks of the database; writing methods work inside the transaction that their caller opened."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def latest_remarks(self) -> tuple[str, ...]:
        """Return what the daemon said since it began, the latest few, the newest last."""
        row = self._connection.execute("SELECT value FROM meta WHERE name = 'remarks'").fetchone()
        return () if row is None else tuple(json.loads(row[0]))

    def add_remark(self, text: str) -> None:
        """Note one more remark."""
        kept = [one for one in self.latest_remarks() if one != text][1 - _MOST :]
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('remarks', ?)", (json.dumps([*kept, text]),))

    def clear_remarks(self) -> None:
        """Forget what an earlier process said."""
        self._connection.execute("DELETE FROM meta WHERE name = 'remarks'")

    def failed_plugins(self) -> tuple[tuple[str, int, str], ...]:
        """Return the plugins that failed, how often, and how the last time; none in a history of an older version."""
        if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'plugin_faults'").fetchone():
            return ()
        return tuple(self._connection.execute("SELECT plugin, times, reason FROM plugin_faults ORDER BY plugin"))
