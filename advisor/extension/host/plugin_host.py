"""The host of the plugins: calls each one separately, checks its answers, and notes failures.

A plugin that raises, or returns what its hook does not promise, loses its own result and nothing else. What it does to
the process itself no check in here can undo: commands and daemon run hosts in children (``extension/sandbox``), who are
told whom the host asks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from advisor.extension import installed_plugins
from advisor.extension.commands import Command, CommandRegistry, CommandServices
from advisor.extension.host import answers, arguments, discovery
from advisor.extension.host.discovery import Asking, LoadedPlugin, explain_error
from advisor.extension.host.search import FoundProfile, ProfileSearch, refuse_unreadable
from advisor.model.errors import AdvisorError, ClusterError, InputError, PluginError, UnknownFormatError
from advisor.support.contract import ContractError
from advisor.trace import events

if TYPE_CHECKING:
    from argparse import Namespace

    from pluggy import HookImpl, PluginManager

    from advisor.advice.counterfactuals import Candidate, Counterfactual
    from advisor.advice.earlier_runs import AppliedAction
    from advisor.advice.facts import Fact
    from advisor.advice.facts.fact_records import Value
    from advisor.analysis.machines import Machine
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Advice, Bound, Finding, Gap, KnownDocument, Profile
    from advisor.model.reports import Report
    from advisor.trace.events import Trace


T = TypeVar("T")


def load_plugins(
    site_dirs: Sequence[Path] = (),
    blocked: Collection[str] | Mapping[str, str] = (),
    *,
    entry_points: bool = True,
    asking: Asking | None = None,
) -> PluginHost:
    """Return a host with the plugins of installed packages (if ``entry_points``) and of the directories.

    Plugins whose names are ``blocked`` are not even imported; a mapping says why, which is then their problem.
    ``asking`` is told which plugin of others the host is about to import or ask, which matters where the answer may be
    the end of the process. Never raises for a plugin: see ``Host.plugins``.
    """
    manager = discovery.make_manager()
    with _redirect_prints():
        found = discovery.register_plugins(manager, site_dirs, blocked, entry_points, asking)
        return PluginHost(manager, found, asking)


class PluginHost:
    """The plugins that were found, with what is wrong with each, and typed calls of their hooks."""

    def __init__(self, manager: PluginManager, plugins: tuple[LoadedPlugin, ...], asking: Asking | None = None) -> None:
        self._manager = manager
        self.plugins = plugins
        self._asking = asking
        self._others = {plugin.name for plugin in plugins if plugin.origin != installed_plugins.OWN}
        self._failures: dict[str, None] = {}
        self._failed: dict[str, str] = {}
        self._events: tuple[FoundProfile, Trace | None] | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each plugin that could not be loaded and for each call that failed, the same one only once."""
        loading = (f"plugin {one.name} ({one.origin}): {one.problem}" for one in self.plugins if one.problem)
        return (*loading, *self._failures)

    @property
    def failure_reasons(self) -> Mapping[str, str]:
        """The plugins with a failed call, and why it failed."""
        return self._failed

    def forget_failures(self) -> None:
        """Forget which calls failed: those for one run are no problem of the next."""
        self._failures.clear()
        self._failed.clear()

    @property
    def module_names(self) -> tuple[str, ...]:
        """The names of the modules in which the plugins are defined."""
        plugins = (plugin for _, plugin in self._manager.list_name_plugin())
        return tuple(getattr(plugin, "__name__", type(plugin).__module__) for plugin in plugins if plugin is not None)

    def sniff_all(self, path: Path, among: Collection[str] | None = None) -> tuple[tuple[str, float], ...]:
        """Return the readers (of those ``among``) that recognize ``path`` and how sure (0 to 1), the surest first.

        Raises ``InputError`` for what is neither a file nor a directory, or may not be read.
        """
        refuse_unreadable(path)
        found = [
            (plugin, sure)
            for plugin, implementation in self._implementations("advisor_sniff")
            if among is None or plugin in among
            if (
                sure := self._call_hook(
                    plugin, "advisor_sniff", implementation, {"path": path}, answers.require_sureness
                )
            )
        ]
        return tuple(sorted(found, key=lambda answer: -answer[1]))

    def find_profiles(self, path: Path) -> tuple[FoundProfile, ...]:
        """Return the profiles at ``path``, a file or a directory with everything in it.

        Raises ``UnknownFormatError`` for none, ``InputError`` for what may not be read.
        """
        refuse_unreadable(path)
        search = ProfileSearch(self.sniff_all)
        found = tuple(search.find_profiles(path))
        if search.is_exhausted:
            self._failures[f"{path}: only the first {search.seen:,} files and directories were looked at"] = None
        if not found:
            if path.is_dir() and not any(path.iterdir()):
                raise UnknownFormatError(path, "is an empty directory")
            from advisor.extension.host.unknown_files import describe_unknown

            known = sorted(plugin.name for plugin in self.plugins if "advisor_read" in plugin.hooks)
            reason = f"is in no format that is known here: {', '.join(known) or 'there is none'}"
            raise UnknownFormatError(path, reason + describe_unknown(path))
        return found

    def identify_document(self, path: Path) -> tuple[str, KnownDocument] | None:
        """Return the plugin that knows a file that is no run, and what the file is; None where none does."""
        return next(self._ask_plugins("advisor_document", answers.require_document, path=path), None)

    def read_profile(self, found: FoundProfile) -> Profile:
        """Return the run that was found; raises ``InputError`` where the data are damaged or the reader fails."""
        events.take_trace(found.path)
        self._events = None
        profile = self._read_with("advisor_read", found, answers.require_profile)
        self._events = found, events.take_trace(found.path)
        return profile

    def _read_with(self, hook: str, found: FoundProfile, accept: Callable[[object], T]) -> T:
        path, reader = found.path, found.reader
        implementation = dict(self._implementations(hook)).get(reader)
        if implementation is None:
            raise InputError(path, f"the plugin {reader!r}, which reads it, was left out or is gone")
        try:
            with self._announcing(reader, hook):
                return accept(_call_implementation(implementation, {"path": path}))
        except (InputError, ClusterError, KeyboardInterrupt):
            raise
        except ContractError as error:
            raise InputError(path, f"{error.reason} (read by {reader!r})", error.place) from error
        except BaseException as error:
            raise InputError(path, f"the reader {reader!r} failed: {explain_error(error)}") from error

    def is_trace(self, found: FoundProfile) -> bool:
        """Return whether what was found holds events that ``read_trace`` returns."""
        return any(plugin.name == found.reader and "advisor_trace" in plugin.hooks for plugin in self.plugins)

    def read_trace(self, found: FoundProfile) -> Trace:
        """Return the events of the run that was found; raises ``InputError``, also for what is no trace.

        They are those that its profile was made of, where that was read last.
        """
        if not self.is_trace(found):
            raise InputError(found.path, f"is not a trace: the format {found.reader!r} holds no events")
        kept, self._events = self._events, None
        if kept is not None and kept[0] is found and kept[1] is not None:
            return answers.require_trace(kept[1])
        return self._read_with("advisor_trace", found, answers.require_trace)

    def collect_findings(
        self,
        profile: Profile,
        bounds: Sequence[Bound],
        gaps: Sequence[Gap],
        machine: Machine | None,
        history: Sequence[Advice] | Callable[[], Sequence[Advice]],
        events: Callable[[], Trace | None] = lambda: None,
        applied: Callable[[], Sequence[AppliedAction]] = tuple,
    ) -> tuple[Finding, ...]:
        """Return what all plugins noticed in a run, each finding under the name of its plugin.

        ``events``, ``applied``, and ``history`` where it is a function, are called for each plugin that wants them.
        """
        answered = self._ask_plugins(
            "advisor_findings",
            answers.require_findings,
            profile=profile,
            bounds=bounds,
            gaps=gaps,
            machine=machine,
            history=history,
            trace=events,
            applied=applied,
        )
        return tuple(replace(finding, plugin=name) for name, findings in answered for finding in findings)

    def expected_gain(
        self,
        profile: Profile,
        recommendation: Recommendation,
        machine: Machine | None,
        events: Callable[[], Trace | None] = lambda: None,
    ) -> tuple[float, float, float] | None:
        """Return expected, lowest and highest gain in seconds as the first plugin with an answer sees it, or None."""
        answered = self._ask_plugins(
            "advisor_expected_gain",
            answers.require_gain,
            profile=profile,
            recommendation=recommendation,
            machine=machine,
            trace=events,
        )
        return next((gain for _, gain in answered), None)

    def collect_counterfactuals(
        self,
        profile: Profile,
        candidates: Sequence[Candidate],
        machine: Machine | None,
        events: Callable[[], Trace | None],
    ) -> tuple[Counterfactual | None, ...] | None:
        """Return what each candidate would have won, as the first plugin with an answer sees it; None without one."""
        answered = self._ask_plugins(
            "advisor_counterfactuals",
            answers.require_counterfactuals,
            profile=profile,
            candidates=candidates,
            machine=machine,
            trace=events,
        )
        return next((found for _, found in answered if len(found) == len(candidates)), None)

    def collect_facts(self, events: Callable[[], Trace | None] = lambda: None) -> tuple[Fact, ...]:
        """Return the facts that plugins add to the vocabulary of conditions.

        ``events`` reads the events of the run, for facts that are told by them.
        """
        facts: dict[str, Fact] = {}
        for plugin, offered in self._ask_plugins("advisor_facts", answers.require_facts):
            for fact in offered:
                if fact.name in facts:
                    self._record_failure(plugin, "advisor_facts", PluginError(f"the fact {fact.name!r} is taken"))
                else:
                    facts[fact.name] = replace(
                        fact, compute=partial(self._fact_value, plugin, fact, events), of_trace=None
                    )
        return tuple(facts.values())

    def _fact_value(
        self, plugin: str, fact: Fact, events: Callable[[], Trace | None], profile: Profile, phase: int | None
    ) -> Value | None:
        """Return the value of a plugin's fact; None, and a note of it, where computing it fails."""
        try:
            profile = arguments.protect_profile(profile) if plugin in self._others else profile
            if fact.of_trace is not None:
                trace = events()
                with self._announcing(plugin, "advisor_facts"), _redirect_prints():
                    return None if trace is None else answers.require_fact_value(fact.of_trace(profile, trace, phase))
            with self._announcing(plugin, "advisor_facts"), _redirect_prints():
                return answers.require_fact_value(fact.compute(profile, phase)) if fact.compute is not None else None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._record_failure(plugin, f"the fact {fact.name!r}", error)
            return None

    def rule_files(self) -> tuple[Path, ...]:
        """Return the files of rules that plugins bring along."""
        return tuple(path for _, paths in self._ask_plugins("advisor_rules", answers.require_files) for path in paths)

    def machine_files(self) -> tuple[Path, ...]:
        """Return the files of machine models that plugins bring along."""
        return tuple(
            path for _, paths in self._ask_plugins("advisor_machines", answers.require_files) for path in paths
        )

    def collect_commands(self, reserved: Collection[str] = ()) -> tuple[Command, ...]:
        """Return the commands of all plugins by name; one that is ``reserved`` or taken is noted as a problem."""
        commands: dict[str, Command] = {}
        for plugin, implementation in self._implementations("advisor_commands"):
            registry = CommandRegistry(plugin)
            if (
                self._call_hook(plugin, "advisor_commands", implementation, {"register": registry}, _accept_anything)
                is None
            ):
                continue
            for command in registry.commands:
                if command.name in reserved or command.name in commands:
                    self._record_failure(
                        plugin, "advisor_commands", PluginError(f"the command {command.name!r} is taken")
                    )
                else:
                    commands[command.name] = command
        return tuple(commands[name] for name in sorted(commands))

    def run_command(self, command: Command, args: Namespace, services: CommandServices) -> Report:
        """Return the report of a command; raises the errors of ours that it raises, else ``PluginError``."""
        try:
            with self._announcing(command.plugin, "command"), _redirect_prints():
                return answers.require_report(command.run(args, services))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, AdvisorError) and not isinstance(error, ContractError):
                raise
            whose = f"the command {command.name!r} of the plugin {command.plugin!r}"
            raise PluginError(f"{whose} failed: {explain_error(error)}") from error

    def find_service(self, name: str) -> Callable[..., object]:
        """Return the service that a plugin offers under ``name``; raises ``PluginError`` if there is none."""
        for plugin, offered in self._ask_plugins("advisor_services", answers.require_services):
            if name in offered:
                return partial(arguments.call_service, plugin, name, offered[name])
        raise PluginError(arguments.explain_missing_service(name, self.plugins))

    def _implementations(self, hook: str) -> list[tuple[str, HookImpl]]:
        """Return who implements a hook and how, in the order of ``plugins``."""
        found = {impl.plugin_name: impl for impl in getattr(self._manager.hook, hook).get_hookimpls()}
        return [(plugin.name, found[plugin.name]) for plugin in self.plugins if hook in plugin.hooks]

    def _ask_plugins(self, hook: str, accept: Callable[[object], T | None], **given: object) -> Iterator[tuple[str, T]]:
        """Yield the plugins that have an answer, and the answer as ``accept`` returns it once it is checked."""
        for plugin, implementation in self._implementations(hook):
            answer = self._call_hook(plugin, hook, implementation, given, accept)
            if answer is not None:
                yield plugin, answer

    def _call_hook(
        self,
        plugin: str,
        hook: str,
        implementation: HookImpl,
        given: Mapping[str, object],
        accept: Callable[[object], T | None],
    ) -> T | None:
        """Return the checked answer of one implementation; None, and a note of it, where that fails."""
        try:
            with self._announcing(plugin, hook):
                named = arguments.protect_values(given) if plugin in self._others else given
                return accept(_call_implementation(implementation, named))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._record_failure(plugin, hook, error)
            return None

    @contextmanager
    def _announcing(self, plugin: str, what: str) -> Iterator[None]:
        """Announce which plugin is called for what, and afterwards that it has answered."""
        if self._asking is None or plugin not in self._others:
            yield
            return
        self._asking(plugin, what)
        try:
            yield
        finally:
            self._asking("", "")

    def _record_failure(self, plugin: str, hook: str, error: BaseException) -> None:
        self._failures[f"plugin {plugin}: {hook} failed: {explain_error(error)}"] = None
        if plugin in self._others:
            self._failed[plugin] = explain_error(error)


def _call_implementation(implementation: HookImpl, arguments: Mapping[str, object]) -> object:
    """Call one implementation with the arguments that it names, past pluggy's chains of calls and wrappers."""
    with _redirect_prints():
        return implementation.function(*(_resolve_argument(name, arguments[name]) for name in implementation.argnames))


def _resolve_argument(name: str, value: object) -> object:
    """Return the value of an argument; events and the past are read only when a plugin names them."""
    return value() if name in ("trace", "history", "applied") and callable(value) else value


def _redirect_prints() -> redirect_stdout[TextIO | None]:
    """Return what sends the prints of plugins to standard error: standard output holds one document, the result."""
    return redirect_stdout(sys.stderr)


def _accept_anything(_: object) -> bool:
    """Accept any answer, of a hook that is called for its effect."""
    return True
