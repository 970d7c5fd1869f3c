"""A command in a child of its own: whatever a plugin does to the process, the command ends with its result or a reason.

The child does everything, also the output, and says on a pipe which plugin it asks. Where it is lost meanwhile, it is
that plugin's doing: the next child does without it. A child that is lost after it began to write its result, or without
having asked anybody, is the end of the command: no verdict, and a sentence.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from time import monotonic, sleep
from typing import Final, NoReturn, TextIO

from advisor.extension.suspects import Suspects
from advisor.model.errors import AdvisorError
from advisor.support.descriptors import has_input

#: How long a plugin may take to be imported or to answer (seconds), unless this variable says otherwise.
PLUGIN_S: Final = 60.0
VARIABLE: Final = "GAPWATCH_PLUGIN_TIME"
#: What may take as long as it needs: reading, and the commands of plugins themselves.
UNHURRIED: Final = frozenset(("advisor_read", "advisor_trace", "command"))
#: So often it is looked whether the child is there still (seconds); a process that it left may hold its pipe open.
_TICK_S: Final = 0.2
_GRACE_S: Final = 2.0
#: How commands end that failed for a reason of ours, and that the user interrupted.
INTERNAL: Final = 3
INTERRUPTED: Final = 130
#: Codes of children that are a plugin's doing: the user interrupts this process, which tells its child.
_NO_RESULT: Final = {INTERNAL: "failed with an internal error", INTERRUPTED: "was interrupted, but not by the user"}


class ChildLost(AdvisorError):
    """The child that ran the command ended before the command was done; ``plugin`` is whom it asked then.

    Where it asked nobody, those whom it had ``asked`` are suspects: one may have left a thread or a signal behind.
    """

    def __init__(self, reason: str, plugin: str | None, asked: tuple[str, ...], *, delivering: bool) -> None:
        self.reason, self.plugin, self.asked, self.delivering = reason, plugin, asked, delivering
        whose = f" while the plugin {plugin!r} was asked" if plugin else ""
        super().__init__(f"the command ended before it was done, without a result: its process {reason}{whose}")


class _ChildState:
    """What this process knows when it is such a child: where to speak, and which plugins to leave out, and why."""

    def __init__(self, left_out: Mapping[str, str], offline: bool, confines: bool) -> None:
        self.confines = confines
        self.pipe = -1
        self.left_out = left_out
        self.offline = offline
        self.limits = ExitStack()
        self.delivering = False
        self.output: TextIO | None = sys.stdout
        self.keeps_output = False


_state: _ChildState | None = None
_expects_parts = False


def plugins_left_out() -> Mapping[str, str]:
    """Return the plugins that this process does without, and why."""
    return _state.left_out if _state is not None else {}


def announce_plugin(plugin: str, what: str) -> None:
    """Say that a plugin of others is asked for ``what`` (a hook, ``import`` or ``command``); nobody any more for ''."""
    if _state is None:
        return
    from advisor.support.containment import limit_plugin

    _state.limits.close()
    _send(_state.pipe, {"at": plugin, "what": what})
    if plugin:
        if not _state.keeps_output:
            _state.output, _state.keeps_output = _copy_stream(_state.output), True
        _state.limits.enter_context(_divert_output())
        _state.limits.enter_context(limit_plugin(hurried=what not in UNHURRIED))


def confine_process(prepare: Callable[[], None], places: Callable[[], Iterable[Path]]) -> None:
    """Let an offline child change files at ``places``, and where gapwatch keeps caches, only; others may change any.

    From now on it reaches no network; ``prepare`` is called just before.
    """
    if _state is not None and _state.offline:
        from advisor.support import containment, file_access

        prepare()
        containment.deny_network()
        file_access.confine_process(places())


def result_stream() -> TextIO | None:
    """Return where results go: to standard output as it was before any plugin was asked, which may print later, too."""
    return sys.stdout if _state is None or not _state.keeps_output else _state.output


def _copy_stream(stream: TextIO | None) -> TextIO | None:
    """Return a stream of its own to where ``stream`` goes; the same where it has no descriptor, or is closed."""
    if not isinstance(stream, TextIOWrapper):
        return stream
    try:
        stream.flush()
        copy = os.dup(stream.fileno())
    except (OSError, ValueError):
        return stream
    return open(copy, "w", encoding=stream.encoding, errors=stream.errors, newline="")


@contextmanager
def _divert_output() -> Iterator[None]:
    """Send what is written to standard output, also past Python, to standard error: from now on, threads write later.

    Standard error is as before afterwards, also where somebody closed it.
    """
    try:
        kept = os.dup(2)
    except OSError:  # it was closed from the start
        kept = os.open(os.devnull, os.O_WRONLY)
    os.dup2(kept, 1)
    try:
        yield
    finally:
        with suppress(OSError):  # who closed everything closed this, too
            os.dup2(kept, 2)
            os.dup2(kept, 1)
            os.close(kept)


def announce_delivery() -> None:
    """Say that the result is being written: from now on nothing may be done again."""
    if _state is not None and not _state.delivering:
        _state.delivering = True
        _send(_state.pipe, {"delivering": True})


def expect_parts() -> None:
    """Say that this process is a command's own, and that parts of the command are left to children (``run_part``)."""
    global _expects_parts
    _expects_parts = True


