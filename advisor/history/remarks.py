"""What daemons say of themselves, for ``gapwatch status``: remarks, versions, and the plugins that they leave out.

Each daemon of a history on a server keeps its own (``dialect.own_key``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from advisor.history import dialect

if TYPE_CHECKING:
    from advisor.history.dialect import HistoryConnection

_MOST: Final = 10
_REMARKS: Final = "remarks"


class RemarkStore:
    """The remarks of the database; writing methods work inside the transaction that their caller opened."""

    def __init__(self, connection: HistoryConnection) -> None:
        self._connection = connection

    def latest_remarks(self) -> tuple[str, ...]:
        """Return what the daemon said since it began, the latest few, the newest last; of others with their names."""
        own = dialect.own_key(self._connection, _REMARKS)
        rows = self._connection.execute("SELECT name, value FROM meta ORDER BY name").fetchall()
        others = [(name.removesuffix(_REMARKS), text) for name, text in rows if name.endswith(f":{_REMARKS}")]
        found = [f"{name} {said}" for name, text in others if f"{name}{_REMARKS}" != own for said in json.loads(text)]
        return (*found, *self._own_remarks())

    def add_remark(self, text: str) -> None:
        """Note one more remark."""
        kept = [one for one in self._own_remarks() if one != text][1 - _MOST :]
        self._set_value(_REMARKS, json.dumps([*kept, text]))

    def clear_remarks(self) -> None:
        """Forget what an earlier process said."""
        self._connection.execute("DELETE FROM meta WHERE name = ?", (dialect.own_key(self._connection, _REMARKS),))

    def replace_version(self, version: str) -> bool:
        """Note the versions of gapwatch and plugins that read from now on; return whether these are others."""
        if self._find_value("version") == version:
            return False
        self._set_value("version", version)
        return True

    def failed_plugins(self) -> tuple[tuple[str, int, str], ...]:
        """Return the plugins that failed, how often, and how the last time; none in a history of an older version."""
        if not dialect.has_table(self._connection, "plugin_faults"):
            return ()
        return tuple(self._connection.execute("SELECT plugin, times, reason FROM plugin_faults ORDER BY plugin"))

    def forget_changed_plugins(self, versions: Mapping[str, str]) -> dict[str, int]:
        """Forget failures of plugins that have another version now; return how often each of the others failed."""
        rows = self._connection.execute("SELECT plugin, version, times FROM plugin_faults").fetchall()
        own = dialect.own_key(self._connection, "")
        mine = [(key.removeprefix(own), version, times) for key, version, times in rows if key.startswith(own)]
        for name, version, _ in mine:
            if version != versions.get(name):
                self._connection.execute("DELETE FROM plugin_faults WHERE plugin = ?", (own + name,))
        return {name: times for name, version, times in mine if version == versions.get(name)}

    def store_failures(self, plugin: str, version: str, times: int, reason: str) -> None:
        """Note how often a plugin failed, and how the last time."""
        self._connection.execute(
            "INSERT INTO plugin_faults (plugin, version, times, reason) VALUES (?, ?, ?, ?) ON CONFLICT (plugin) "
            "DO UPDATE SET version = excluded.version, times = excluded.times, reason = excluded.reason",
            (dialect.own_key(self._connection, plugin), version, times, reason),
        )

    def _own_remarks(self) -> tuple[str, ...]:
        text = self._find_value(_REMARKS)
        return () if text is None else tuple(json.loads(text))

    def _find_value(self, name: str) -> str | None:
        key = dialect.own_key(self._connection, name)
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def _set_value(self, name: str, value: str) -> None:
        self._connection.execute(
            "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (dialect.own_key(self._connection, name), value),
        )
