"""The commands of all plugins by name, quickly: for ``gapwatch --help``, which must not load every plugin.

The list is kept in the user's cache directory together with what would change if a plugin came, went or was edited:
the search path, and the times of its directories, of the site plugins and of the plugins' own files. A list that does
not fit any more is made anew by loading the plugins. It is not kept while a plugin is broken.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from advisor import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from advisor.host import Host


class Listed(NamedTuple):
    """A command of a plugin as the help lists it."""

    name: str
    help: str
    plugin: str


def listed(site_dirs: Sequence[Path] = (), blocked: Sequence[str] = ()) -> tuple[Listed, ...]:
    """Return the plugins' commands by name; loads the plugins only if something has changed since the last time."""
    settings: list[object] = [__version__, sys.version, sys.path, list(map(str, site_dirs)), sorted(blocked)]
    file = _file(settings)
    kept = _kept(file, settings)
    return _made(file, settings, site_dirs, blocked) if kept is None else kept


def _file(settings: list[object]) -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "gapwatch", f"commands-{crc32(repr(settings).encode()):08x}.json")


def _kept(file: str, settings: list[object]) -> tuple[Listed, ...] | None:
    try:
        with open(file, encoding="utf-8") as stream:
            kept = json.load(stream)
        if kept["settings"] == settings and kept["times"] == _times(kept["times"]):
            return tuple(Listed(*map(str, command)) for command in kept["commands"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return None


def _times(paths: Iterable[str]) -> dict[str, int]:
    """Return when each path last changed (ns), 0 where there is none."""
    times = {}
    for path in paths:
        try:
            times[path] = os.stat(path).st_mtime_ns
        except (OSError, ValueError):
            times[path] = 0
    return times


def _made(file: str, settings: list[object], site_dirs: Sequence[Path], blocked: Sequence[str]) -> tuple[Listed, ...]:
    from advisor import host  # loads what this module exists to do without

    loaded = host.load(site_dirs, blocked)
    commands = tuple(Listed(command.name, command.help, command.plugin) for command in loaded.commands())
    if not loaded.problems:
        times = _times(chain(sys.path, *map(_below, site_dirs), _module_files(loaded)))
        _keep(file, {"settings": settings, "times": times, "commands": commands})
    return commands


def _below(folder: Path) -> list[str]:
    return [str(folder), *(str(entry) for entry in folder.glob("*"))]


def _module_files(loaded: Host) -> list[str]:
    """Return the files of all imported modules of the packages in which the plugins live."""
    packages = {module.partition(".")[0] for module in loaded.modules}
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in packages]
    return [file for module in modules if isinstance(file := getattr(module, "__file__", None), str)]


def _keep(file: str, content: dict[str, object]) -> None:
    partial = f"{file}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        with open(partial, "w", encoding="utf-8") as stream:
            json.dump(content, stream)
        os.replace(partial, file)
    except OSError:
        return  # a home that can't be written: the list is made anew each time
