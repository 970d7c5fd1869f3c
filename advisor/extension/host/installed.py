"""The plugins that installed packages name in their entry points.

Looking through all packages takes longer than many an analysis, so the list is kept while no directory of the search
path changes; installing, removing or upgrading a package changes one.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from advisor.extension.hookspecs import GROUP
from advisor.support import kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import Distribution


class Point(NamedTuple):
    """An entry point: the plugin's name, the object it stands for, and the package it comes from."""

    name: str
    value: str
    package: str
    version: str

    def load(self) -> object:
        """Import the plugin."""
        from pkgutil import resolve_name

        return resolve_name(self.value.partition("[")[0].strip())


def points() -> tuple[list[Point], dict[str, Exception]]:
    """Return all entry points, each package's once, and why those of some packages can't be read."""
    times = list(map(kept.changed_ns, sys.path))
    known = kept.read("plugins", sys.path, times)
    if isinstance(known, list) and all(isinstance(one, list) and len(one) == len(Point._fields) for one in known):
        return [Point(*map(str, one)) for one in known], {}
    from importlib.metadata import distributions

    found, broken = _of_packages(distributions())
    if not broken:
        kept.keep("plugins", sys.path, times, found)
    return found, broken


def _of_packages(packages: Iterable[Distribution]) -> tuple[list[Point], dict[str, Exception]]:
    found: list[Point] = []
    broken: dict[str, Exception] = {}
    seen: set[str] = set()
    for package in packages:
        try:
            own = list(_of_package(package))
        except Exception as error:
            broken[str(getattr(package, "_path", package))] = error
            continue
        found += [point for point in own if point.package not in seen]
        seen.update(point.package for point in own)
    return found, broken


def _of_package(package: Distribution) -> Iterator[Point]:
    if f"[{GROUP}]" not in (package.read_text("entry_points.txt") or ""):
        return  # most packages: nothing more is read of them
    about = package.metadata  # parsed each time it is asked for
    for point in package.entry_points.select(group=GROUP):
        yield Point(point.name, point.value, about["Name"], about["Version"])
