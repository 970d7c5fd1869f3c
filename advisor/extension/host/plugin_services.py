"""What plugins offer to each other: a call that fails names who was called, and a missing one who is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from advisor.extension.host.discovery import LoadedPlugin, explain_error
from advisor.model.errors import AdvisorError, PluginError


def call_service(
    plugin: str, name: str, function: Callable[..., object], *arguments: object, **named: object
) -> object:
    """Return what a service answers; an error that is not ours becomes one that names who offers the service."""
    try:
        return function(*arguments, **named)
    except (AdvisorError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise PluginError(f"the service {name!r} of the plugin {plugin!r} failed: {explain_error(error)}") from error


def explain_missing_service(name: str, plugins: Sequence[LoadedPlugin]) -> str:
    """Return why a service is missing; the part before the dot names the plugin that should offer it."""
    owner = name.partition(".")[0]
    plugin = next((one for one in plugins if one.name == owner), None)
    if plugin is None:
        return f"needs {name!r} of the plugin {owner!r}, which is not installed (gapwatch plugins lists what is)"
    reason = plugin.problem or "it does not offer that"
    return f"needs {name!r} of the plugin {owner!r}: {reason}"
