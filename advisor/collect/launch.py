"""Starts a program, looks at its processes until it ends, and hands it every signal that was meant for it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from advisor.collect.records import Process, Recording
from advisor.collect.sampler import ProcessSampler
from advisor.model.errors import AdvisorError

INTERVAL_S: Final = 0.05
#: Sampling may take this share of one processor; with many processes the interval grows.
SHARE: Final = 0.02
#: The interval changes from sample to sample between half and one and a half of its length, evenly spread, so that a
#: program which repeats itself is not always seen in the same moment (multiples of the golden ratio).
_GOLDEN: Final = 0.6180339887498949
_FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
#: What Python ignores and the program should not.
_RESTORED: Final = (signal.SIGPIPE, signal.SIGXFSZ)
#: ``si_code`` of signals that the terminal sends, to the program as well (sigaction(2)).
_FROM_KERNEL: Final = 0x80


def record_program(
    arguments: Sequence[str], interval_s: float = INTERVAL_S, variables: Mapping[str, str] | None = None
) -> Recording:
    """Run a program with our standard streams, and ``variables`` beside our own, and return what was seen of it.

    Signals are passed on, but for those of the terminal, which reach the program anyway. Raises ``AdvisorError`` where
    the program can't be started.
    """
    started = datetime.now(UTC).astimezone().isoformat(timespec="seconds")
    with _blocked_signals() as (mask, waited):
        origin_s, cost_s = time.monotonic(), time.process_time()
        pid = _start_program(arguments, mask, {**os.environ, **(variables or {})})
        sampler = ProcessSampler(pid, origin_s, interval_s)
        _watch_program(sampler, waited, interval_s)
        sampler.take_sample()
        wall_s, cost_s = time.monotonic() - origin_s, time.process_time() - cost_s
        _, status, usage = os.wait4(pid, 0)
    return Recording(
        arguments=tuple(arguments),
        started=started,
        wall_s=wall_s,
        code=os.waitstatus_to_exitcode(status),
        used_s=usage.ru_utime + usage.ru_stime,
        processes=_close_processes(sampler, wall_s),
        samples=sampler.samples,
        interval_s=interval_s,
        longest_s=sampler.longest_s,
        cost_s=cost_s,
        sees_calls=sampler.sees_calls,
        left_running=len(sampler.alive),
    )


def _start_program(arguments: Sequence[str], mask: set[signal.Signals], variables: Mapping[str, str]) -> int:
    try:
        return os.posix_spawnp(arguments[0], list(arguments), variables, setsigmask=mask, setsigdef=_RESTORED)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        hint = " (a file of this directory is named ./…)" if _is_local_file(arguments[0]) else ""
        raise AdvisorError(f"can't start {arguments[0]}: {why}{hint}") from error


def _is_local_file(program: str) -> bool:
    return os.sep not in program and "\0" not in program and os.path.isfile(program)


@contextmanager
def _blocked_signals() -> Iterator[tuple[set[signal.Signals], set[signal.Signals]]]:
    """Hold back the signals that are passed on; yield the mask that the program gets, and what to wait for.

    A signal that is ignored, as under nohup, stays so.
    """
    waited = {number for number in _FORWARDED if signal.getsignal(number) != signal.SIG_IGN} | {signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        yield {signal.Signals(number) for number in mask}, waited
    finally:
        while signal.sigtimedwait(waited, 0) is not None:
            pass  # came after the end of the program, for which it was meant
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _watch_program(sampler: ProcessSampler, waited: set[signal.Signals], interval_s: float) -> None:
    """Sample until the program ends, and no more often than its processes allow."""
    while True:
        cost_s = time.process_time()
        sampler.take_sample()
        cost_s = time.process_time() - cost_s
        sampler.interval_s = max(interval_s, cost_s / SHARE)
        pause_s = sampler.interval_s * (0.5 + sampler.samples * _GOLDEN % 1.0)
        if _ends_within(sampler.root, pause_s, waited):
            return


def _ends_within(pid: int, pause_s: float, waited: set[signal.Signals]) -> bool:
    """Wait so long, passing on signals; return whether the program has ended (it still has to be waited for)."""
    until = time.monotonic() + pause_s
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        rest_s = until - time.monotonic()
        if rest_s <= 0:
            return False
        came = signal.sigtimedwait(waited, rest_s)
        if came is not None and came.si_signo != signal.SIGCHLD and came.si_code != _FROM_KERNEL:
            with suppress(OSError):
                os.kill(pid, came.si_signo)
    return True


def _close_processes(sampler: ProcessSampler, wall_s: float) -> tuple[Process, ...]:
    """Return all processes; those that still run are counted up to the end of the program."""
    for process in sampler.processes:
        process.end_s = wall_s if process.end_s is None else process.end_s
        for thread in process.threads.values():
            thread.end_s = process.end_s if thread.end_s is None else thread.end_s
    return tuple(sampler.processes)
