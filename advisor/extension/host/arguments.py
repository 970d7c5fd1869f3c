"""What plugins of others are given: a profile that nobody else sees, and each other's services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from advisor.extension.host.discovery import LoadedPlugin, explain_error
from advisor.model.errors import AdvisorError, PluginError
from advisor.model.records import FloatArray, Phase, Profile


def protect_values(given: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a hook, a profile as a copy."""
    return {name: protect_profile(value) if isinstance(value, Profile) else value for name, value in given.items()}


def protect_profile(profile: Profile) -> Profile:
    """Return a profile with mappings of its own, which can lose an entry by mistake, and read-only arrays."""
    return replace(
        profile,
        phases=tuple(map(_protect_phase, profile.phases)),
        status=dict(profile.status),
        parameters=dict(profile.parameters),
        outside=_view_arrays(profile.outside),
        counts=_view_arrays(profile.counts),
    )


def _protect_phase(phase: Phase) -> Phase:
    return replace(phase, arrays=_view_arrays(phase.arrays))


def _view_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the same numbers as arrays that cannot be made writable, as a view of an array can."""
    return {name: np.asarray(memoryview(array.data).toreadonly()) for name, array in arrays.items()}


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
