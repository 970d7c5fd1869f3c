"""The commands of all plugins by name, quickly: for ``gapwatch --help``, which must not load every plugin.

Packages list the commands of their plugins in a file (``installed_plugins.COMMANDS_FILE``). Of other plugins, and of
those in site directories, the list is kept in the user's cache directory together with what would change if a plugin
came, went or was edited: the search path, and the times of its directories, of the site plugins and of the plugins' own
files. A list that does not fit any more is made anew by loading the plugins. It is not kept while a plugin is broken.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from advisor import __version__
from advisor.extension import installed_plugins
from advisor.support import disk_cache

if TYPE_CHECKING:
    from advisor.extension.host import PluginHost


class ListedCommand(NamedTuple):
    """A command of a plugin as the help lists it."""

    name: str
    help: str
    plugin: str


def read_listed_commands() -> tuple[tuple[ListedCommand, ...], tuple[str, ...], bool]:
    """Return the commands that installed packages list, the plugins that list theirs, and whether there are others."""
    points, broken = installed_plugins.load_entry_points()
    listed = {point.name: point.read_commands() for point in points}
    found = [ListedCommand(*row, plugin) for plugin, rows in listed.items() for row in rows or ()]
    told = tuple(plugin for plugin, rows in listed.items() if rows is not None)
    return tuple(sorted(found)), told, bool(broken) or len(told) < len(listed)


def list_commands(site_dirs: Sequence[Path], blocked: Sequence[str] = ()) -> tuple[ListedCommand, ...]:
    """Return the plugins' commands by name; loads the plugins only if something has changed since the last time."""
    settings: list[object] = [__version__, sys.version, sys.path, list(map(str, site_dirs)), sorted(blocked)]
    known = _load_cached_commands(settings)
    return _collect_commands(settings, site_dirs, blocked) if known is None else known


def _load_cached_commands(settings: list[object]) -> tuple[ListedCommand, ...] | None:
    found = disk_cache.load_cached("commands", settings, None)
    try:
        if isinstance(found, dict) and found["times"] == _change_times(found["times"]):
            return tuple(ListedCommand(*map(str, command)) for command in found["commands"])
    except (KeyError, TypeError):
        pass
    return None


def _change_times(paths: Iterable[str]) -> dict[str, int]:
    """Return when each path last changed (ns), 0 where there is none."""
    return {path: disk_cache.change_time_ns(path) for path in paths}


def _collect_commands(
    settings: list[object], site_dirs: Sequence[Path], blocked: Sequence[str]
) -> tuple[ListedCommand, ...]:
    from advisor.extension import host  # loads what this module exists to do without

    loaded = host.load_plugins(site_dirs, blocked)
    commands = tuple(ListedCommand(command.name, command.help, command.plugin) for command in loaded.collect_commands())
    if not loaded.problems:
        times = _change_times(chain(sys.path, *map(_folder_entries, site_dirs), _module_files(loaded)))
        disk_cache.store_cached("commands", settings, None, {"times": times, "commands": commands})
    return commands


def _folder_entries(folder: Path) -> list[str]:
    return [str(folder), *(str(entry) for entry in folder.glob("*"))]


def _module_files(loaded: PluginHost) -> list[str]:
    """Return the files of all imported modules of the packages in which the plugins live."""
    packages = {module.partition(".")[0] for module in loaded.module_names}
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in packages]
    return [file for module in modules if isinstance(file := getattr(module, "__file__", None), str)]
