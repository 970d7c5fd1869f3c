"""Facts about the code in which a program computes, from the file of the program and samples (``collect/binaries``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.count_facts import sum_counts
from advisor.advice.facts.source import compute_share
from advisor.analysis.loads.computation import compute_stretch

if TYPE_CHECKING:
    from collections.abc import Collection

    from advisor.advice.facts.source import Compute, FactSource
    from advisor.model.records import FloatArray, Profile

#: Below this share of the computation in code that was looked at, nothing is said about all of it.
_KNOWN: Final = 0.5
#: What functions of libraries do is known by their names. Such a share of it or more is what is at least true, however
#: little is known of the rest.
_NAMED: Final = frozenset({"math", "allocation", "copy", "lock", "text", "random"})
_CERTAIN: Final = 0.2
#: Facts by the kind of code whose seconds they are a share of.
_KINDS: Final = {
    "code.unoptimized_share": "unoptimized",
    "code.checked_share": "checked",
    "code.scalar_share": "scalar",
    "code.overlap_share": "overlap",
    "code.order_share": "order",
    "code.recurrence_share": "recurrence",
    "code.pointer_share": "pointer",
    "code.chain_share": "chain",
    "code.scatter_share": "scatter",
    "code.baseline_share": "baseline",
    "code.branch_share": "branch",
    "code.call_share": "call",
    "code.stride_share": "strided",
    "code.transpose_share": "transposed",
    "code.page_share": "far",
    "code.division_share": "division",
    "code.update_share": "update",
    "code.math_share": "math",
    "code.allocation_share": "allocation",
    "code.copy_share": "copy",
    "code.lock_share": "lock",
    "code.text_share": "text",
    "code.random_share": "random",
    "code.interpreted_share": "interpreted",
}


def code_seconds(profile: Profile, fact: str) -> FloatArray | None:
    """Return the seconds of each region (R,) in code of the kind that a fact is about; None for other facts."""
    table = profile.counts.get(f"code.{_KINDS.get(fact)}_s")
    return None if table is None else np.asarray(table.sum(axis=1))


def compute_code_stretch(profile: Profile, fact: str, phases: Collection[int]) -> float:
    """Return how many times longer the slowest processors compute in code of a kind than all do on average.

    Others wait for them: who computes alone makes the run longer by all of it, not by its share of the processors. It
    is 1 where all compute alike, for other facts, and where it is not known.
    """
    mine, everything = profile.counts.get(f"code.{_KINDS.get(fact)}_s"), profile.counts.get("code.all_s")
    if mine is None or everything is None:
        return 1.0
    shares = np.minimum(np.divide(mine, everything, out=np.zeros(mine.shape), where=everything > 0), 1.0)
    return compute_stretch(profile, shares, phases)


def _known(source: FactSource) -> float | None:
    return compute_share(sum_counts(source, "code.known_s"), sum_counts(source, "code.all_s"))


def _share(kind: str, source: FactSource) -> float | None:
    """Return the share of the computation at a site that is in code of a kind; None where too little is known of it."""
    known = _known(source)
    if known is None:
        return None
    share = compute_share(sum_counts(source, f"code.{kind}_s"), sum_counts(source, "code.all_s"))
    if known < _KNOWN:
        return share if kind in _NAMED and share is not None and share >= _CERTAIN else None
    if kind == "interpreted" and "code.interpreted_s" not in source.profile.counts:
        return 0.0  # the code that is known is that of a compiled program
    return share


VALUES: Final[dict[str, Compute]] = {
    "code.known_share": _known,
    **{name: partial(_share, kind) for name, kind in _KINDS.items()},
}
