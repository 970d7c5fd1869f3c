"""Facts about messages, collectives, synchronizations and I/O, from the causes of a profile.

Where events are recorded and none occurred (no message was sent, no file was read) shares, counts and sizes are 0.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts import collecting, event_rows
from advisor.advice.facts.count_facts import sum_counts
from advisor.advice.facts.source import compute_share
from advisor.trace import io_calls
from advisor.trace.counts import ANSWER_SECONDS, REPEATED_SECONDS, SPIN_SECONDS, TASK_RECORDING

if TYPE_CHECKING:
    from advisor.advice.facts.source import Compute, FactSource

#: Messages of at most so many bytes are small.
SMALL_MESSAGE_B: Final = 4096
#: Share of the I/O time from which one processor counts as the one that does it.
ALONE: Final = 0.9
#: An instance with this part of the usual work is an iteration.
WORTH_COUNTING: Final = 0.25
#: Phases with at least this share of all work count iterations by their work, others by their number.
WORKING: Final = 0.01

#: Who computes for this part of the run does a good deal of the work.
SHARED_WORK: Final = 0.1
#: Threads that compute in turns do so for no longer than the run lasts, together, but for what clocks are off by; two
#: that work at the same time for a tenth of it are above that.
IN_TURNS: Final = 1.05

#: Categories of the seconds of collectives.
_COMMUNICATING: Final = ("transfer", "wait", "sync")
#: Collecting and broadcasting belong together if there are nearly as many calls of both.
_PAIRED: Final = 0.8

WAITING_KINDS: Final = {
    "late_sender": ("late sender",),
    "late_receiver": ("late receiver",),
    "collective": ("collective", "late root"),
    "late_root": ("late root",),
    "barrier": ("barrier", "end of run"),
    "thread": ("thread barrier", "lock", "tasks"),
    "task": ("tasks",),
}
THREAD_KINDS: Final = ("thread barrier", "thread start", "lock", "tasks")


def iterations_with_work(source: FactSource) -> float:
    """Return how often the site's family is gone through with work in it.

    A phase whose instances hold equal work counts each of them. If work is in few of them, as where a step ends with a
    row of equal reductions, few count: those with at least a quarter of the usual mean computation c of an instance,
    the c up to which half of all work is. So a few instances that were disturbed change nothing.
    """
    loads, family = source.loads, source.family
    if not family:
        return 1.0
    each = {p: source.mean_computation(p) for p in family}
    iterations = {p: source.profile.phases[p].iterations for p in family}
    largest = max(family, key=lambda p: (each[p].sum(), iterations[p], -p))
    work = each[largest]
    everything = sum(float(phase.mean.sum()) for phase in loads.phases)
    if not work.sum() > max(WORKING * everything, 0.0):  # clocks that disagree can leave less than nothing
        return float(max(iterations.values()))
    held = np.sort(work)
    until = np.cumsum(held)
    usual = held[np.searchsorted(until, until[-1] / 2)]
    return float((work >= WORTH_COUNTING * usual).sum())


def _per_iteration(category: str, kinds: tuple[str, ...], trait: str | None, source: FactSource) -> float | None:
    if source.family_events is None:
        return None
    return source.family_events.select_rows(category, kinds, trait).calls_per_processor() / max(
        iterations_with_work(source), 1.0
    )


def _seconds_share(category: str, kinds: tuple[str, ...], trait: str | None, source: FactSource) -> float | None:
    """Return the share of the seconds of a category that events of these kinds and calls take."""
    if source.events is None:
        return None
    return compute_share(
        source.events.select_rows(category, kinds, trait).seconds, source.events.select_rows(category).seconds
    )


def _message_share(category: str, kind: str, source: FactSource) -> float | None:
    """Return the share of a category that messages take: neither one-sided communication nor setting up.

    Of messages one end can be moved; a put has no other end, and a communicator is made once.
    """
    whole = _seconds_share(category, (kind,), None, source)
    others = (_seconds_share(category, (kind,), trait, source) for trait in (event_rows.ONE_SIDED, event_rows.SETS_UP))
    return None if whole is None else max(whole - sum(share or 0.0 for share in others), 0.0)


def _one_sided_share(source: FactSource) -> float | None:
    """Return the share of one-sided communication in what is transferred and waited for; fences are no part of it."""
    if source.events is None:
        return None
    mine = (("transfer", ()), ("wait", ("unmatched",)))
    seconds = sum(source.events.select_rows(each, kinds, event_rows.ONE_SIDED).seconds for each, kinds in mine)
    return compute_share(seconds, sum(source.events.select_rows(each).seconds for each, _ in mine))


def _threads_created(source: FactSource) -> float | None:
    """Return how many threads of POSIX and processes each processor that creates any has created."""
    if source.events is None:
        return None
    return source.events.select_rows("sync", (), event_rows.CREATES_THREADS).calls_per_processor()


def _work_per_thread_s(source: FactSource) -> float | None:
    """Return the computation for each thread of POSIX or process that was created; None where none was."""
    if source.events is None or not source.is_work_known:
        return None
    created = source.events.select_rows("sync", (), event_rows.CREATES_THREADS).count
    return float(source.work.sum()) / created if created else None


def _creation_share(source: FactSource) -> float | None:
    """Return the share of creating and joining threads and processes in all synchronizing and waiting."""
    if source.events is None:
        return None
    mine, everything = (
        sum(source.events.select_rows(category, (), trait).seconds for category in ("sync", "wait"))
        for trait in (event_rows.CREATES_OR_JOINS, None)
    )
    return compute_share(mine, everything)


def _task_share(source: FactSource) -> float | None:
    """Return the share of waiting for tasks, and of creating them, without what recording that took."""
    if source.events is None:
        return None
    every, tasks = (source.events.select_rows("wait", kinds).seconds for kinds in ((), WAITING_KINDS["task"]))
    return compute_share(max(tasks - (sum_counts(source, TASK_RECORDING) or 0.0), 0.0), every)


def _lock_share(source: FactSource) -> float | None:
    """Return the share of waiting until a lock is free; who waits for a notice waits for work, or for its result."""
    waiting, notices = (_seconds_share("wait", ("lock",), trait, source) for trait in (None, event_rows.NOTICES))
    return None if waiting is None else waiting - (notices or 0.0)


def _hand_overs(source: FactSource) -> float | None:
    """Return how often threads and processes that share work waited for a lock or a notice."""
    return None if source.events is None else source.events.select_rows("wait", (), event_rows.HANDS_OVER).count


def _notices(source: FactSource) -> float | None:
    """Return how often threads and processes waited for a notice of another one, but for their turn."""
    return None if source.events is None else source.events.select_rows("wait", (), event_rows.QUEUES).count


def _work_per_hand_over_s(source: FactSource) -> float | None:
    """Return the computation between two such waits; None where there is none."""
    often = _hand_overs(source)
    return float(source.work.sum()) / often if often and source.is_work_known else None


def _turns_s(source: FactSource) -> float | None:
    """Return what threads that take turns can win if they work at the same time; 0 where they do not take turns.

    They do where all together compute for no longer than the run lasts, though two or more have much to do, and wait
    for notices of each other.
    """
    notices = _notices(source)
    if notices is None or not source.is_work_known:
        return None
    lasted, work = float(source.seconds[list(source.phases)].sum()), np.sort(source.work)
    if not notices or len(work) < 2 or work[-2] < SHARED_WORK * lasted or work.sum() > IN_TURNS * lasted:
        return 0.0
    return max(lasted - float(work[-1]), 0.0)


def _fence_share(source: FactSource) -> float | None:
    """Return the share of meetings at windows in all synchronizing and waiting."""
    if source.events is None:
        return None
    mine, everything = (
        sum(source.events.select_rows(category, (), trait).seconds for category in ("sync", "wait"))
        for trait in (event_rows.FENCES, None)
    )
    return compute_share(mine, everything)


def _repeated_share(source: FactSource) -> float | None:
    """Return the share of collectives that bring the same data again in all communication; 0 where none was seen."""
    if source.events is None:
        return None
    every = source.events.select_rows("transfer").seconds + source.events.select_rows("wait").seconds
    return compute_share(min(sum_counts(source, REPEATED_SECONDS) or 0.0, every), every)


def _answer_share(source: FactSource) -> float | None:
    """Return the share of waiting for answers that a loop asks for one by one in all waiting, ends included."""
    if source.events is None:
        return None
    answers = sum_counts(source, ANSWER_SECONDS)
    if answers is None:
        return 0.0
    everything = sum(source.events.select_rows(category).seconds for category in ("sync", "wait"))
    return compute_share(min(answers, everything), everything)


def _spin_share(source: FactSource) -> float | None:
    """Return the share of waiting in loops of the program; None where samples don't tell who waited where."""
    spun = sum_counts(source, SPIN_SECONDS)
    waited = [seconds for name in ("wait_s", "sync_s") if (seconds := source.sum_measure(name)) is not None]
    if spun is None or not waited:
        return None
    return compute_share(min(spun, sum(waited)), sum(waited))