def run_part(task: Callable[[], int], *, offline: bool = True) -> int:
    """Run a part of a command, in a child where the process is the command's own; raises ``ChildLost``.

    One that runs the user's program is not ``offline``: launchers of MPI reach their ranks by the network.
    """
    return run_supervised(task, offline=offline) if _expects_parts else task()


def run_supervised(task: Callable[[], int], *, offline: bool = False, confines: bool = False) -> int:
    """Run ``task`` in a child, again without each plugin that ends it, and return its result; raises ``ChildLost``.

    An ``offline`` task, and all that it starts, reaches no network; one that ``confines`` itself (``confine_process``)
    does so until then, before it asks any plugin.
    """
    suspects, reasons = Suspects(), dict[str, str]()
    while True:
        try:
            left_out = {name: reasons[name] for name in sorted(suspects.left_out)}
            return _run_once(task, _ChildState(left_out, offline, confines))
        except ChildLost as lost:
            if lost.delivering or not suspects.record_loss(lost.plugin, lost.asked, lost.reason):
                raise
            for name in suspects.left_out - reasons.keys():
                when = "when" if name == lost.plugin else "after"
                reasons[name] = f"left out: the process {lost.reason} {when} it was asked"


def _run_once(task: Callable[[], int], state: _ChildState) -> int:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        state.pipe = sending
        _run_child(task, state)
    os.close(sending)
    waited, requests = _Wait(child, receiving), list[int]()
    try:
        with _interrupted_by_request(requests):
            return waited.receive_result()
    except KeyboardInterrupt:
        if waited.interrupt_child() and not requests:  # it said so itself
            return INTERRUPTED
        raise
    finally:
        os.close(receiving)
        waited.end_child()
        if requests:  # whoever asked sees that this process heeded it
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _interrupted_by_request(requests: list[int]) -> Iterator[None]:
    """Take a request to end, as of batch systems, for an interruption, so that what the child runs ends with it.

    ``requests`` holds it then.
    """

    def interrupt_command(number: int, _: object) -> NoReturn:
        requests.append(number)
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt_command)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run_child(task: Callable[[], int], state: _ChildState) -> NoReturn:
    """Do the task in a session of its own and say how it ended; whatever is left to be done at the end is not done."""
    global _state
    code: int | None = None
    try:
        from advisor.support import containment

        os.setsid()
        containment.die_with_parent()
        if state.offline and not state.confines:
            containment.deny_network()
        _state = state
        code = task()
        for stream in (result_stream(), sys.stdout, sys.stderr):
            if stream is not None:
                with suppress(OSError, ValueError, AttributeError):
                    stream.flush()
    finally:
        with suppress(Exception):  # before the result is told: from then on this process may be ended
            containment.kill_descendants()
        if code is not None:
            with suppress(OSError):
                _send(state.pipe, {"exit": code})
        os._exit(0)


