"""Findings on how a run accesses files: each pattern with its operations, seconds and files, small or large.

What readers of I/O fill into ``Profile.causes`` and ``Profile.counts`` is all that is used. Seconds are means over the
processors; they say whether a pattern matters, which its number of operations does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.gap_parts import GapPart
from advisor.model.lists import join_names
from advisor.model.records import ALIGNED_FILE, CAUSE_CATEGORIES, SMALL_IO_B, UNALIGNED_FILE, Finding
from advisor.model.units import format_bytes, format_seconds, format_share
from advisor.support.grouping import sum_by_group
from advisor.trace import io_calls
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from advisor.model.records import Causes, FloatArray, IntArray, Profile

#: Reads and writes of at most so many bytes, and more than small ones, are medium: good on a disk, modest on stripes.
MEDIUM_IO_B: Final = 1 << 20
#: A pattern is named from this share of the operations, or of the seconds, of its kind.
NOTABLE: Final = 0.1
#: Files whose ranks differ by this part of the largest are uneven.
UNEVEN: Final = 0.3
#: Files with less than this share of all bytes, or seconds, are too small to be uneven.
LEAST_SHARE: Final = 0.01
_Pattern = tuple[str, str, float, float]


@dataclass(frozen=True, slots=True)
class _Access:
    """The rows of input and output of a profile; all columns (n,)."""

    profile: Profile
    causes: Causes
    rows: IntArray
    traits: dict[str, npt.NDArray[np.bool_]]

    @property
    def seconds(self) -> FloatArray:
        return self.causes.seconds[self.rows]

    @property
    def count(self) -> IntArray:
        return self.causes.count[self.rows]

    @property
    def sized(self) -> npt.NDArray[np.bool_]:
        """Which rows are reads and writes of known size."""
        return self.causes.size_class[self.rows] >= 0

    @property
    def aligned_or_not(self) -> npt.NDArray[np.bool_]:
        """Which rows are operations of which it is known whether they begin at a block of the file system."""
        told = np.array([kind in (ALIGNED_FILE, UNALIGNED_FILE) for kind in self.causes.kinds])
        chosen: npt.NDArray[np.bool_] = told[self.causes.kind[self.rows]]
        return chosen

    def sum_count(self, name: str, calls: IntArray | None = None) -> float:
        """Return a count of the whole run, or of some regions, 0 where nobody counted."""
        table = self.profile.counts.get(name)
        return 0.0 if table is None else float(table.sum() if calls is None else table[calls].sum())


def build_access_findings(profile: Profile, plugin: str) -> tuple[Finding, ...]:
    """Return a finding for each notable pattern of access in ``profile``, made by the reader ``plugin``."""
    causes = profile.causes
    rows = None if causes is None else np.flatnonzero(causes.category == CAUSE_CATEGORIES.index("io"))
    if causes is None or rows is None or not len(rows) or not causes.seconds[rows].sum() > 0:
        return ()
    found = [io_calls.find_io_traits(classify_region(region.name)[0].lower()) for region in profile.regions]
    traits = {name: np.array([name in each for each in found])[causes.call[rows]] for name in io_calls.TRAITS}
    access = _Access(profile, causes, rows, traits)
    made = (*_find_patterns(access), *_find_calls(access), *_find_uneven_ranks(access), *_find_uneven_files(access))
    return tuple(_make_finding(access, plugin, *each) for each in made)


def _make_finding(access: _Access, plugin: str, kind: str, text: str, amount: float, seconds: float) -> Finding:
    """Return a finding with the ``amount`` of its pattern and its ``seconds`` over all ranks."""
    profile, share = access.profile, seconds / float(access.seconds.sum())
    mean_s = seconds / len(profile.processors)
    measures = {
        "amount": amount,
        "seconds": mean_s,
        "share_of_io": share,
        "share_of_run": mean_s / profile.actual_s if profile.has_run_time else 0.0,
    }
    cost = f"{text}; {format_seconds(mean_s)} of each rank, {format_share(share)} of the I/O"
    source = f"{text} ({plugin})"
    parts = (GapPart("O", kind, mean_s, source, general=True),) if mean_s > 0 else ()
    return Finding(plugin, kind, profile.program, cost, measures, explains=parts)


def _find_patterns(access: _Access) -> Iterator[_Pattern]:
    """Yield patterns of reads and writes that are counted."""
    sized, count, seconds = access.sized, access.count, access.seconds
    mean = access.causes.bytes[access.rows] / np.maximum(count, 1)
    unaligned = np.array([kind == UNALIGNED_FILE for kind in access.causes.kinds])[access.causes.kind[access.rows]]
    writes = access.traits[io_calls.WRITES]
    for name, kind in (("reads", sized & ~writes), ("writes", sized & writes)):
        small, medium = kind & (mean <= SMALL_IO_B), kind & (mean > SMALL_IO_B) & (mean <= MEDIUM_IO_B)
        sizes = f"{format_bytes(SMALL_IO_B)} to {format_bytes(MEDIUM_IO_B)}"
        yield from _name_pattern(
            f"small {name}", count, seconds, small, kind, f"of the {name} move at most {format_bytes(SMALL_IO_B)}"
        )
        yield from _name_pattern(f"medium {name}", count, seconds, medium, kind, f"of the {name} move {sizes}")
    known = access.aligned_or_not
    yield from _name_pattern(
        "unaligned operations", count, seconds, unaligned, known, "of the reads and writes begin inside a block"
    )
    ordered = sized & known if known.any() else sized
    total, moved = float(count[ordered].sum()), float(access.causes.bytes[access.rows][sized & ~writes].sum())
    of_data = "of the reads and writes"
    for kind_name, amount_of, seconds_of, whole, what in (
        ("repeated reads", "io_reread_bytes", "io_reread_s", moved, "of the bytes read were read before"),
        ("read/write switches", "io_switches", "io_switch_s", total, f"{of_data} follow one of the other kind"),
    ):
        amount = access.sum_count(amount_of)
        if whole > 0 and amount >= NOTABLE * whole:
            yield kind_name, f"{format_share(amount / whole)} {what}", amount, access.sum_count(seconds_of)
    for name, kind in (("reads", ordered & ~writes), ("writes", ordered & writes)):
        calls = np.unique(access.causes.call[access.rows][kind])
        amount, every = access.sum_count("io_random_operations", calls), float(count[kind].sum())
        if amount > 0 and amount >= NOTABLE * every:
            what = f"of the {name} begin before the end of the one before"
            yield (
                f"random {name}",
                f"{format_share(amount / every)} {what}",
                amount,
                access.sum_count("io_random_s", calls),
            )
    memory = access.sum_count("io_unaligned_memory_operations")
    if total > 0 and memory >= NOTABLE * total:
        what = "of the reads and writes use unaligned memory, which costs with direct I/O only"
        yield "unaligned memory", f"{format_share(memory / total)} {what}", memory, 0.0


def _name_pattern(
    kind: str,
    count: IntArray,
    seconds: FloatArray,
    chosen: npt.NDArray[np.bool_],
    whole: npt.NDArray[np.bool_],
    what: str,
) -> Iterator[_Pattern]:
    """Yield a pattern where the ``chosen`` rows are notable by operations or by seconds."""
    amount, every, took = float(count[chosen].sum()), float(count[whole].sum()), float(seconds[chosen].sum())
    if amount > 0 and (amount >= NOTABLE * every or took >= NOTABLE * float(seconds.sum())):
        yield kind, f"{amount:,.0f} ({format_share(amount / every)}) {what}", amount, took


def _find_calls(access: _Access) -> Iterator[_Pattern]:
    """Yield what kinds of calls take a notable part of the bytes or seconds."""
    seconds, moved = access.seconds, np.maximum(access.causes.bytes[access.rows], 0)
    data = access.traits[io_calls.DATA]
    for kind, trait, what in (
        ("streams", io_calls.STDIO, "go through streams of the C library"),
        ("independent MPI-IO", io_calls.INDEPENDENT, "are MPI calls that each rank makes by itself"),
    ):
        chosen = data & access.traits[trait]
        took, parts = float(seconds[chosen].sum()), float(moved[chosen].sum())
        calls = float(access.count[chosen].sum()) or _count_calls(access, chosen)
        if took >= NOTABLE * seconds.sum() or (parts > 0 and parts >= NOTABLE * moved[data].sum()):
            yield kind, f"{calls:,.0f} reads and writes {what}", calls, took
    opened = access.traits[io_calls.METADATA]
    took = float(seconds[opened].sum())
    if took >= NOTABLE * seconds.sum():
        calls = float(access.count[opened].sum())
        yield "metadata", f"{calls:,.0f} times files are opened, closed, sought in and looked up", calls, took


def _count_calls(access: _Access, chosen: npt.NDArray[np.bool_]) -> float:
    """Return how often the calls of some rows were made, where their operations are counted below them."""
    table = access.profile.counts.get("calls")
    return 0.0 if table is None else float(table[np.unique(access.causes.call[access.rows][chosen])].sum())


def _find_uneven_ranks(access: _Access) -> Iterator[_Pattern]:
    """Yield how much longer than the mean the slowest rank is in its files."""
    ranks = len(access.profile.processors)
    each = sum_by_group(access.causes.processor[access.rows], access.seconds, ranks)
    most, mean = float(each.max()), float(each.mean())
    if most - mean >= NOTABLE * most:
        name = access.profile.processors[int(each.argmax())].name
        text = f"{name} has {format_seconds(most)} of I/O, the mean is {format_seconds(mean)}"
        yield "uneven ranks", text, most - mean, (most - mean) * ranks


def _find_uneven_files(access: _Access) -> Iterator[_Pattern]:
    """Yield the files in which the ranks that open them move unequal bytes, or spend unequal seconds.

    Seconds of MPI-IO are left out: in collective calls the fast ranks wait there for the slow ones.
    """
    moved = np.maximum(access.causes.bytes[access.rows], 0).astype(np.float64)
    direct = np.where(access.traits[io_calls.MPI_IO], 0.0, access.seconds)
    targets = access.causes.target[access.rows]
    inside = targets >= 0
    for kind, values, what in (
        ("uneven bytes in files", moved, "move unequal numbers of bytes there"),
        ("uneven seconds in files", direct, "spend unequal times there"),
    ):
        uneven = _select_uneven(access, targets, values)
        chosen = inside & uneven[targets]
        if chosen.any():
            worst = int(np.bincount(targets[chosen], values[chosen]).argmax())
            others = [name for number, name in enumerate(access.causes.targets) if uneven[number] and number != worst]
            names = join_names([access.causes.targets[worst], *others], most=1)
            yield kind, f"the ranks of {names} {what}", float(uneven.sum()), float(access.seconds[chosen].sum())


def _select_uneven(access: _Access, targets: IntArray, values: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which files (targets,) differ among their ranks, and hold enough of the ``values`` (rows,) to matter."""
    ranks, files, inside = len(access.profile.processors), len(access.causes.targets), targets >= 0
    pair, place = np.unique(targets[inside] * ranks + access.causes.processor[access.rows][inside], return_inverse=True)
    each, file = sum_by_group(place, values[inside], len(pair)), pair // ranks
    most, least = np.zeros(files), np.full(files, np.inf)
    np.maximum.at(most, file, each)
    np.minimum.at(least, file, each)
    total = sum_by_group(file, each, files)
    uneven: npt.NDArray[np.bool_] = (most > 0) & (most - least >= UNEVEN * most) & (total >= LEAST_SHARE * total.sum())
    return uneven