def _relay_share(source: FactSource) -> float | None:
    """Return the share of the time in collecting at one rank and in broadcasts, where there is one for each other."""
    if source.events is None or source.family_events is None:
        return None
    seconds, calls = 0.0, []
    for trait in (event_rows.COLLECTS, event_rows.BROADCASTS):
        often = [source.family_events.select_rows(each, (), trait).calls_per_processor() for each in _COMMUNICATING]
        calls.append(max(often))
        seconds += sum(source.events.select_rows(each, (), trait).seconds for each in _COMMUNICATING)
    if min(calls) < _PAIRED * max(calls) or not max(calls):
        return 0.0
    wall = [source.totals.sum_measure("wall_s", phase) for phase in source.phases]
    return None if None in wall else compute_share(seconds, sum(each or 0.0 for each in wall))


def _gathers_per_iteration(source: FactSource) -> float | None:
    often = collecting.count_gathers(source)
    return None if often is None else often / max(iterations_with_work(source), 1.0)


def _mean_bytes(category: str, kinds: tuple[str, ...], trait: str | None, source: FactSource) -> float | None:
    return None if source.events is None else source.events.select_rows(category, kinds, trait).mean_bytes()


def _small_message_share(source: FactSource) -> float | None:
    if source.events is None:
        return None
    return source.events.select_rows("transfer", (), event_rows.SENDS).share_up_to(SMALL_MESSAGE_B)


