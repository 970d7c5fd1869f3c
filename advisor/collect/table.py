"""A table of the processes of a sampled run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.collect.thread_time_breakdown import find_blocking_call
from advisor.model.reports import Column, Report, Table, Text
from advisor.model.units import format_seconds, format_share

if TYPE_CHECKING:
    from advisor.collect.sampled_run import SampledRun

#: More rows than this are too many to look at: the others are counted.
ROWS: Final = 12
#: Of a processor that computes at least so much of its time nobody asks what it does in the rest.
_BUSY: Final = 0.8
_COLUMNS: Final = (
    Column("processor"), Column("program"), Column("time", "s"), Column("CPU", "share"), Column("files", "share"),
    Column("queued", "share"), Column("waiting", "share"), Column("then mostly in"),
    Column("peak memory", "B"), Column("bound to"),
)  # fmt: skip


def build_process_report(run: SampledRun, rows: int = ROWS) -> Report:
    """Return what each process and thread did; the least and the most busy ones where there are too many."""
    recording = run.recording
    order = sorted(range(len(run.lanes)), key=lambda n: (run.processor[n], run.thread_times[n].start_s))
    left = len(order) - rows
    if left > 0:
        by_cpu = sorted(order, key=lambda n: run.thread_times[n].cpu_s)
        kept = {*by_cpu[: rows // 2], *by_cpu[-(rows - rows // 2) :]}
        order = [n for n in order if n in kept]
    title = f"What {recording.samples} samples saw"
    table = Table(title, _COLUMNS, tuple(_build_row(run, n) for n in order))
    cost = (
        f"Sampling took {format_share(recording.cost_s / recording.wall_s)} of one processor "
        f"({format_seconds(recording.cost_s)} in all)."
    )
    more = f" The {rows} with the least and the most CPU time; {left} more are in the profile." if left > 0 else ""
    return Report("", (table, Text(cost + more)))


def _build_row(run: SampledRun, n: int) -> tuple[str | float | int | None, ...]:
    lane, one = run.lanes[n], run.thread_times[n]
    life_s = one.life_s or 1.0
    cpus = sorted(lane.process.affinity)
    return (
        run.processors[run.processor[n]].name,
        lane.process.name,
        one.life_s,
        one.cpu_s / life_s,
        sum(one.io_s.values()) / life_s,
        one.delay_s / life_s,
        one.wait_s / life_s,
        find_blocking_call(lane.thread) if one.cpu_s < _BUSY * life_s else None,
        lane.process.peak_B,
        f"{len(cpus)} CPUs" if len(cpus) > 1 else f"CPU {cpus[0]}" if cpus else None,
    )
