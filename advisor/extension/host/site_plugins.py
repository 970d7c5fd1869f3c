"""Plugins as plain files in a site's directory: which files may be trusted, and how they become modules.

Code in such a directory runs with the rights of whoever starts gapwatch. So nobody else may be able to put it there:
every file, its directory and all directories above belong to the user or to root, and nobody else may write to them.
A directory with the sticky bit, such as /tmp, may stand above: there nobody can replace what is not theirs.
"""

from __future__ import annotations

import os
import stat
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_PREFIX: Final = "_advisor_site_"  # flat, since a dotted name would make Python look for a parent package


def find_candidates(folder: Path) -> tuple[Path, ...]:
    """Return the modules and packages in ``folder`` by name, without those whose name begins with ``_`` or ``.``.

    Raises ``PluginError`` where the directory is missing or others could have written to it.
    """
    try:
        _refuse_untrusted(folder)
        found = sorted(entry for entry in folder.resolve().iterdir() if _is_plugin(entry))
    except OSError as error:
        raise PluginError(f"{folder}: {error.strerror}") from error
    return tuple(found)


def _is_plugin(entry: Path) -> bool:
    module = entry.suffix == ".py" and entry.is_file()
    return (module or (entry / "__init__.py").is_file()) and not entry.name.startswith(("_", "."))


def load_module(entry: Path) -> ModuleType:
    """Return the module or package at ``entry``; raises ``PluginError`` where others could have written it."""
    for path in _iterate_files(entry):
        _refuse_untrusted(path)
    package = entry.is_dir()
    if not entry.stem.isidentifier() or (package and entry.suffix):
        raise PluginError(f"{entry.name!r} is not a valid module name; rename it")
    name = _PREFIX + entry.stem
    spec = spec_from_file_location(
        name,
        entry / "__init__.py" if package else entry,
        submodule_search_locations=[str(entry)] if package else None,
    )
    if spec is None or spec.loader is None:
        raise PluginError(f"{entry} is not a Python module")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _iterate_files(entry: Path) -> Iterator[Path]:
    """Yield everything that importing ``entry`` may execute, compiled files included."""
    tops = [entry, entry.parent / "__pycache__"]
    for top in filter(Path.exists, tops):
        yield top
        for folder, folders, files in os.walk(top):
            yield from (Path(folder, name) for name in (*folders, *files))


def _refuse_untrusted(path: Path) -> None:
    """Raise ``PluginError`` where somebody else could have written ``path``; symbolic links are followed as well."""
    for start in (path.absolute(), path.resolve(strict=True)):
        for step in (start, *start.parents):
            _refuse_writable(path, step, is_parent=step != start)


def _refuse_writable(path: Path, step: Path, *, is_parent: bool) -> None:
    link, target = step.lstat(), step.stat()
    for status in (link, target):
        if status.st_uid not in (0, os.geteuid()):
            raise PluginError(
                f"{path} is not loaded: {step} belongs to user {status.st_uid}, neither to you nor to root"
            )
    writable = target.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if writable and not (is_parent and target.st_mode & stat.S_ISVTX):
        raise PluginError(f"{path} is not loaded: others may write to {step}; check its contents and chmod go-w it")
