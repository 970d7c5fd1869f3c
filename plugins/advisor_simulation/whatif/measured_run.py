"""A measured run as it can be run again: the load of each processor in each instance of each phase, and what ends it.

The time of an instance is the largest load (computation, transfer, input and output), the synchronization of the
processor that has it, and an inner wait that no load explains (W). Replaying the unchanged run gives the measured time
back, except for what the inner waits have to make up for; ``error_s`` is that part, the model's own error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from advisor.analysis.disturbance import delayed_io_share
from advisor.analysis.loads.arrays import RankThreads, Terms, find_rank_threads
from advisor.analysis.loads.computation import find_sequential_shares
from advisor.analysis.measures import derive_quantities
from advisor.model.records import OTHER_PROGRAMS, FloatArray, IntArray, Phase, Profile

if TYPE_CHECKING:
    import numpy.typing as npt

#: How a phase ends: everybody waits for everybody, for neighbours in rank only, or nobody waits.
End = Literal["all", "neighbours", "none"]
#: Parts of a load, each (Q, I).
PARTS = ("work", "transfer", "io")
#: A region is one thread's alone if it does this part of it, and large from this share of a phase's work on.
ALONE: Final = 0.95
LARGE: Final = 0.05


@dataclass(frozen=True, slots=True)
class PhaseRun:
    """One phase; all arrays (Q, I) in seconds except ``inner`` (I,).

    ``work``, ``transfer``, ``io`` and ``sync`` are charged loads: a thread is charged what the first thread of its rank
    does outside parallel regions; ``alone`` is that part of ``work``. ``sync`` is what each spends on synchronizing,
    ``inner`` the rest of each instance's time, ``start`` (I,) when it began. A trace may tell that its main region is
    passed more often than there are instances, ``passes`` times in all, and how often who spends most in files turns
    to them: ``outputs`` times, 0 where that is not known.
    """

    number: int
    serial: bool
    work: FloatArray
    transfer: FloatArray
    io: FloatArray
    alone: FloatArray
    sync: FloatArray
    inner: FloatArray
    start: FloatArray
    end: End = "all"
    passes: int = 1
    outputs: int = 0

    @property
    def load(self) -> FloatArray:
        """All that a processor does itself (Q, I)."""
        total: FloatArray = self.work + self.transfer + self.io
        return total

    def durations(self) -> FloatArray:
        """Return how long each instance takes if everybody waits for everybody, seconds (I,)."""
        load = self.load
        who = load.argmax(axis=0)
        each = np.arange(load.shape[1])
        found: FloatArray = np.maximum(load[who, each] + self.sync[who, each] + self.inner, 0.0)
        return found


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run that can be changed and simulated; ``outside`` is the mean over the processors of what lies in no phase."""

    profile: Profile
    team: RankThreads
    phases: tuple[PhaseRun, ...]
    outside: float
    error_s: float

    @property
    def processors(self) -> int:
        """The number of processors."""
        return len(self.profile.processors)

    def total_seconds(self) -> float:
        """Return the simulated wall time of the run, seconds."""
        if all(phase.end == "all" for phase in self.phases):
            return self.outside + sum(float(phase.durations().sum()) for phase in self.phases)
        return self.outside + _relaxed_time(self.phases, self.processors)

    def find_main_region(self, number: int) -> str:
        """Return the region that works longest in a phase, outside of parallel regions if there is one.

        Text, memory and files don't count: threads can't share them.
        """
        phase = self.profile.phases[number]
        seconds = phase.arrays["wall_s"].sum(axis=(1, 2)) if "wall_s" in phase.arrays else np.zeros(len(phase.regions))
        for name in ("wait_s", "sync_s"):
            seconds = seconds - phase.arrays[name].sum(axis=(1, 2)) if name in phase.arrays else seconds
        shared = 1.0 - find_sequential_shares(self.profile)[phase.regions].max(axis=1, initial=0.0)
        seconds = seconds * shared
        regions = [self.profile.regions[int(region)] for region in phase.regions]
        best = max(range(len(regions)), key=lambda row: (not regions[row].threaded, seconds[row]), default=-1)
        return regions[best].name if best >= 0 else ""

    def most_seconds(self, numbers: set[int]) -> float:
        """Return what phases (all, if none) are longer than the mean load: no other division of the work wins more."""
        chosen = [phase for phase in self.phases if not numbers or phase.number in numbers]
        lasted = sum(float(phase.durations().sum()) for phase in chosen)
        return max(
            lasted - _mean_work(self, chosen) - sum(float((p.transfer + p.io).mean(axis=0).sum()) for p in chosen), 0.0
        )

    def most_shared_seconds(self) -> float:
        """Return what the run is longer than its computation on all cores, however that is divided among threads."""
        arrays = [self.profile.phases[phase.number].arrays for phase in self.phases]
        if not self.profile.cores or any("cpu_s" not in each for each in arrays):
            return np.inf
        computed = sum(float(each["cpu_s"].sum()) for each in arrays)
        return self.profile.actual_s - computed / self.profile.cores

    def moved_seconds(self, after: MeasuredRun) -> dict[str, float]:
        """Return the seconds of work that ranks lose in a changed run, by region: in each phase like its work."""
        new, moved = {phase.number: phase for phase in after.phases}, dict[str, float]()
        for phase in self.phases:
            changed = new.get(phase.number, phase)
            if changed is phase:
                continue
            recorded = self.profile.phases[phase.number]
            own = _find_region_work(recorded)
            whole = np.sum(own, axis=0)
            lost = np.maximum(phase.work - changed.work, 0.0)
            share = np.divide(lost, whole, out=np.zeros_like(whole), where=whole > 0)
            for region, seconds in zip(recorded.regions, np.sum(own * share, axis=(1, 2)), strict=True):
                if seconds > 0:
                    name = self.profile.regions[int(region)].name
                    moved[name] = moved.get(name, 0.0) + float(seconds)
        return moved

    def find_single_work(self, phase: PhaseRun) -> FloatArray:
        """Return the work (Q, I) in large regions that one thread runs alone, as stages of a pipeline do."""
        recorded = self.profile.phases[phase.number]
        own = np.maximum(_find_region_work(recorded), 0.0)
        each = own.sum(axis=2)
        total = each.sum(axis=1)
        teams = np.array([self.profile.regions[int(region)].threaded for region in recorded.regions], dtype=bool)
        alone = teams & (each.max(axis=1) >= ALONE * total) & (total >= LARGE * total.sum())
        single: FloatArray = own[alone].sum(axis=0)
        return single

    def sum_closing_sync(self, run: PhaseRun) -> FloatArray:
        """Return the seconds (Q, I) in the call that ends a phase; all synchronization if regions don't show it."""
        phase = self.profile.phases[run.number]
        names = [self.profile.regions[int(region)].name for region in phase.regions]
        closing = [row for row, name in enumerate(names) if name == phase.closed_by]
        if not closing or "sync_s" not in phase.arrays:
            return run.sync
        total: FloatArray = np.minimum(phase.arrays["sync_s"][closing].sum(axis=0), run.sync)
        return total

    def with_phases(self, phases: Sequence[PhaseRun]) -> MeasuredRun:
        """Return the run with these phases replacing those of the same numbers."""
        new = {phase.number: phase for phase in phases}
        return replace(self, phases=tuple(new.get(phase.number, phase) for phase in self.phases))

    def without_phases(self, numbers: set[int]) -> MeasuredRun:
        """Return the run without some phases."""
        return replace(self, phases=tuple(phase for phase in self.phases if phase.number not in numbers))

    def compute_gaps(self) -> dict[str, float]:
        """Return the gaps P to X in seconds, by the formulas of docs/concepts.md."""
        return _compute_gaps(self)