def _forcing_share(source: FactSource) -> float | None:
    """Return the share of forcing to storage; not known where its seconds are in those of writing."""
    if source.events is None or source.events.select_rows("io", (), io_calls.BLENDED).seconds > 0:
        return None
    return _seconds_share("io", (), io_calls.FORCING, source)


def _forced_share(source: FactSource) -> float | None:
    """Return the share of forcing to storage, and of the writing that is in one sum with it."""
    if source.events is None:
        return None
    found = [source.events.select_rows("io", (), trait).seconds for trait in (io_calls.FORCING, io_calls.BLENDED)]
    return compute_share(sum(found), source.events.select_rows("io").seconds)


def _bytes_between_forcing(source: FactSource) -> float | None:
    """Return the bytes written for each time that data are forced to storage; 0 where they never are."""
    if source.events is None:
        return None
    times, writes = (
        source.events.select_rows("io", (), io_calls.FORCING).count,
        source.events.select_rows("io", (), io_calls.WRITES),
    )
    if not times:
        return 0.0
    mean = writes.mean_bytes()
    return None if mean is None else mean * writes.sized_rows.count / times


def _shared_file_share(source: FactSource) -> float | None:
    # The reads and writes of known size
    found = None if source.events is None else source.events.select_rows("io", (), io_calls.DATA).sized_rows
    shared = None if found is None else found.in_shared_files
    return None if found is None or shared is None else compute_share(shared.count, found.count)


def _io_processors(source: FactSource) -> float | None:
    if source.events is None:
        return None
    return len(source.events.select_rows("io").processors) / len(source.profile.processors)


def _metadata_calls(source: FactSource) -> float | None:
    if source.events is None:
        return None
    return source.events.select_rows("io", (), io_calls.METADATA).calls_per_processor()


def _is_io_by_one(source: FactSource) -> bool | None:
    if source.events is None:
        return None
    each = source.events.select_rows("io").seconds_by_processor(len(source.profile.processors))
    return len(each) > 1 and bool(each.sum() > 0) and bool(each.max() >= ALONE * each.sum())


