"""Facts about the code in which a program computes, from the file of the program and samples (``collect/binaries``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.count_facts import sum_counts
from advisor.advice.facts.source import compute_share
from advisor.analysis.disturbance import disturbance_seconds
from advisor.analysis.loads.computation import compute_imbalance_factor
from advisor.analysis.proven_imbalance import RECORDING_SECONDS, predict_handovers, prove_lock_waiting
from advisor.model.records import OLDER_BUILD
from advisor.trace.library_functions import COUNTED_KINDS, UNOPTIMIZED

if TYPE_CHECKING:
    from collections.abc import Collection

    from advisor.advice.facts.source import Compute, FactSource
    from advisor.model.records import FloatArray, Profile

#: Below this share of the computation in code that was looked at, nothing is said about all of it.
_KNOWN: Final = 0.5
#: What functions of libraries do is known by their names. Such a share of it or more is what is at least true, however
#: little is known of the rest.
_NAMED: Final = frozenset((*COUNTED_KINDS.values(), UNOPTIMIZED, "garbage", "import", "deep_copy", "pattern"))
_CERTAIN: Final = 0.2
#: Facts by the kind of code whose seconds they are a share of.
_KINDS: Final = {
    "code.unoptimized_share": "unoptimized",
    "code.checked_share": "checked",
    "code.scalar_share": "scalar",
    "code.overlap_share": "overlap",
    "code.objects_share": "objects",
    "code.order_share": "order",
    "code.recurrence_share": "recurrence",
    "code.pointer_share": "pointer",
    "code.chain_share": "chain",
    "code.scatter_share": "scatter",
    "code.guess_share": "guess",
    "code.quotient_share": "quotient",
    "code.streamed_share": "streamed",
    "code.shape_share": "shape",
    "code.baseline_share": "baseline",
    "code.branch_share": "branch",
    "code.call_share": "call",
    "code.stride_share": "strided",
    "code.transpose_share": "transposed",
    "code.page_share": "far",
    "code.division_share": "division",
    "code.update_share": "update",
    "code.math_share": "math",
    "code.inlinable_share": "inlinable",
    "code.allocation_share": "allocation",
    "code.copy_share": "copy",
    "code.copied_share": "copied",
    "code.rebuilt_share": "rebuilt",
    "code.hashed_share": "hashed",
    "code.ordered_share": "ordered",
    "code.thrown_share": "thrown",
    "code.synced_share": "synced",
    "code.buffered_share": "buffered",
    "code.constructed_share": "constructed",
    "code.lock_share": "lock",
    "code.text_share": "text",
    "code.random_share": "random",
    "code.sort_share": "sort",
    "code.string_share": "string",
    "code.length_share": "length",
    "code.packing_share": "packing",
    "code.subnormal_share": "subnormal",
    "code.search_share": "search",
    "code.recomputed_share": "recomputed",
    "code.filter_share": "filter",
    "code.selection_share": "selection",
    "code.interpreted_share": "interpreted",
    "code.pickled_share": "pickled",
    "code.keyed_share": "keyed",
    "code.listed_share": "listed",
    "code.regrown_share": "regrown",
    "code.decoded_share": "decoded",
    "code.rowwise_share": "rowwise",
    "code.garbage_share": "garbage",
    "code.collected_share": "collected",
    "code.jitted_share": "jitted",
    "code.stepwise_share": "stepwise",
    "code.import_share": "import",
    "code.deep_copy_share": "deep_copy",
    "code.pattern_share": "pattern",
}
#: Kinds of code that are counted only where there is any: other languages have none, and profilers show the others.
COUNTED_IF_ANY: Final = (
    "interpreted", "pickled", "keyed", "listed", "regrown", "decoded", "rowwise", "garbage", "import",
    "deep_copy", "pattern", "subnormal", "collected", "jitted", "stepwise",
)  # fmt: skip
#: What locks cost: seconds, and no share of the computation, since some of it is waiting.
_LOCK_COST: Final = "code.lock_cost_s"


def _code_table(profile: Profile, fact: str) -> FloatArray | None:
    """Return the seconds (R, Q) in code of the kind that a fact is about; None for other facts.

    Of locks they are what passing them takes where that is more than samples show.
    """
    kind = "lock" if fact == _LOCK_COST else _KINDS.get(fact)
    table = profile.counts.get(f"code.{kind}_s")
    handovers = predict_handovers(profile) if kind == "lock" else None
    return handovers if handovers is not None and (table is None or table.sum() < handovers.sum()) else table


def code_seconds(profile: Profile, fact: str) -> FloatArray | None:
    """Return the seconds of each region (R,) in code of the kind that a fact is about; None for other facts."""
    table = _code_table(profile, fact)
    return None if table is None else np.asarray(table.sum(axis=1))


def compute_code_imbalance(profile: Profile, fact: str, phases: Collection[int]) -> float:
    """Return how many times longer the slowest processors compute in code of a kind than all do on average.

    Others wait for them: who computes alone makes the run longer by all of it, not by its share of the processors. It
    is 1 where all compute alike, for other facts, and where it is not known.
    """
    mine, everything = _code_table(profile, fact), profile.counts.get("code.all_s")
    if mine is None or everything is None:
        return 1.0
    rows = everything.sum(axis=1) > 0
    shares = np.zeros(mine.shape)
    if fact == _LOCK_COST:  # of all that a processor computes: a call that takes a lock computes nothing
        computed = everything.sum(axis=0)
        shares[rows] = np.divide(mine.sum(axis=0), computed, out=np.zeros(len(computed)), where=computed > 0)
    else:
        np.divide(mine, everything, out=shares, where=everything > 0)
    return compute_imbalance_factor(profile, np.minimum(shares, 1.0), phases)


def _known_share(source: FactSource) -> float | None:
    return compute_share(sum_counts(source, "code.known_s"), sum_counts(source, "code.all_s"))


def _share(kind: str, source: FactSource) -> float | None:
    """Return the share of the computation at a site that is in code of a kind; None where too little is known of it."""
    known = _known_share(source)
    if known is None:
        return None
    share = compute_share(sum_counts(source, f"code.{kind}_s"), sum_counts(source, "code.all_s"))
    if known < _KNOWN:
        return share if kind in _NAMED and share is not None and share >= _CERTAIN else None
    if kind in COUNTED_IF_ANY and f"code.{kind}_s" not in source.profile.counts:
        return 0.0  # the code that is known is of other kinds
    return share


def _lock_share(source: FactSource) -> float | None:
    """Return the share of taking and releasing locks, at least what passing them from core to core is known to take."""
    predicted = compute_share(_handover_seconds(source), source.sum_measure("cpu_s"))
    known = [share for share in (_share("lock", source), predicted) if share is not None]
    return min(max(known), 1.0) if known else None


def _handover_seconds(source: FactSource) -> float | None:
    handovers = predict_handovers(source.profile)
    if handovers is None:
        return None
    rows = np.unique(np.concatenate([source.profile.phases[p].regions for p in source.phases]))
    return float(handovers[rows].sum())


def _lock_cost(source: FactSource) -> float | None:
    """Return the seconds of taking, passing and releasing locks and of waiting for them, a mean over the processors.

    They are what was sampled, less what recording took, and waited, and at least what passing the locks is known to
    take where threads run at the same time. Of the waiting it is what other programs can't have made: all but the
    longest delays, and what CPU clocks prove.
    """
    computed, predicted = source.sum_measure("cpu_s"), _handover_seconds(source)
    if computed is None:
        return None
    waited, processors = 0.0, len(source.profile.processors)
    if source.events is not None:
        waited = source.events.select_rows("wait", ("lock",)).seconds / processors
    proven = prove_lock_waiting(source.profile, source.phases)
    certain = max(waited - disturbance_seconds(source.profile), min(waited, proven))
    sampled = (_share("lock", source) or 0.0) * computed
    sampled = max(sampled - (sum_counts(source, RECORDING_SECONDS) or 0.0), 0.0)
    return max(sampled / processors + certain, (predicted or 0.0) / processors)


def _older_share(source: FactSource) -> float | None:
    """Return how much of the computation is code for older processors: all, where the program says so; else unknown."""
    return 1.0 if any(note.name == OLDER_BUILD for note in source.profile.notes) else None


VALUES: Final[dict[str, Compute]] = {
    "code.known_share": _known_share,
    **{name: partial(_share, kind) for name, kind in _KINDS.items()},
    "code.older_share": _older_share,
    "code.lock_share": _lock_share,
    _LOCK_COST: _lock_cost,
}