def _find_region_work(phase: Phase) -> FloatArray:
    """Return what processors do themselves in the regions of a phase (R, Q, I), as far as that is told apart."""
    found: FloatArray = np.zeros(next(iter(phase.arrays.values())).shape)
    for name, sign in (("wall_s", 1), ("wait_s", -1), ("sync_s", -1), ("transfer_s", -1), ("io_s", -1)):
        if name in phase.arrays:
            found = found + sign * phase.arrays[name]
    return found


def build_run(profile: Profile) -> MeasuredRun | None:
    """Return a run of ``profile``; None where the work of its processors is not known."""
    kinds = derive_quantities(profile)
    if not kinds.work.is_known or not profile.has_run_time or not profile.phases:
        return None
    team = find_rank_threads(profile.processors)
    work = kinds.computation.terms if kinds.computation.is_known else kinds.work.terms
    more = kinds.communication.terms if kinds.communication.is_known and kinds.computation.is_known else work
    sync = kinds.sync.terms if kinds.sync.is_known else ()
    columns = (work, more, kinds.work.terms, sync)
    phases = tuple(_build_phase(number, phase, profile, team, columns) for number, phase in enumerate(profile.phases))
    inside = sum(float(phase.durations().sum()) for phase in phases)
    waits = kinds.wait.terms if kinds.wait.is_known else ()
    errors = [
        _unexplained_seconds(
            run, _sum_signed(phase, waits), _charge_loads(phase, waits, team, _outside_teams(phase, profile))[0]
        )
        for run, phase in zip(phases, profile.phases, strict=True)
    ]
    return MeasuredRun(profile, team, phases, profile.actual_s - inside, float(sum(errors)))


