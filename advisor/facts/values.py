"""The value of every fact of the vocabulary: one function for each.

A function returns None where the profile does not hold what the fact is computed from.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from advisor.facts import of_counts, of_events, of_loads, of_runs

if TYPE_CHECKING:
    from advisor.facts.source import Compute, Source
    from advisor.facts.vocabulary import Fact, Value

#: The function of every fact of the vocabulary, by its name.
VALUES: Final[dict[str, Compute]] = {
    **of_runs.VALUES,
    **of_loads.VALUES,
    **of_events.VALUES,
    **of_counts.VALUES,
}


def value(fact: Fact, source: Source) -> Value | None:
    """Return the value of ``fact`` at a site; None where it is unknown or no finite number."""
    if fact.compute is not None:
        longest = max(source.phases, key=lambda p: (source.seconds[p], -p)) if fact.scope == "phase" else None
        found = fact.compute(source.profile, longest)
    else:
        found = VALUES[fact.name](source)
    if isinstance(found, bool | str) or found is None:
        return found
    return float(found) if math.isfinite(found) else None
