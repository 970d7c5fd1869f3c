"""Finding plugins and loading each by itself, so that one that is broken is a line in a list and nothing more."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import pluggy

from advisor.extension import hookspecs, installed_plugins
from advisor.extension.hookspecs import API_VERSION, GROUP
from advisor.extension.host import site_plugins
from advisor.model.errors import AdvisorError, PluginError
from advisor.support.documents.scalars import suggest_word

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

#: Is told which plugin is asked for what (a hook, ``import``, ``command``), and of nobody ("") once it has answered.
Asking = Callable[[str, str], None]

_PREFIX: Final = "advisor_"
_TEXT_LIMIT: Final = 300


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
    asking: Asking | None = None,
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
    """Return what tells whether a plugin is still the same, by its name, without importing any.

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
        entries = site_plugins.find_candidates(folder)
    except PluginError as error:
        yield LoadedPlugin(folder.name, str(folder), None, explain_error(error))
        return
    for entry in entries:
        yield _Candidate(entry.stem, str(entry), None, partial(site_plugins.load_module, entry))


def _register_candidate(manager: pluggy.PluginManager, candidate: _Candidate, origins: dict[str, str]) -> LoadedPlugin:
    hooks: tuple[str, ...] = ()
    problem = None
    try:
        if candidate.name in origins:
            raise PluginError(f"a plugin of this name is already loaded from {origins[candidate.name]}")
        plugin = candidate.load()
        _refuse_other_version(plugin)
        hooks = _register_hooks(manager, plugin, candidate.name)
        origins[candidate.name] = candidate.origin
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        hooks, problem = (), explain_error(error)
    return LoadedPlugin(candidate.name, candidate.origin, candidate.version, problem, hooks)


def _refuse_other_version(plugin: object) -> None:
    spoken = getattr(plugin, "advisor_api", 1)
    if spoken != API_VERSION:
        raise PluginError(
            f"is written for plugin API {spoken!r}; this gapwatch speaks {API_VERSION}: update one of them"
        )


@cache
def _published_hooks() -> frozenset[str]:
    """Return the names of the hooks that plugins may implement."""
    return frozenset(name for name, _ in inspect.getmembers(hookspecs, inspect.isfunction) if name.startswith(_PREFIX))


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
    _refuse_partial_readers(found)
    return tuple(sorted(found))


def _refuse_partial_readers(hooks: set[str]) -> None:
    if not hooks:
        raise PluginError("implements no hook")
    if ("advisor_sniff" in hooks) != ("advisor_read" in hooks):
        raise PluginError("a reader implements both advisor_sniff and advisor_read")
    if "advisor_trace" in hooks and "advisor_read" not in hooks:
        raise PluginError("only a reader implements advisor_trace")