def scale_speed(run: MeasuredRun, processor: float, network: float) -> MeasuredRun:
    """Return the run on a processor and a network sped up by these factors; waiting for messages shrinks with them."""
    phases = [
        replace(
            phase,
            work=phase.work / processor,
            alone=phase.alone / processor,
            transfer=phase.transfer / network,
            sync=phase.sync / network,
            inner=phase.inner / np.where(phase.inner > 0, min(processor, network), 1.0),
        )
        for phase in run.phases
    ]
    return run.with_phases(phases)


def _build_phase(
    number: int, phase: Phase, profile: Profile, team: RankThreads, columns: tuple[Terms, ...]
) -> PhaseRun:
    shared = _outside_teams(phase, profile)
    own, alone = zip(*(_charge_loads(phase, terms, team, shared) for terms in columns), strict=True)
    sync = own[3]
    load = own[2]
    who = load.argmax(axis=0)
    each = np.arange(load.shape[1])
    lasted = phase.duration_s
    if lasted is None:
        lasted = phase.arrays["wall_s"].sum(axis=0).max(axis=0) if "wall_s" in phase.arrays else load[who, each]
    start = phase.start_s if phase.start_s is not None else np.arange(len(lasted)) + number / 1e3
    files = (own[2] - own[1]) * _own_io_share(profile)
    return PhaseRun(
        number, phase.kind == "serial", own[0], own[1] - own[0], files, alone[0], sync,
        lasted - load[who, each] - sync[who, each], np.asarray(start, dtype=np.float64),
    )  # fmt: skip


def _own_io_share(profile: Profile) -> float:
    """Return which part of all input and output the program itself takes: no change spares what others took."""
    return 1.0 - delayed_io_share(profile) if OTHER_PROGRAMS in profile.outside else 1.0


def _outside_teams(phase: Phase, profile: Profile) -> npt.NDArray[np.bool_]:
    """Return which regions of a phase lie outside of parallel regions."""
    return np.array([not profile.regions[region].threaded for region in phase.regions], dtype=np.bool_)


def _sum_signed(phase: Phase, terms: Terms) -> FloatArray:
    """Return the signed sum of arrays over all regions (Q, I)."""
    shape = next(iter(phase.arrays.values())).shape[1:]
    total: FloatArray = np.zeros(shape)
    for name, sign in terms:
        if name in phase.arrays:
            total += sign * phase.arrays[name].sum(axis=0)
    return total