def _polls_per_message(source: FactSource) -> float | None:
    """Return how often the ranks look for a message for each one that is sent."""
    if source.events is None:
        return None
    polls = source.events.select_rows("transfer", (), event_rows.POLLING).count
    return polls / max(source.events.select_rows("transfer", (), event_rows.SENDS).count, 1)


VALUES: Final[dict[str, Compute]] = {
    **{f"wait.{name}_share": partial(_seconds_share, "wait", kinds, None) for name, kinds in WAITING_KINDS.items()},
    "wait.unmatched_share": partial(_message_share, "wait", "unmatched"),
    "wait.task_share": _task_share,
    "wait.lock_share": _lock_share,
    "wait.interpreter_share": partial(_seconds_share, "wait", (), event_rows.INTERPRETER),
    "wait.hand_over_share": partial(_seconds_share, "wait", (), event_rows.HANDS_OVER),
    "wait.hand_overs": _hand_overs,
    "wait.notices": _notices,
    "wait.work_per_hand_over_s": _work_per_hand_over_s,
    "wait.turns_s": _turns_s,
    "wait.answer_share": _answer_share,
    "comm.repeated_share": _repeated_share,
    "comm.poll_share": partial(_seconds_share, "transfer", (), event_rows.POLLING),
    "comm.polls_per_message": _polls_per_message,
    "wait.spin_share": _spin_share,
    "comm.relay_share": _relay_share,
    "comm.gather_share": collecting.gather_share,
    "comm.mean_gather_B": collecting.mean_gather_bytes,
    "comm.kept_share": collecting.kept_share,
    "comm.answers": collecting.count_answers,
    "comm.work_per_answer_s": collecting.work_per_answer,
    "comm.gathers_per_iteration": _gathers_per_iteration,
    "comm.messages_per_iteration": partial(_per_iteration, "transfer", (), event_rows.SENDS),
    "comm.mean_message_B": partial(_mean_bytes, "transfer", (), event_rows.SENDS),
    "comm.small_message_share": _small_message_share,
    "comm.point_to_point_share": partial(_message_share, "transfer", "message"),
    "comm.collective_share": partial(_seconds_share, "transfer", ("collective",), None),
    "comm.alltoall_share": partial(_seconds_share, "transfer", (), event_rows.ALL_TO_ALL),
    "comm.reductions_per_iteration": partial(_per_iteration, "transfer", (), event_rows.REDUCTIONS),
    "comm.collectives_per_iteration": partial(_per_iteration, "transfer", ("collective",), None),
    "comm.one_sided_share": _one_sided_share,
    "comm.one_sided_per_iteration": partial(_per_iteration, "transfer", (), event_rows.MOVES_REMOTE),
    "comm.mean_one_sided_B": partial(_mean_bytes, "transfer", (), event_rows.MOVES_REMOTE),
    "comm.setup_share": partial(_seconds_share, "transfer", (), event_rows.SETS_UP),
    "comm.setups_per_iteration": partial(_per_iteration, "transfer", (), event_rows.SETS_UP),
    "comm.mean_collective_B": partial(_mean_bytes, "transfer", ("collective",), None),
    "sync.fence_share": _fence_share,
    "sync.barriers_per_iteration": partial(_per_iteration, "sync", (), event_rows.EXPLICIT_BARRIERS),
    "sync.thread_share": partial(_seconds_share, "sync", THREAD_KINDS, None),
    "sync.fork_joins_per_iteration": partial(_per_iteration, "sync", ("thread start",), None),
    "sync.threads_created": _threads_created,
    "sync.work_per_thread_s": _work_per_thread_s,
    "sync.creation_share": _creation_share,
    "io.operations_per_iteration": partial(_per_iteration, "io", (), io_calls.DATA),
    "io.mean_operation_B": partial(_mean_bytes, "io", (), io_calls.DATA),
    "io.processors_share": _io_processors,
    "io.shared_share": _shared_file_share,
    "io.fsync_share": _forcing_share,
    "io.forced_share": _forced_share,
    "io.forced_B": _bytes_between_forcing,
    "io.metadata_share": partial(_seconds_share, "io", (), io_calls.METADATA),
    "io.metadata_calls": _metadata_calls,
    "io.one_processor": _is_io_by_one,
}
