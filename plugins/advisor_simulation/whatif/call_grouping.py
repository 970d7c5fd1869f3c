"""Changes that make one call of many: what is left depends on how often each call was made."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.event_rows import call_traits
from advisor.analysis.disturbance import delayed_io_share
from advisor.analysis.formatted_io import find_formatting_regions
from advisor.model.records import CAUSE_CATEGORIES, Causes, FloatArray, IntArray
from advisor.trace.io_calls import FORCING, METADATA, WRITES
from advisor.trace.regions import is_notice_wait, is_sleep

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor_simulation.whatif.measured_run import MeasuredRun, PhaseRun

#: Names of calls that wait for the disk.
FLUSHING: Final = ("fsync", "fdatasync", "MPI_File_sync", "msync")
#: Forcing so many times as often as writing is forcing each piece.
FORCED_RATIO: Final = 1.1
#: Bytes a second of a message that nothing slows down; messages never become faster than that.
FASTEST: Final = 10e9
#: File operations up to the size of a page take their time for the call, those of a file system's largest request
#: (a MiB in Lustre and NFS) for their bytes.
PAGE_B: Final = 4096
LARGE_B: Final = 1 << 20


def _cause_mask(causes: Causes, category: str, phase: PhaseRun) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (causes.category == CAUSE_CATEGORIES.index(category)) & (
        causes.phase == phase.number
    )
    return found


def _saved_seconds(
    run: MeasuredRun,
    chosen: set[int],
    category: str,
    kinds: tuple[str, ...],
    calls: npt.NDArray[np.bool_] | None = None,
    *,
    once: bool = False,
) -> dict[int, FloatArray]:
    """Return for each phase the seconds that each processor saves (Q,), if each makes one call per partner and
    iteration, or ``once``; ``calls`` says which regions are such calls.

    What is left of a call's seconds is its part in the number of calls, but not less than moving its bytes takes.
    """
    causes = run.profile.causes
    if causes is None:
        return {}
    saved = {}
    for phase in run.phases:
        if chosen and phase.number not in chosen:
            continue
        rows = _cause_mask(causes, category, phase) & np.isin(
            causes.kind, [causes.kinds.index(k) for k in kinds if k in causes.kinds]
        )
        if calls is not None:
            rows &= calls[causes.call]
        partners = _count_partners(causes, phase.number, category, run.processors)[causes.processor]
        needed = (1 if once else _count_passes(phase)) * partners
        made = np.flatnonzero(rows & (causes.processor >= 0) & (causes.count > needed))
        seconds = causes.seconds[made]
        least = np.minimum(causes.bytes[made] / FASTEST, seconds)
        if category == "io":
            least = np.maximum(least, seconds * _share_of_bytes(causes.bytes[made] / causes.count[made]))
        left = np.maximum(seconds * needed[made] / causes.count[made], least)
        spent: FloatArray = np.zeros(run.processors)
        np.add.at(spent, causes.processor[made], seconds - left)
        if spent.any():
            saved[phase.number] = spent
    return saved


def _count_passes(phase: PhaseRun) -> int:
    return max(len(phase.start), phase.passes)


def _share_of_bytes(size_B: FloatArray) -> FloatArray:
    """Return the part of a file operation's time that its bytes take: none up to a page, all in large ones.

    Where all operations are alike no recording tells it; in between it goes by the logarithm of the size.
    """
    log = np.log2(np.maximum(size_B, PAGE_B) / PAGE_B) / np.log2(LARGE_B / PAGE_B)
    found: FloatArray = np.minimum(log, 1.0)
    return found


def _count_partners(causes: Causes, phase: int, category: str, processors: int) -> IntArray:
    """Return with how many others each processor is seen to exchange messages in a phase, 1 if that is not known."""
    if category != "transfer":
        return np.ones(processors, dtype=np.int64)
    barriers = [
        number for number, kind in enumerate(causes.kinds) if kind in ("barrier", "collective", "thread barrier")
    ]
    mine = (causes.processor >= 0) & (causes.phase == phase) & (causes.partner >= 0) & ~np.isin(causes.kind, barriers)
    pairs = np.unique(np.stack([causes.processor[mine], causes.partner[mine]]), axis=1)
    return np.maximum(np.bincount(pairs[0], minlength=processors), 1)


def _subtract_saved(column: FloatArray, saved: FloatArray) -> FloatArray:
    """Return seconds (Q, I) with ``saved`` (Q,) taken from each processor in proportion."""
    total = column.sum(axis=1)
    left = np.divide(total - saved, total, out=np.ones_like(total), where=total > 0)
    lessened: FloatArray = column * np.clip(left, 0.0, 1.0)[:, None]
    return lessened


def group_messages(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Send one message to each partner in each iteration.

    Nothing is won in a phase that is passed once: which of its messages could go together it does not tell. Most of
    them may need the answer to one before, as in a solver whose iterations end without a meeting of all.
    """
    saved = _saved_seconds(run, chosen, "transfer", ("message",))
    saved = {p.number: saved[p.number] * (_count_passes(p) > 1) for p in run.phases if p.number in saved}
    changed = [
        replace(p, transfer=_subtract_saved(p.transfer, saved[p.number])) for p in run.phases if p.number in saved
    ]
    return run.with_phases(changed) if changed else None