def _send(pipe: int, message: dict[str, object]) -> None:
    os.write(pipe, json.dumps(message).encode("ascii") + b"\n")


class _Wait:
    """The parent's side: reads what a child says, until its result is known or the child is lost."""

    def __init__(self, child: int, pipe: int) -> None:
        self._child, self._pipe = child, pipe
        self._buffer = b""
        self._ended: int | None = None
        self._plugin: str | None = None
        self._asked: dict[str, None] = {}
        self._due: float | None = None
        self._delivering = self._done = False
        self._limit_s = _plugin_seconds()

    def receive_result(self) -> int:
        """Return the exit code that the child says; raises ``ChildLost``."""
        while True:
            if has_input(self._pipe, _TICK_S):
                part = os.read(self._pipe, 1 << 16)
                if not part:
                    raise self._make_loss(self._describe_end())
                *lines, self._buffer = (self._buffer + part).split(b"\n")
                for line in lines:
                    if (code := self._take_message(line)) is None:
                        continue
                    if code in _NO_RESULT and self._asked and not self._delivering:
                        raise self._make_loss(_NO_RESULT[code])
                    return code
            elif self._has_ended():
                raise self._make_loss(self._describe_end())
            elif self._due is not None and monotonic() > self._due:
                raise self._make_loss(f"took more than {self._limit_s:g} s")

    def _take_message(self, line: bytes) -> int | None:
        """Return the exit code, if this is what a line says."""
        try:
            message = json.loads(line)
            code, plugin, what = message.get("exit"), message.get("at"), message.get("what")
        except (ValueError, AttributeError, RecursionError):
            raise self._make_loss("wrote into what is not its own") from None
        if isinstance(plugin, str):
            self._plugin = plugin or None
            if plugin:
                self._asked.pop(plugin, None)  # in the order in which they were asked last
                self._asked[plugin] = None
            self._due = monotonic() + self._limit_s if plugin and what not in UNHURRIED else None
        self._delivering |= "delivering" in message
        self._done = isinstance(code, int)
        return code if isinstance(code, int) else None

    def _make_loss(self, reason: str) -> ChildLost:
        return ChildLost(reason, self._plugin, tuple(self._asked), delivering=self._delivering)

    def _has_ended(self) -> bool:
        if self._ended is None:
            process, status = os.waitpid(self._child, os.WNOHANG)
            if process:
                self._ended = os.waitstatus_to_exitcode(status)
        return self._ended is not None

    def _describe_end(self) -> str:
        end = monotonic() + _GRACE_S
        while not self._has_ended() and monotonic() < end:
            sleep(0.005)
        if self._ended is None:
            return "closed what it speaks through"
        if self._ended < 0:
            from advisor.support.child_process import name_signal

            return f"was ended by {name_signal(-self._ended)}"
        return f"ended with exit code {self._ended}"

    def interrupt_child(self) -> bool:
        """Tell the child what the user told this process; return whether it ended within a moment."""
        with suppress(OSError):
            os.killpg(self._child, signal.SIGINT)
        end = monotonic() + _GRACE_S
        while not self._has_ended() and monotonic() < end:
            sleep(0.02)
        return self._has_ended()

    def end_child(self) -> None:
        """End the child and all that it started; one that said its result has nothing more to do."""
        if self._ended is None and not self._done:
            from advisor.support.containment import kill_tree

            kill_tree(self._child)
        with suppress(OSError):
            os.killpg(self._child, signal.SIGKILL)
        if self._ended is None:
            os.waitpid(self._child, 0)


def _plugin_seconds() -> float:
    """Return how long a plugin may take; what the user says is not understood is as if nothing was said."""
    with suppress(ValueError):
        said = float(os.environ.get(VARIABLE, ""))
        return said if 0 < said < float("inf") else PLUGIN_S
    return PLUGIN_S
