"""The profiles of the small runs in ``rules/cases.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.rules.case_records import COLLECTIVES, THREAD_ROLES
from advisor.model.devices import DEVICE_GAPS, DeviceCause, DeviceUse
from advisor.model.records import CAUSE_CATEGORIES, Causes, Phase, Processor, Profile, Region
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.advice.rules.case_records import Case, CaseEvent, CasePhase
    from advisor.model.records import FloatArray, IntArray, PhaseKind, Status

THREAD_BARRIER: Final = "!$omp implicit barrier"


@dataclass(frozen=True, slots=True)
class _CauseRow:
    """One row of the causes."""

    category: str
    kind: str
    phase: int
    call: int
    caller: int
    processor: int
    size_class: int
    seconds: float
    count: int
    bytes: int


def build_profile(case: Case) -> Profile:
    """Return the profile of a case."""
    if case.device_seconds:
        return _build_device_profile(case)
    return _ProfileBuilder(case).build_profile()


def _build_device_profile(case: Case) -> Profile:
    """Return a run with devices; facts on their use are given by the case."""
    count = max(len(values) for values in case.device_seconds.values())
    none = np.zeros(count)
    seconds = dict.fromkeys(("compute", *DEVICE_GAPS[1:]), none)
    seconds |= {name: np.resize(np.array(values), count) for name, values in case.device_seconds.items()}
    peak = seconds.pop("peak", None)
    length = float(np.sum(list(seconds.values()), axis=0).mean())
    processors = tuple(Processor(rank, 0, "node0", device=0) for rank in range(count))
    causes = tuple(DeviceCause(name, f"{name} of the case", float(each.mean()), 1) for name, each in seconds.items())
    table = seconds["compute"][None, :, None]
    return Profile(
        program=case.id, run=case.id, reader="case", actual_s=length, processors=processors,
        regions=(Region("kernel"),), phases=(Phase("the whole run", "whole", np.arange(1), {"wall_s": table}),),
        status={"wall_s": "measured"}, outside={"idle": length - seconds["compute"]}, paradigms=tuple(case.models),
        devices=DeviceUse(
            tuple(f"rank {rank} device" for rank in range(count)), seconds, causes=causes, peak_s=peak,
        ),
    )  # fmt: skip


class _ProfileBuilder:
    """Puts the arrays and causes of a case together, phase by phase."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.processors = tuple(Processor(r, t, "node0") for r in range(case.ranks) for t in range(case.threads))
        self.master = np.array([processor.thread == 0 for processor in self.processors])
        self.rank = np.array([processor.rank for processor in self.processors])
        self.regions: list[Region] = []
        self.rows: list[_CauseRow] = []
        self.idle: FloatArray = np.zeros(len(self.processors))
        self.elapsed = case.start_up

    def build_profile(self) -> Profile:
        """Return the whole run."""
        case = self.case
        phases = tuple(self._build_phase(number, phase) for number, phase in enumerate(case.phases))
        full = np.full(len(self.processors), 1.0)
        outside = {"start-up": case.start_up * full, "shutdown": case.shutdown * full, "idle": self.idle}
        only_work = case.knows == "work"
        measures = phases[0].arrays if phases else {}
        status: dict[str, Status] = dict.fromkeys(measures, "measured")
        return Profile(
            program=case.id,
            run=case.id,
            reader="case",
            actual_s=self.elapsed + case.shutdown,
            processors=self.processors,
            regions=tuple(self.regions),
            phases=phases,
            status=status,
            cores=case.cores or len(self.processors),
            paradigms=tuple(case.models) or self._find_paradigms(),
            outside={} if only_work else outside,
            causes=None if only_work else self._build_causes(),
        )

    def _find_paradigms(self) -> tuple[str, ...]:
        return (*(("mpi",) if self.case.ranks > 1 else ()), *(("openmp",) if self.case.threads > 1 else ()))

    def _build_phase(self, number: int, phase: CasePhase) -> Phase:
        work = self._roll_seconds(phase.work_s, phase)
        taken = self._roll_seconds((phase.os_s,), phase)
        lists = {e: self._event_seconds(e, phase) for e in phase.events}
        busy = work + taken + sum((s[:, None] for s in lists.values()), np.zeros_like(work))
        arrays: dict[str, list[FloatArray]] = {name: [] for name in ("wall", "wait", "sync", "transfer", "io", "os")}
        first = self._add_region(
            arrays, Region(phase.name, "case.c", 10 * number + 1, phase.threaded), work + taken, os=taken
        )
        for event, seconds in lists.items():
            table = np.repeat(seconds[:, None], phase.iterations, axis=1)
            call = self._add_region(
                arrays, Region(event.call, threaded=event.role in THREAD_ROLES), table, event.category
            )
            self._note_event(event, seconds, number, call, first, phase.iterations)
        in_team = self._team_wait(busy, phase)
        if in_team.any():
            call = self._add_region(arrays, Region(THREAD_BARRIER, threaded=True), in_team, "wait")
            self._note_wait("thread barrier", in_team, number, call, first)
        duration = (busy + in_team).max(axis=0)
        self._add_closing_wait(arrays, phase, number, first, duration - busy - in_team)
        self.elapsed += float(duration.sum())
        start = self.elapsed - np.cumsum(duration[::-1])[::-1]
        regions = np.arange(first, len(self.regions))
        kind: PhaseKind = "serial" if phase.serial else "parallel"
        if self.case.knows == "work":
            return Phase(phase.name, kind, regions, self._select_measures(arrays))
        return Phase(phase.name, kind, regions, self._select_measures(arrays), phase.closed_by, start, duration)

    def _roll_seconds(self, given: tuple[tuple[float, ...], ...], phase: CasePhase) -> FloatArray:
        """Return the seconds of each processor in each iteration."""
        rows = [self._values_per_processor(row) for row in given]
        columns = []
        for iteration in range(phase.iterations):
            row = rows[iteration % len(rows)]
            columns.append(np.roll(row, iteration // phase.moves) if phase.moves else row)
        seconds: FloatArray = np.stack(columns, axis=1) * self._working_mask(phase)[:, None]
        return seconds

    def _values_per_processor(self, values: tuple[float, ...]) -> FloatArray:
        """Return one value for each processor."""
        return np.resize(np.array(values, dtype=np.float64), len(self.processors))

    def _working_mask(self, phase: CasePhase) -> FloatArray:
        """Return 1 for the processors that work in the phase."""
        return np.where(self.master | phase.threaded, 1.0, 0.0)

    def _event_seconds(self, event: CaseEvent, phase: CasePhase) -> FloatArray:
        """Return the seconds that each processor spends in an iteration: only the first threads call MPI and do I/O."""
        present = self._working_mask(phase) if event.role in THREAD_ROLES else self.master.astype(np.float64)
        seconds: FloatArray = self._values_per_processor(event.seconds) * present
        return seconds

    def _team_wait(self, busy: FloatArray, phase: CasePhase) -> FloatArray:
        """Return what threads wait for the slowest of their rank at the end of a parallel region."""
        wait: FloatArray = np.zeros_like(busy)
        if phase.threaded and self.case.threads > 1:
            for rank in range(self.case.ranks):
                mine = self.rank == rank
                wait[mine] = busy[mine].max(axis=0) - busy[mine]
        return wait

    def _add_closing_wait(
        self, arrays: dict[str, list[FloatArray]], phase: CasePhase, number: int, first: int, wait: FloatArray
    ) -> None:
        """Add the waiting for the last processor: of first threads in the closing call, of others in no region."""
        name = phase.closed_by or "EZTrace finalize"
        role = classify_region(name)[1]
        threads = self.case.ranks == 1 and self.case.threads > 1
        kind = "barrier" if role == Role.BARRIER else "collective" if role in COLLECTIVES else "end of run"
        kind = "thread barrier" if role == Role.OMP_BARRIER else kind
        inside = wait if threads and phase.threaded else wait * self.master[:, None]
        self.idle += (wait - inside).sum(axis=1)
        call = self._add_region(arrays, Region(name, threaded=role in THREAD_ROLES), inside, "wait")
        self._note_wait(kind, inside, number, call, first)

    def _add_region(
        self,
        arrays: dict[str, list[FloatArray]],
        region: Region,
        wall: FloatArray,
        category: str | None = None,
        os: FloatArray | None = None,
    ) -> int:
        """Append a region whose wall time is of one category, and return its number."""
        for name, rows in arrays.items():
            zero = np.zeros_like(wall)
            rows.append(wall if name in ("wall", category) else os if name == "os" and os is not None else zero)
        self.regions.append(region)
        return len(self.regions) - 1

    def _select_measures(self, arrays: dict[str, list[FloatArray]]) -> dict[str, FloatArray]:
        stacked = {f"{name}_s": np.stack(rows) for name, rows in arrays.items()}
        others = [stacked[name] for name in ("wait_s", "sync_s", "transfer_s", "io_s")]
        taken = stacked.pop("os_s")
        if self.case.knows == "work":
            return {"work_s": stacked["wall_s"] - stacked["wait_s"] - stacked["sync_s"]}
        if self.case.knows == "cpu times":
            return {**stacked, "os_s": taken, "cpu_s": stacked["wall_s"] - sum(others) - taken}
        return stacked

    def _note_event(
        self, event: CaseEvent, seconds: FloatArray, phase: int, call: int, caller: int, iterations: int
    ) -> None:
        count = event.count * iterations
        size = -1 if event.bytes is None else int(event.bytes).bit_length()
        for q in np.flatnonzero(seconds):
            total, moved = float(seconds[q]) * iterations, count * int(event.bytes or 0)
            row = _CauseRow(event.category, event.kind, phase, call, caller, int(q), size, total, count, moved)
            self.rows.append(row)

    def _note_wait(self, kind: str, wait: FloatArray, phase: int, call: int, caller: int) -> None:
        for q in np.flatnonzero(wait.sum(axis=1)):
            count = int(np.count_nonzero(wait[q]))
            self.rows.append(_CauseRow("wait", kind, phase, call, caller, int(q), -1, float(wait[q].sum()), count, 0))

    def _build_causes(self) -> Causes:
        rows = self.rows
        kinds = tuple(dict.fromkeys(row.kind for row in rows))
        nothing = np.full(len(rows), -1)

        def build_column(name: str) -> IntArray:
            return np.array([getattr(row, name) for row in rows], dtype=np.int64)

        return Causes(
            kinds=kinds,
            targets=(),
            category=np.array([CAUSE_CATEGORIES.index(row.category) for row in rows], dtype=np.int64),
            kind=np.array([kinds.index(row.kind) for row in rows], dtype=np.int64),
            phase=build_column("phase"),
            call=build_column("call"),
            caller=build_column("caller"),
            processor=build_column("processor"),
            partner=nothing,
            target=nothing,
            size_class=build_column("size_class"),
            seconds=np.array([row.seconds for row in rows], dtype=np.float64),
            count=build_column("count"),
            bytes=build_column("bytes"),
        )
