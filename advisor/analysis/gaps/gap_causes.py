"""The causes of a gap: the calls behind it, by partner, message size or file, from the rows of ``Profile.causes``.

Rows are totals over all processors, a gap is time of the run, so each row counts with a weight that makes run time of
it. C' and O are averages: a row counts one N-th. Waiting behind L, M' and D: of its N-th the part that the gap has of
the phase's imbalance. S' and W are spent by the processors that decide the instances: a row counts with the share of
instances that its processor decides; waiting in the middle of a phase counts whole (``inner_waits``). No cause ever
claims more of a phase than the gap holds there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.gaps import inner_waits
from advisor.model.records import CAUSE_CATEGORIES, UNALIGNED_FILE, Causes, FloatArray, IntArray, Share
from advisor.model.units import format_bytes
from advisor.support.grouping import group_rows, iterate_groups, sum_by_group

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.analysis.gaps.attribution import AttributionSource, GapPart
    from advisor.analysis.loads import SecondsSpread

#: The category of the rows behind each gap.
CATEGORY: Final = {
    **dict.fromkeys(("P", "L", "M'", "D", "W"), "wait"),
    "C'": "transfer",
    "O": "io",
    "S'": "sync",
    "X": "outside",
}
#: How many causes of a gap are listed at most, the largest first.
LIMIT: Final = 100
IDLE: Final = "threads idle outside parallel regions"


@dataclass(frozen=True, slots=True)
class CauseRows:
    """The rows of ``Profile.causes``, grouped by cause.

    ``group`` (rows,) numbers the causes, ``first`` (causes,) is one row of each.
    """

    causes: Causes
    group: IntArray
    first: IntArray


def group_causes(causes: Causes) -> CauseRows:
    """Return the rows by cause: category, kind, phase, call, caller, and partner, file or size where that matters."""
    category = causes.category
    matters = {"wait": causes.partner, "io": causes.target, "transfer": causes.size_class}
    detail = np.full(len(category), -1)
    for name, column in matters.items():
        detail = np.where(category == CAUSE_CATEGORIES.index(name), column, detail)
    return CauseRows(causes, *group_rows((category, causes.kind, causes.phase, causes.call, causes.caller, detail)))


def find_causes(
    source: AttributionSource, rows: CauseRows | None, pieces: Sequence[GapPart], gap_s: float
) -> tuple[Share, ...]:
    """Return the causes of a gap of ``gap_s`` seconds, the largest first; together they never exceed it."""
    found: list[Share] = []
    for piece in pieces:
        for letter in piece.letters:
            if letter == "P":
                found += _idle_thread_shares(source, piece.spread)
            if letter in CATEGORY and rows is not None:
                found += _cause_shares(source, rows, *_compute_claims(source, rows.causes, letter, piece.spread))
            if letter == "X":
                # what is left of the parts outside all phases when the calls in them have been named
                left = []
                for name, seconds in piece.spread.outside.items():
                    named = sum(share.seconds for share in found if share.kind == name and share.phase is None)
                    left.append(Share(f"{name}, no call recorded" if named else name, seconds - named, kind=name))
                found += left
    claimed = sum(share.seconds for share in found)
    factor = min(1.0, max(gap_s, 0.0) / claimed) if claimed > 0 else 0.0
    scaled = [Share(s.name, s.seconds * factor, s.phase, s.file, s.line, s.kind) for s in found]
    return tuple(sorted((s for s in scaled if s.seconds > 0), key=lambda share: -share.seconds)[:LIMIT])


def _compute_claims(
    source: AttributionSource, causes: Causes, letter: str, spread: SecondsSpread
) -> tuple[IntArray, FloatArray]:
    """Return the rows behind a gap, and how many seconds of it each explains at most."""
    chosen = causes.category == CAUSE_CATEGORIES.index(CATEGORY[letter])
    if letter == "X":
        return np.flatnonzero(chosen), _outside_claims(source, causes, chosen, spread)[chosen]
    if letter == "P":
        chosen = chosen & _is_serial(source)[causes.phase]
    inner = np.zeros(len(chosen), dtype=bool)
    if letter == "W":
        inner = inner_waits.select_inner_waits(source.profile, source.loads, source.loads.sum_by_phase(spread))
        middle = np.unique(causes.phase[inner])
        chosen = chosen & (inner | ~np.isin(causes.phase, middle))
    rows = np.flatnonzero(chosen & (causes.phase >= 0))
    phase = causes.phase[rows]
    claims: FloatArray = causes.seconds[rows] * np.where(inner[rows], 1.0, _row_weights(source, causes, rows, letter))
    available = np.maximum(source.loads.sum_by_phase(spread), 0.0)
    if letter == "W":
        available = np.minimum(available, np.maximum(source.loads.sum_by_phase(spread) - spread.rest, 0.0))
    if letter in ("L", "M'", "D"):
        imbalance = np.array([each.steady_s + each.dynamic_s for each in source.loads.phases])
        claims *= _capped_ratio(available, imbalance)[phase]
    claimed = sum_by_group(phase, claims, len(available))
    claims *= _capped_ratio(available, claimed)[phase]
    return rows, claims


def _capped_ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Return ``part / whole``, at most 1."""
    share: FloatArray = np.divide(part, np.maximum(part, whole), out=np.zeros(len(part)), where=part > 0)
    return share


