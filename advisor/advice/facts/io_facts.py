"""Facts about how files are accessed, as shares of the seconds of input and output: what a remedy is about.

Seconds are of all processors at the site. Shares from counts are 0 where the pattern does not occur, and unknown where
the tool does not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.count_facts import sum_counts
from advisor.advice.facts.source import Compute, FactSource, compute_share
from advisor.analysis.disturbance import delayed_io_share
from advisor.analysis.formatted_io import TEXT_SECONDS
from advisor.model.records import ALIGNED_FILE, SMALL_IO_B, UNALIGNED_FILE
from advisor.trace import io_calls

if TYPE_CHECKING:
    from advisor.advice.facts.event_rows import EventRows


def _all_io(source: FactSource) -> EventRows | None:
    """Return all rows of input and output; None where there are none because nothing tells them."""
    return None if source.events is None else source.events.select_rows("io")


def _pattern_share(count: str, source: FactSource) -> float | None:
    """Return the share of a pattern whose seconds the reader counted."""
    every = _all_io(source)
    return None if every is None else compute_share(sum_counts(source, count), every.seconds)


def _call_share(trait: str, source: FactSource) -> float | None:
    """Return the share of the reads and writes of calls with a trait."""
    every = _all_io(source)
    if every is None:
        return None
    return compute_share(every.select_rows("io", (), io_calls.DATA).select_rows("io", (), trait).seconds, every.seconds)


def _text_share(source: FactSource) -> float | None:
    """Return the part of input and output that computes digits; what had no core is neither."""
    every, text_s = _all_io(source), sum_counts(source, TEXT_SECONDS)
    if every is None or text_s is None:
        return None
    return min(compute_share(text_s, max(every.seconds * (1.0 - delayed_io_share(source.profile)), text_s)) or 0.0, 1.0)


def _text_seconds(source: FactSource) -> float | None:
    """Return the CPU time of formatted input and output, of the processor with most of it: the others wait for it."""
    table = source.profile.counts.get(TEXT_SECONDS)
    if table is None:
        return None
    rows = np.unique(np.concatenate([source.profile.phases[p].regions for p in source.phases]))
    return float(table[rows].sum(axis=0).max(initial=0.0))


def _stream_seconds(source: FactSource) -> float | None:
    """Return the seconds of streams that moving bulk data past them can win, a mean over the processors.

    What had no core, and what turns numbers into text, stays; both are subtracted as far as they are known.
    """
    every = _all_io(source)
    if every is None:
        return None
    streams = every.select_rows("io", (), io_calls.DATA).select_rows("io", (), io_calls.STDIO)
    own_s = streams.seconds * (1.0 - delayed_io_share(source.profile))
    return max(own_s - (sum_counts(source, TEXT_SECONDS) or 0.0), 0.0) / len(source.profile.processors)


def _operations(source: FactSource) -> float | None:
    every = _all_io(source)
    return None if every is None else every.select_rows("io", (), io_calls.DATA).calls_per_processor()


def _small_seconds_share(source: FactSource) -> float | None:
    """Return the part of input and output in small operations; what computes digits is none, nor what had no core."""
    every = _all_io(source)
    if every is None:
        return None
    data = every.select_rows("io", (), io_calls.DATA)
    if data.count and not data.sized_rows.count:
        return None
    with_core = 1.0 - delayed_io_share(source.profile)
    small_s = data.select_sizes(0, SMALL_IO_B).seconds * with_core - (sum_counts(source, TEXT_SECONDS) or 0.0)
    return compute_share(max(small_s, 0.0), every.seconds * with_core)


def _unaligned_seconds_share(source: FactSource) -> float | None:
    """Return the share of unaligned reads and writes of more than 100 KiB; unknown where no row tells its alignment."""
    every = _all_io(source)
    if every is None:
        return None
    if not every.select_rows("io", (ALIGNED_FILE, UNALIGNED_FILE)).count:
        return None if every.select_rows("io", (), io_calls.DATA).count else 0.0
    large = every.select_rows("io", (UNALIGNED_FILE,)).select_sizes(SMALL_IO_B, np.inf)
    return compute_share(large.seconds, every.seconds)


def _mpi_access_share(trait: str, without: Sequence[str], source: FactSource) -> float | None:
    """Return the share of the files that MPI accesses with calls of one trait, and never with those of the others.

    What the library does below these calls, in the same files, is included.
    """
    every = _all_io(source)
    if every is None:
        return None
    target = every.targets
    others = [every.select_rows("io", (), name).targets for name in without]
    if (target < 0).any():  # files are unknown: the calls alone
        return _call_share(trait, source)
    chosen = np.isin(target, np.setdiff1d(every.select_rows("io", (), trait).targets, np.concatenate([*others, []])))
    return compute_share(every.select_mask(chosen).seconds, every.seconds)


def _private_share(source: FactSource) -> float | None:
    """Return the share of files that only one of several processors accesses."""
    every = _all_io(source)
    shared = None if every is None else every.in_shared_files
    if every is None or shared is None:
        return None
    return compute_share(every.seconds - shared.seconds, every.seconds) if len(source.profile.processors) > 1 else 0.0


def _files_per_processor(source: FactSource) -> float | None:
    """Return files / processors that access files."""
    every = _all_io(source)
    if every is None or (every.targets < 0).any():
        return None
    return len(np.unique(every.targets)) / max(len(every.processors), 1)


def _seconds_by_processor(source: FactSource) -> np.ndarray | None:
    every = _all_io(source)
    return None if every is None else every.seconds_by_processor(len(source.profile.processors))


def _slowest_excess(source: FactSource) -> float | None:
    """Return the seconds of the processor with the most input and output above the mean."""
    each = _seconds_by_processor(source)
    return None if each is None else float(each.max() - each.mean())


def _imbalance(source: FactSource) -> float | None:
    each = _seconds_by_processor(source)
    return None if each is None else float(each.max() / each.mean()) if each.mean() > 0 else 1.0


def _bursts(source: FactSource) -> float | None:
    """Return the most bursts of input or output of a processor."""
    counts = source.profile.counts.get("io_bursts")
    return None if counts is None else float(counts.max(initial=0.0))


VALUES: Final[dict[str, Compute]] = {
    "io.data_share": partial(_call_share, io_calls.DATA),
    "io.stdio_share": partial(_call_share, io_calls.STDIO),
    "io.operations": _operations,
    "io.small_seconds_share": _small_seconds_share,
    "io.unaligned_seconds_share": _unaligned_seconds_share,
    "io.random_share": partial(_pattern_share, "io_random_s"),
    "io.reread_share": partial(_pattern_share, "io_reread_s"),
    "io.one_server_share": partial(_pattern_share, "io_one_server_s"),
    "io.switch_share": partial(_pattern_share, "io_switch_s"),
    "io.text_share": _text_share,
    "io.text_s": _text_seconds,
    "io.stream_s": _stream_seconds,
    "io.independent_share": partial(_mpi_access_share, io_calls.INDEPENDENT, (io_calls.COLLECTIVE,)),
    "io.collective_share": partial(_mpi_access_share, io_calls.COLLECTIVE, ()),
    "io.private_share": _private_share,
    "io.files_per_processor": _files_per_processor,
    "io.slowest_excess_s": _slowest_excess,
    "io.imbalance": _imbalance,
    "io.bursts": _bursts,
}
