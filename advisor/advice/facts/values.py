"""The value of every fact of the vocabulary, one function per fact.

A function returns None where the profile does not hold what the fact is computed from.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from advisor.advice.facts import code_facts, count_facts, device_facts, event_facts, io_facts, load_facts, run_facts
from advisor.model.errors import PluginError

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Fact, Value
    from advisor.advice.facts.source import Compute, FactSource

#: The function of every fact of the vocabulary, by its name.
VALUES: Final[dict[str, Compute]] = {
    **run_facts.VALUES,
    **load_facts.VALUES,
    **event_facts.VALUES,
    **io_facts.VALUES,
    **count_facts.VALUES,
    **code_facts.VALUES,
    **device_facts.VALUES,
}


def compute_fact_value(fact: Fact, source: FactSource) -> Value | None:
    """Return the value of ``fact`` at a site; None where it is unknown or no finite number.

    Raises ``PluginError`` where the function of a plugin fails or returns what the fact's unit does not promise.
    """
    found = VALUES[fact.name](source) if fact.name in VALUES else _compute_plugin_fact(fact, source)
    if isinstance(found, bool | str) or found is None:
        return found
    return float(found) if math.isfinite(found) else None


def _compute_plugin_fact(fact: Fact, source: FactSource) -> Value | None:
    if fact.compute is None and fact.finding is not None:
        return None
    if fact.compute is None:
        raise PluginError(f"the fact {fact.name} has no function that computes it")
    longest = max(source.phases, key=lambda p: (source.seconds[p], -p)) if fact.scope == "phase" else None
    try:
        found = fact.compute(source.profile, longest)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"the fact {fact.name} failed: {type(error).__name__}: {error}") from error
    wanted = {"name": str, "yes/no": bool}.get(fact.unit, float)
    fits = isinstance(found, wanted) or (wanted is float and isinstance(found, int) and not isinstance(found, bool))
    if found is not None and not fits:
        raise PluginError(f"the fact {fact.name} is a {type(found).__name__}, but its unit is {fact.unit}")
    return found
