"""The plugins that installed packages name in their entry points.

Looking through all packages takes longer than many an analysis, so the list is kept while no directory of the search
path changes; installing, removing or upgrading a package changes one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.support import disk_cache

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_GROUP: Final = "advisor"  # ``hookspecs.GROUP``, without importing pluggy for the help
#: The distribution whose plugins nobody can displace by taking their names.
OWN: Final = "gapwatch"
#: In the package of a plugin: its commands, a line each, the name and in one line what it does.
COMMANDS_FILE: Final = "commands.txt"


class PluginEntryPoint(NamedTuple):
    """An entry point: the plugin's name, the object it refers to, and the package it comes from."""

    name: str
    value: str
    package: str
    version: str

    def import_plugin(self) -> object:
        """Import the plugin."""
        from pkgutil import resolve_name

        return resolve_name(self.value.partition("[")[0].strip())

    def read_commands(self) -> list[tuple[str, str]] | None:
        """Return name and help of the plugin's commands as its package lists them, without importing it.

        None where the package lists none and may have some all the same.
        """
        top, *parts = self.value.partition(":")[0].partition("[")[0].strip().split(".")
        spec = find_spec(top)
        for folder in (spec and spec.submodule_search_locations) or ():
            try:
                text = Path(folder, *parts, COMMANDS_FILE).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            rows = (line.split(maxsplit=1) for line in text.splitlines())
            return [(row[0], row[1]) for row in rows if len(row) == 2]
        return [] if self.package == OWN else None


def load_entry_points() -> tuple[list[PluginEntryPoint], dict[str, Exception]]:
    """Return all entry points, each package's once, and why those of some packages can't be read."""
    times = list(map(disk_cache.change_time_ns, sys.path))
    known = disk_cache.load_cached("plugins", sys.path, times)
    if isinstance(known, list) and all(
        isinstance(one, list) and len(one) == len(PluginEntryPoint._fields) for one in known
    ):
        return [PluginEntryPoint(*map(str, one)) for one in known], {}
    from importlib.metadata import distributions

    found, broken = _collect_entry_points(distributions())
    if not broken:
        disk_cache.store_cached("plugins", sys.path, times, found)
    return found, broken


def _collect_entry_points(packages: Iterable[Distribution]) -> tuple[list[PluginEntryPoint], dict[str, Exception]]:
    found: list[PluginEntryPoint] = []
    broken: dict[str, Exception] = {}
    seen: set[str] = set()
    for package in packages:
        try:
            own = list(_iterate_entry_points(package))
        except Exception as error:
            broken[str(getattr(package, "_path", package))] = error
            continue
        found += [point for point in own if point.package not in seen]
        seen.update(point.package for point in own)
    return found, broken


def _iterate_entry_points(package: Distribution) -> Iterator[PluginEntryPoint]:
    if f"[{_GROUP}]" not in (package.read_text("entry_points.txt") or ""):
        return  # most packages: nothing more is read of them
    about = package.metadata  # parsed each time it is asked for
    for point in package.entry_points.select(group=_GROUP):
        yield PluginEntryPoint(point.name, point.value, about["Name"], about["Version"])