def group_io(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Read or write once in each iteration, what was read or written in pieces before.

    Where each piece was forced to storage, that is done once as well. Turning numbers into text takes as long in one
    call as in many.
    """
    others = (METADATA,) if _forces_each_piece(run) else (METADATA, FORCING)
    return _fewer_calls(run, chosen, (_calls(run, *others) < 1) & ~find_formatting_regions(run.profile))


def _forces_each_piece(run: MeasuredRun) -> bool:
    """Return whether data are forced to storage about as often as they are written."""
    causes = run.profile.causes
    if causes is None:
        return False
    forcing = _calls(run, FORCING)[causes.call] > 0
    writing = _calls(run, WRITES)[causes.call] > 0
    return bool(0 < causes.count[writing].sum() <= FORCED_RATIO * causes.count[forcing].sum())


def fewer_files(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Open, create and look up one file, and keep it open."""
    return _fewer_calls(run, chosen, _calls(run, METADATA) > 0, once=True)


def _fewer_calls(
    run: MeasuredRun, chosen: set[int], calls: npt.NDArray[np.bool_], *, once: bool = False
) -> MeasuredRun | None:
    saved = _saved_seconds(run, chosen, "io", ("file", "unaligned file", "aligned file"), calls, once=once)
    own = 1.0 - delayed_io_share(run.profile)  # who has no core in a call has none without it
    changed = [replace(p, io=_subtract_saved(p.io, own * saved[p.number])) for p in run.phases if p.number in saved]
    return run.with_phases(changed) if changed else None


def _calls(run: MeasuredRun, *sorts: str) -> IntArray:
    """Return how many of these sorts of calls each region is."""
    return np.array([len(call_traits(region.name) & set(sorts)) for region in run.profile.regions], dtype=np.int64)


def merge_regions(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Start the threads once in each iteration: all threads are charged what the first of their rank needs for that."""
    saved = _saved_seconds(run, chosen, "sync", ("thread start", "thread barrier"))
    saved = {number: np.maximum(seconds, seconds[run.team.master]) for number, seconds in saved.items()}
    changed = [replace(p, sync=_subtract_saved(p.sync, saved[p.number])) for p in run.phases if p.number in saved]
    return run.with_phases(changed) if changed else None


def _is_lock_wait(name: str) -> bool:
    """Return whether a call that waits for another thread waits for a lock, and not for a notice."""
    return not is_notice_wait(name)


def find_lock_waits(run: MeasuredRun, phase: PhaseRun, is_wanted: Callable[[str], bool] = _is_lock_wait) -> FloatArray:
    """Return how long each instance (I,) of a phase is made by waiting for locks, or in other calls, seconds.

    A thread's longest wait, a mean over the ranks, as far as that is known.
    """
    causes, measured = run.profile.causes, run.profile.phases[phase.number]
    if causes is None or "lock" not in causes.kinds or "wait_s" not in measured.arrays:
        return np.zeros(len(phase.inner))
    calls = np.unique(causes.call[causes.kind == causes.kinds.index("lock")])
    calls = np.array([call for call in calls.tolist() if is_wanted(run.profile.regions[call].name)], dtype=int)
    waited = measured.arrays["wait_s"][np.isin(measured.regions, calls)].sum(axis=0)
    masters, rank = np.unique(run.team.master, return_inverse=True)
    longest = np.zeros((len(masters), waited.shape[1]))
    np.maximum.at(longest, rank, waited)
    found: FloatArray = np.minimum(longest.mean(axis=0), np.maximum(phase.inner, 0.0))
    return found


def remove_locks(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Remove waiting for locks; waiting for a notice of another thread stays."""
    changed = []
    for phase in run.phases:
        saved = np.zeros(1) if chosen and phase.number not in chosen else find_lock_waits(run, phase)
        if saved.any():
            changed.append(replace(phase, inner=phase.inner - saved))
    return run.with_phases(changed) if changed else None


def remove_sleep(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Let nobody sleep."""
    sleeping = {number for number, region in enumerate(run.profile.regions) if is_sleep(region.name)}
    return _without_io(run, chosen, sleeping, "os_s")


def reduce_fsync(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Wait for the disk so rarely that it no longer counts."""
    regions = run.profile.regions
    flushing = {number for number, region in enumerate(regions) if region.name in FLUSHING}
    return _without_io(run, chosen, flushing, "io_s")


def find_io(run: MeasuredRun, phase: PhaseRun) -> FloatArray:
    """Return the seconds (Q, I) of input and output, without those in which the operating system held a processor."""
    measured = run.profile.phases[phase.number].arrays.get("io_s")
    return phase.io if measured is None else np.minimum(measured.sum(axis=0), phase.io)


def find_moved_data(run: MeasuredRun, phase: PhaseRun) -> FloatArray:
    """Return the seconds (Q, I) in which data are read, written and forced to storage; not those of opening files."""
    recorded = run.profile.phases[phase.number]
    measured = recorded.arrays.get("io_s")
    if measured is None:
        return phase.io
    names = (run.profile.regions[int(region)].name for region in recorded.regions)
    moving = np.array([METADATA not in call_traits(name) for name in names], dtype=bool)
    found: FloatArray = np.minimum(measured[moving].sum(axis=0), phase.io)
    return found


def _without_io(run: MeasuredRun, chosen: set[int], regions: Collection[int], measure: str) -> MeasuredRun | None:
    """Return the run without the seconds of a measure in some regions; threads wait for the first of their rank."""
    changed = []
    for phase in run.phases:
        measured = run.profile.phases[phase.number]
        rows = [row for row, region in enumerate(measured.regions) if int(region) in regions]
        if rows and measure in measured.arrays and (not chosen or phase.number in chosen):
            seconds = measured.arrays[measure][rows].sum(axis=0)
            seconds = np.maximum(seconds, seconds[run.team.master] if run.team.is_hybrid else 0.0)
            changed.append(replace(phase, io=np.maximum(phase.io - seconds, 0.0)))
    return run.with_phases(changed) if changed else None
