"""Finds plugins and loads each one separately, so that a broken one is a line in a list and nothing more.

Plugins may be plain files in a site's directory. Their code runs with the rights of whoever starts gapwatch, so nobody
else may be able to put it there: every file, its directory and all directories above belong to the user or to root, and
nobody else may write to them. A directory with the sticky bit, such as /tmp, may stand above: there nobody can replace
what is not theirs.
"""

from __future__ import annotations

import inspect
import os
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pluggy

from advisor.extension import hookspecs, installed_plugins
from advisor.extension.hookspecs import API_VERSION, GROUP
from advisor.model.errors import AdvisorError, PluginError
from advisor.support.documents.scalars import suggest_word

if TYPE_CHECKING:
    from types import ModuleType


#: Is told which plugin is asked for what (a hook, ``import``, ``command``), and of nobody ("") once it has answered.
Asking = Callable[[str, str], None]

_HOOK_PREFIX: Final = "advisor_"
_TEXT_LIMIT: Final = 300
_PREFIX: Final = "_advisor_site_"  # flat, since a dotted name would make Python look for a parent package


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin that was found: where it comes from, what it implements, or why it is not used.

    ``origin`` is a distribution or a path, ``hooks`` the names of the hooks that it implements; with a ``problem`` the
    plugin takes no part in anything.
    """

    name: str
    origin: str
    version: str | None
    problem: str | None
    hooks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str
    origin: str
    version: str | None
    load: Callable[[], object]


def make_manager() -> pluggy.PluginManager:
    """Return a manager that knows the published hooks and no plugin."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    return manager


def register_plugins(
    manager: pluggy.PluginManager,
    site_dirs: Sequence[Path],
    blocked: Collection[str] | Mapping[str, str],
    entry_points: bool,
    asking: Asking | None,
) -> tuple[LoadedPlugin, ...]:
    """Register all plugins but the ``blocked`` ones and return what was found, those of packages first.

    ``asking`` is told of each plugin of others that is imported; those that are blocked for a reason have that problem.
    """
    loaded: list[LoadedPlugin] = []
    found = [
        *(_installed_candidates() if entry_points else ()),
        *(one for folder in site_dirs for one in _folder_candidates(folder)),
    ]
    origins: dict[str, str] = {}
    for candidate in found:
        if isinstance(candidate, LoadedPlugin):
            loaded.append(candidate)
        elif candidate.name not in blocked:
            if asking is not None and candidate.origin != installed_plugins.OWN:
                asking(candidate.name, "import")
            loaded.append(_register_candidate(manager, candidate, origins))
            if asking is not None and candidate.origin != installed_plugins.OWN:
                asking("", "")
        elif isinstance(blocked, Mapping):
            problem = blocked[candidate.name]
            loaded.append(LoadedPlugin(candidate.name, candidate.origin, candidate.version, problem))
    return tuple(loaded)


def plugin_versions(site_dirs: Sequence[Path]) -> dict[str, str]:
    """Return the version of each plugin, by name, without importing any.

    That is the version of its package, or when its file was changed.
    """
    found = [*_installed_candidates(), *(one for folder in site_dirs for one in _folder_candidates(folder))]
    return {one.name: one.version or _file_state(one.origin) for one in found if isinstance(one, _Candidate)}


def _file_state(origin: str) -> str:
    try:
        status = os.stat(origin)
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size}"


def explain_error(error: BaseException) -> str:
    """Return one line about an exception; what we raise ourselves needs no type in front of it."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    own = isinstance(error, AdvisorError | pluggy.PluginValidationError) and text
    return (text if own else f"{type(error).__name__}: {text}".rstrip(": "))[:_TEXT_LIMIT]


def _installed_candidates() -> list[_Candidate | LoadedPlugin]:
    """Return the plugins of installed packages by name, our own first; a damaged package hides no other."""
    points, broken = installed_plugins.load_entry_points()
    found: list[_Candidate | LoadedPlugin] = [_Candidate(p.name, p.package, p.version, p.import_plugin) for p in points]
    for path, error in broken.items():
        found.append(LoadedPlugin(path, "a package", None, f"its entry points can't be read: {explain_error(error)}"))
    return sorted(found, key=lambda candidate: (candidate.origin != installed_plugins.OWN, candidate.name))


def _folder_candidates(folder: Path) -> Iterator[_Candidate | LoadedPlugin]:
    try:
        entries = find_candidates(folder)
    except PluginError as error:
        yield LoadedPlugin(folder.name, str(folder), None, explain_error(error))
        return
    for entry in entries:
        yield _Candidate(entry.stem, str(entry), None, partial(load_module, entry))


def _register_candidate(manager: pluggy.PluginManager, candidate: _Candidate, origins: dict[str, str]) -> LoadedPlugin:
    hooks: tuple[str, ...] = ()
    problem = None
    try:
        if candidate.name in origins:
            raise PluginError(f"a plugin of this name is already loaded from {origins[candidate.name]}")
        plugin = candidate.load()
        spoken = getattr(plugin, "advisor_api", 1)
        if spoken != API_VERSION:
            raise PluginError(
                f"is written for plugin API {spoken!r}; this gapwatch speaks {API_VERSION}: update one of them"
            )
        hooks = _register_hooks(manager, plugin, candidate.name)
        origins[candidate.name] = candidate.origin
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        hooks, problem = (), explain_error(error)
    return LoadedPlugin(candidate.name, candidate.origin, candidate.version, problem, hooks)


@cache
def _published_hooks() -> frozenset[str]:
    """Return the names of the hooks that plugins may implement."""
    return frozenset(
        name for name, _ in inspect.getmembers(hookspecs, inspect.isfunction) if name.startswith(_HOOK_PREFIX)
    )


def _register_hooks(manager: pluggy.PluginManager, plugin: object, name: str) -> tuple[str, ...]:
    """Register a plugin and return its hooks; one that is refused leaves nothing behind."""
    manager.register(plugin, name)
    try:
        return _implemented_hooks(manager, plugin)
    except BaseException:
        manager.unregister(plugin, name)
        raise


def _implemented_hooks(manager: pluggy.PluginManager, plugin: object) -> tuple[str, ...]:
    """Return the hooks that a plugin implements; raises ``PluginError`` for what its author can't have meant."""
    found = set()
    for caller in manager.get_hookcallers(plugin) or ():
        own = next(one for one in caller.get_hookimpls() if one.plugin is plugin)
        if not caller.has_spec() and not own.optionalhook:
            raise PluginError(f"{caller.name} is not a hook{suggest_word(caller.name, _published_hooks())}")
        if own.wrapper or own.hookwrapper:
            raise PluginError(f"{caller.name} is a wrapper, which could change the results of others")
        found.add(caller.name)
    for name in sorted(_published_hooks().intersection(dir(plugin)) - found):
        if manager.parse_hookimpl_opts(plugin, name) is None:
            raise PluginError(f"{name} is not marked with @hookimpl")
    if not found:
        raise PluginError("implements no hook")
    if ("advisor_sniff" in found) != ("advisor_read" in found):
        raise PluginError("a reader implements both advisor_sniff and advisor_read")
    if "advisor_trace" in found and "advisor_read" not in found:
        raise PluginError("only a reader implements advisor_trace")
    return tuple(sorted(found))


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
        name, entry / "__init__.py" if package else entry, submodule_search_locations=[str(entry)] if package else None
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
    """Raise ``PluginError`` if other users could have written ``path``, symbolic links included."""
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
