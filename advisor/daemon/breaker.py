"""Which plugins are left out, until their version changes, also by the next daemon: those that failed three times, or
held everything up once.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final

from advisor.history.remarks import RemarkStore

if TYPE_CHECKING:
    from advisor.history.access import Writer

#: A plugin that failed in so many runs one after the other, or ended so many processes, is left out.
TRIES: Final = 3


class PluginBreaker:
    """Counts the failures of plugins of others in the history; threads may share it."""

    def __init__(self, writer: Writer, versions: Mapping[str, str]) -> None:
        self._writer, self._versions = writer, versions
        self._lock = Lock()
        self._raised: dict[str, int] = {}
        with writer.transaction() as connection:
            self._times = RemarkStore(connection).forget_changed_plugins(versions)

    @property
    def blocked_plugins(self) -> frozenset[str]:
        """The names of the plugins that are left out."""
        with self._lock:
            return frozenset(name for name, times in self._times.items() if times >= TRIES)

    def record_death(self, plugin: str, reason: str, *, late: bool = False) -> None:
        """Record that a process ended while calling a plugin; one that was too ``late`` is left out at once."""
        with self._lock:
            times = self._times[plugin] = max(self._times.get(plugin, 0) + 1, TRIES if late else 0)
        self._store_failures(plugin, times, reason)

    def record_answer(self, failed: Mapping[str, str]) -> None:
        """Note which plugins failed for a run; those that did not have a clean record again."""
        with self._lock:
            self._raised = {name: self._raised.get(name, 0) + 1 for name in failed}
            broken = [name for name, times in self._raised.items() if times >= TRIES and name not in self._times]
            self._times |= dict.fromkeys(broken, TRIES)
        for name in broken:
            self._store_failures(name, TRIES, failed[name])

    def _store_failures(self, plugin: str, times: int, reason: str) -> None:
        with self._writer.transaction() as connection:
            RemarkStore(connection).store_failures(plugin, self._versions.get(plugin, ""), times, reason)