def _charge_loads(
    phase: Phase, terms: Terms, team: RankThreads, shared: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the loads of the processors (Q, I), and the part of them that the first thread of a rank does alone."""
    load = _sum_signed(phase, terms)
    outside = sum((sign * phase.arrays[name][shared].sum(axis=0) for name, sign in terms), start=np.zeros_like(load))
    alone: FloatArray = outside[team.master]
    load[team.others] += alone[team.others]
    return load, alone


def _unexplained_seconds(run: PhaseRun, own: FloatArray, charged: FloatArray) -> float:
    """Return by how much a phase misses its time if the inner wait is what the deciding processors recorded, seconds.

    A thread's part of what the first one of its rank waits for its team is between nothing, where that thread is what
    it waits for, and all: ``own`` (Q, I) to ``charged`` (Q, I).
    """
    who, each = run.load.argmax(axis=0), np.arange(run.load.shape[1])
    inner, least, most = (float(seconds.sum()) for seconds in (run.inner, own[who, each], charged[who, each]))
    return max(least - inner, inner - most, 0.0)


def _relaxed_time(phases: Sequence[PhaseRun], processors: int) -> float:
    """Return the time of all phases, instance by instance in the order in which they began."""
    order = sorted((float(start), k, i) for k, phase in enumerate(phases) for i, start in enumerate(phase.start))
    time: FloatArray = np.zeros(processors)
    loads = [phase.load + phase.sync for phase in phases]
    durations = [phase.durations() for phase in phases]
    for _, k, i in order:
        phase = phases[k]
        if phase.end == "all":
            time[:] = max(float((time + loads[k][:, i]).max()) + phase.inner[i], float(time.max()))
            continue
        time = time + loads[k][:, i] + max(float(phase.inner[i]), 0.0) * bool(durations[k][i])
        if phase.end == "neighbours":
            time = np.maximum(time, np.maximum(np.r_[time[0], time[:-1]], np.r_[time[1:], time[-1]]))
    return float(time.max())


def _compute_gaps(run: MeasuredRun) -> dict[str, float]:
    parallel = [phase for phase in run.phases if not phase.serial]
    serial = [phase for phase in run.phases if phase.serial]
    ladder = [_mean_work(run, run.phases)]
    for parts in (("work",), ("work", "transfer"), PARTS):
        alone = sum(float(_sum_parts(phase, parts).max(axis=0).sum()) for phase in serial)
        ladder.append(alone + sum(float(_sum_parts(phase, parts).mean(axis=0).sum()) for phase in parallel))
    fixed = sum(float(phase.load.max(axis=0).sum()) for phase in serial)
    each = [phase.load.sum(axis=1) for phase in parallel]
    ladder.append(fixed + (float(np.sum(each, axis=0).max()) if each else 0.0))
    ladder.append(fixed + sum(float(one.max()) for one in each))
    ladder.append(fixed + sum(float(phase.load.max(axis=0).sum()) for phase in parallel))
    ladder.append(ladder[-1] + sum(float(_deciding_sync(phase).sum()) for phase in run.phases))
    ladder.append(run.total_seconds() - run.outside)
    ladder.append(run.total_seconds())
    names = ("P", "C'", "O", "L", "M'", "D", "S'", "W", "X")
    return {name: high - low for name, low, high in zip(names, ladder, ladder[1:], strict=False)}


def _mean_work(run: MeasuredRun, phases: Sequence[PhaseRun]) -> float:
    total = 0.0
    for phase in phases:
        own = phase.work.copy()
        own[run.team.others] -= phase.alone[run.team.others]
        total += float(own.mean(axis=0).sum())
    return total


def _sum_parts(phase: PhaseRun, parts: Sequence[str]) -> FloatArray:
    columns: Mapping[str, FloatArray] = {"work": phase.work, "transfer": phase.transfer, "io": phase.io}
    total: FloatArray = np.sum([columns[name] for name in parts], axis=0)
    return total


def _deciding_sync(phase: PhaseRun) -> FloatArray:
    who: IntArray = phase.load.argmax(axis=0)
    found: FloatArray = phase.sync[who, np.arange(phase.load.shape[1])]
    return found
