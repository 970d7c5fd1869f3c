"""What should be known about a sampled run: what sampling can't show, what it cost, and what it saw beside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from advisor.analysis.quality import HIDDEN
from advisor.collect.thread_time_breakdown import find_blocking_call
from advisor.model.lists import join_names
from advisor.model.records import Note
from advisor.model.units import format_count, format_seconds, format_share
from advisor.support.child_process import name_signal

if TYPE_CHECKING:
    from advisor.collect.sampled_run import SampledRun

#: Share of the time in which other programs held the processors, from which on the seconds are doubtful.
DISPLACED: Final = 0.05
#: Fewer samples than this tell little about what blocked threads wait for.
FEW: Final = 20
#: CPU time of processes that were never seen is worth a note from this share of all CPU time on.
MISSED: Final = 0.02
#: A processor that works less than this share of its time is named.
IDLE: Final = 0.5
_NAMED: Final = 4

PENALTIES: Final = {
    "sampled": 0.05,
    HIDDEN: 0.1,
    "few samples": 0.1,
    "processes missed": 0.1,
    "other programs": 0.2,
    "calls not seen": 0.1,
    "files not seen": 0.1,
    "program failed": 0.1,
}


def build_notes(run: SampledRun, collect: str | None) -> tuple[Note, ...]:
    """Return the notes on a sampled run; ``collect`` is the command that shows more."""
    return (
        *_describe_method(run, collect), *_describe_visibility(run),
        *_describe_displacement(run), *_describe_processes(run), *_describe_idleness(run), *_describe_end(run)
    )  # fmt: skip


def _make_note(name: str, text: str, collect: str | None = None) -> Note:
    return Note(name, text, PENALTIES.get(name, 0.0), collect)


def escape_undecodable(text: str) -> str:
    """Return text in which bytes that are no UTF-8 stand as visible escapes, so that it can be written."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _describe_method(run: SampledRun, collect: str | None) -> Iterator[Note]:
    recording = run.recording
    how = (
        f"sampled {recording.samples} times: programs and files are told apart, functions and phases of the program "
        "are not"
    )
    yield Note("sampled", how, PENALTIES["sampled"] if run.has_one_processor else 0.0, collect)
    share = recording.cost_s / recording.wall_s
    cost = f"sampling took {format_seconds(recording.cost_s)} of CPU time, {format_share(share)} of one processor"
    slower = f"; the interval grew to {format_seconds(recording.longest_s)} to keep it low"
    yield _make_note("cost of sampling", cost + (slower if recording.longest_s > 4 * recording.interval_s else ""))
    if len(run.processors) > 1:
        who = "processes of MPI" if any(lane.process.rank is not None for lane in run.lanes) else "threads"
        what = (
            f"{who} may use the processor while they wait, so part of what counts as work may be waiting, and the "
            "imbalance larger than it looks"
        )
        if who != "threads" or any(processor.thread > 0 for processor in run.processors):
            yield _make_note(HIDDEN, what, collect)


def _describe_displacement(run: SampledRun) -> Iterator[Note]:
    """Yield whether other programs were in the way."""
    life_s = sum(one.life_s for one in run.thread_times)
    share = sum(one.delay_s for one in run.thread_times) / life_s if life_s > 0 else 0.0
    if run.is_preempted and share >= DISPLACED:
        text = f"other programs held the processors for {format_share(share)} of the time"
        yield _make_note("other programs", text, "run it again on a machine that does nothing else")


def _describe_visibility(run: SampledRun) -> Iterator[Note]:
    recording = run.recording
    if recording.samples < FEW:
        text = f"with only {format_count(recording.samples, 'sample')}, what blocked processes waited for is a guess"
        yield _make_note("few samples", text, "run a larger problem, or sample with a shorter --interval")
    if not recording.sees_calls:
        yield _make_note("calls not seen", "the kernel does not tell here in which call a process is blocked")
    unknown = [lane for lane in run.lanes if id(lane.process) not in run.counters]
    if unknown:
        text = f"processes whose reads and writes may be unseen: {len(unknown)} of {len(run.lanes)}"
        yield _make_note("files not seen", text)


def _describe_processes(run: SampledRun) -> Iterator[Note]:
    """Yield what is left out: helpers, processes that were too short, and those that still run."""
    recording = run.recording
    chosen = {id(lane.process) for lane in run.lanes}
    others = sorted({process.name for process in recording.processes if id(process) not in chosen})
    if others:
        text = f"not counted, as they start the others or hardly do anything: {join_names(others, _NAMED)}"
        yield _make_note("launchers", text)
    helping = sum(len(process.threads) for process in recording.processes if id(process) in chosen) - len(run.lanes)
    if helping > 0:
        yield _make_note("helper threads", f"threads that hardly worked, not counted: {helping}")
    threads = [thread for process in recording.processes for thread in process.threads.values()]
    missed = recording.used_s - sum(thread.cpu_s * thread.tail_factor for thread in threads)
    if missed > MISSED * recording.used_s and missed > 0.01:
        text = f"{format_seconds(missed)} of CPU time went to processes that were too short to be seen"
        yield _make_note("processes missed", text, "sample with a shorter --interval")
    if recording.left_running:
        yield _make_note(
            "still running", f"processes still running after the program had ended: {recording.left_running}"
        )


def _describe_idleness(run: SampledRun) -> Iterator[Note]:
    """Yield which processors hardly work, where others do."""
    work = [0.0] * len(run.processors)
    life = [0.0] * len(run.processors)
    for one, q in zip(run.thread_times, run.processor, strict=True):
        work[q] += one.cpu_s + sum(one.io_s.values()) + one.delay_s
        life[q] += one.life_s
    busy = [w / t if t > 0 else 0.0 for w, t in zip(work, life, strict=True)]
    idle = [q for q, share in enumerate(busy) if share < IDLE * max(busy)]
    for q in idle[:_NAMED]:
        thread = next(lane.thread for lane, place in zip(run.lanes, run.processor, strict=True) if place == q)
        call = find_blocking_call(thread)
        where = f", and was mostly in {call}" if call else ""
        yield _make_note(
            "idle processor",
            f"{run.processors[q].name} worked {format_share(busy[q])} of its time{where}; the busiest "
            f"{format_share(max(busy))}",
        )
    if len(idle) > _NAMED:
        yield _make_note("idle processor", f"{len(idle) - _NAMED} more processors hardly worked")


def _describe_end(run: SampledRun) -> Iterator[Note]:
    code = run.recording.code
    if code:
        yield _make_note("program failed", f"{describe_exit_status(code)}, so the run may be incomplete")


def describe_exit_status(code: int) -> str:
    """Return in words how a program ended."""
    if code >= 0:
        return f"the program ended with exit status {code}"
    return f"the program was ended by {name_signal(-code)}"