def _row_weights(source: AttributionSource, causes: Causes, rows: IntArray, letter: str) -> FloatArray:
    """Return how much run time a second of each row is worth."""
    processor, phase = causes.processor[rows], causes.phase[rows]
    decided = np.full(len(rows), letter in ("S'", "W")) | (_is_serial(source)[phase] & (letter != "P"))
    return np.where(
        decided & (processor >= 0), _decided_share(source, phase, processor), _held_share(source, causes, rows)
    )


def _held_share(source: AttributionSource, causes: Causes, rows: IntArray) -> FloatArray:
    """Return the share of the processors that are held by each row: the one itself, and the threads charged with it."""
    processor = causes.processor[rows]
    shared = np.array([not region.threaded for region in source.profile.regions], dtype=bool)[causes.call[rows]]
    held = 1.0 + np.where(shared & (processor >= 0), source.loads.team.followers[processor], 0.0)
    average: FloatArray = held / source.loads.processors
    return average


def _is_serial(source: AttributionSource) -> npt.NDArray[np.bool_]:
    return np.array([phase.kind == "serial" for phase in source.loads.phases], dtype=bool)


def _decided_share(source: AttributionSource, phase: IntArray, processor: IntArray) -> FloatArray:
    """Return the share of the phase's instances that the processor decides, it or a thread charged with its time."""
    loads = source.loads
    shares = np.zeros(len(phase))
    for number, mine in iterate_groups(phase):
        each = loads.phases[number]
        who = np.full(1, each.slowest) if each.kind == "whole" else each.decider
        if not each.has_work:
            continue
        instances = np.bincount(who, minlength=loads.processors)
        followed = sum_by_group(loads.team.master, instances.astype(np.float64), loads.processors)
        shares[mine] = np.maximum(instances, followed)[processor[mine]] / len(who)
    return shares


def _outside_claims(
    source: AttributionSource, causes: Causes, chosen: npt.NDArray[np.bool_], spread: SecondsSpread
) -> FloatArray:
    """Return the part of start-up and shutdown that each row explains: its mean over the processors."""
    claims: FloatArray = np.zeros(len(causes.seconds))
    for number, name in enumerate(causes.kinds):
        mine = chosen & (causes.kind == number)
        mean = causes.seconds[mine] * _held_share(source, causes, np.flatnonzero(mine))
        available = max(spread.outside.get(name, 0.0), 0.0)
        if mean.sum() > 0:
            claims[mine] = mean * min(1.0, available / float(mean.sum()))
    return claims


def _idle_thread_shares(source: AttributionSource, spread: SecondsSpread) -> list[Share]:
    """Return what threads lose that have nothing to do outside parallel regions, by phase."""
    if not source.loads.team.is_hybrid:
        return []
    seconds = source.loads.sum_by_phase(spread)
    return [
        Share(IDLE, float(seconds[p]), phase.name, kind="idle threads")
        for p, phase in enumerate(source.profile.phases)
        if phase.kind != "serial" and seconds[p] > 0
    ]


def _cause_shares(source: AttributionSource, rows: CauseRows, chosen: IntArray, claims: FloatArray) -> list[Share]:
    """Return the share of each cause that the ``chosen`` rows explain."""
    seconds = sum_by_group(rows.group[chosen], claims, len(rows.first))
    largest = np.argsort(-seconds, kind="stable")[:LIMIT]
    return [_make_share(source, rows.causes, int(rows.first[i]), float(seconds[i])) for i in largest if seconds[i] > 0]


def _make_share(source: AttributionSource, causes: Causes, row: int, seconds: float) -> Share:
    """Return a cause with its name, phase, and the place in the source where the call is, as far as known."""
    profile = source.profile
    call, caller = (int(column[row]) for column in (causes.call, causes.caller))
    enclosing = profile.regions[caller if caller >= 0 else call]
    name = profile.regions[call].name + (f" in {enclosing.name}" if caller >= 0 else "")
    place = profile.regions[call] if profile.regions[call].file is not None else enclosing
    phase = int(causes.phase[row])
    return Share(
        name + _describe_detail(source, causes, row),
        seconds,
        phase=profile.phases[phase].name if phase >= 0 else None,
        file=place.file,
        line=place.line,
        kind=causes.kinds[int(causes.kind[row])],
    )


def _describe_detail(source: AttributionSource, causes: Causes, row: int) -> str:
    """Return whom a call waits for, how much it moves, or on which file it works."""
    category = CAUSE_CATEGORIES[int(causes.category[row])]
    partner, target, size = (int(column[row]) for column in (causes.partner, causes.target, causes.size_class))
    if category == "wait":
        whom = f" for {source.profile.processors[partner].name}" if partner >= 0 else ""
        return f" waits{whom}"
    if category == "io" and target >= 0:
        unaligned = ", unaligned" if causes.kinds[int(causes.kind[row])] == UNALIGNED_FILE else ""
        return f" on {causes.targets[target]}{unaligned}"
    if category == "transfer" and size >= 0:
        return f" moves {format_size_class(size)}"
    return ""


def format_size_class(size_class: int) -> str:
    """Return the bytes of a size class, the bit length of a number of bytes: ``64 KiB to 128 KiB``."""
    if size_class == 0:
        return "0 B"
    return f"{format_bytes(2.0 ** (size_class - 1))} to {format_bytes(2.0**size_class)}"
