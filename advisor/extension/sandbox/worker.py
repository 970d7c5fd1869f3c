"""The parent's side: a worker starts its child when needed, asks it, and replaces it after a fault or many tasks.

Tasks and answers are JSON documents on a pipe: four bytes of length, most significant first, then the text.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import IO, Final, Literal

from advisor.model.errors import AdvisorError
from advisor.support import containment
from advisor.support.child_process import name_signal
from advisor.support.descriptors import has_input

LENGTH: Final = struct.Struct(">I")
#: Longer documents are refused by who receives them.
MOST_BYTES: Final = 64 << 20

Document = dict[str, object]
#: How much of what a child prints is kept, and how long it may take to start.
_TAIL_BYTES: Final = 8 << 10
_START_S: Final = 60.0
#: How long a process that ends is waited for.
_PATIENCE_S: Final = 1.0
#: What a plugin may be asked that has no limit but that of its task.
UNHURRIED: Final = frozenset(("advisor_read", "advisor_trace"))
#: A child that keeps this share of its memory after a task is replaced.
_GROWN: Final = 0.5
_PAGE_B: Final = resource.getpagesize()
#: Answers a request in a child.
Answerer = Callable[[object], Document]


class FrameError(Exception):
    """What came through the pipe is no frame."""


class FrameTimeoutError(FrameError):
    """No frame came in time."""


class PeerExitedError(FrameError):
    """The other end is gone."""


def send_frame(descriptor: int, document: Document) -> None:
    """Write ``document``; raises ``OSError`` if the reader is gone."""
    text = json.dumps(document).encode("ascii")
    rest = memoryview(LENGTH.pack(len(text)) + text)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def receive_frame(descriptor: int, seconds: float | None = None) -> Document:
    """Return the next document; raises ``FrameError``, also when it is not complete within ``seconds``."""
    end = None if seconds is None else monotonic() + seconds
    (length,) = LENGTH.unpack(_read_bytes(descriptor, LENGTH.size, end))
    if length > MOST_BYTES:
        raise FrameError(f"an answer of {length:,} bytes; at most {MOST_BYTES:,} are taken")
    try:
        document = json.loads(_read_bytes(descriptor, length, end))
    except (ValueError, RecursionError) as error:
        raise FrameError("an answer that is not JSON") from error
    if not isinstance(document, dict):
        raise FrameError("an answer that is not a JSON object")
    return document


def _read_bytes(descriptor: int, size: int, end: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if end is not None and not has_input(descriptor, end - monotonic()):
            raise FrameTimeoutError("no answer in time")
        part = os.read(descriptor, min(size - len(parts), 1 << 16))
        if not part:
            raise PeerExitedError("the process ended without an answer")
        parts += part
    return bytes(parts)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a task may take: memory of its child, wall and CPU seconds; ``tasks`` is how many a child serves.

    A plugin of others that is asked meanwhile has ``plugin_s`` to answer, unless it reads a file.
    """

    memory_B: int = 2 << 30
    wall_s: float = 300.0
    cpu_s: int = 300
    tasks: int = 2000
    plugin_s: float = 10.0


class TaskFailed(Exception):
    """A task without a result: ``refused`` for its data, ``unreachable`` where these could not be read for now, a
    ``fault`` of its code, or ``killed`` for its limits.

    ``at`` names what the task was about when its child was lost, as far as the task said, ``asked`` all that it had
    been about, in that order; ``late`` tells that it was lost because that took too long, ``fresh`` that its child had
    done nothing else before.
    """

    def __init__(
        self,
        kind: Literal["refused", "unreachable", "fault", "killed"],
        reason: str,
        at: str | None = None,
        *,
        asked: tuple[str, ...] = (),
        late: bool = False,
        fresh: bool = True,
    ) -> None:
        self.asked = asked
        self.fresh = fresh
        self.kind = kind
        self.reason = reason
        self.at = at
        self.late = late
        super().__init__(reason)


class Worker:
    """One child at a time; not to be shared between threads, except for ``close``.

    Its tasks may change files at ``places``, and where gapwatch keeps caches.
    """

    def __init__(
        self, module: str, limits: Limits, environment: Mapping[str, str] | None = None, places: Sequence[Path] = ()
    ) -> None:
        self._command = [
            sys.executable, "-P", "-m", "advisor.extension.sandbox.child", module,
            str(limits.memory_B), str(limits.cpu_s), *map(str, places),
        ]  # fmt: skip
        self._limits = limits
        self._environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **(environment or {})}
        self._child: subprocess.Popen[bytes] | None = None
        self._printed: deque[bytes] = deque(maxlen=8)
        self._reader: Thread | None = None
        self._served = 0
        self._at: str | None = None
        self._asked: dict[str, None] = {}
        self._allowed_s = limits.wall_s
        self._closed = False

    def run_task(self, task: Document, answer_question: Answerer | None = None) -> object:
        """Return the result of a task; raises ``TaskFailed``. After a fault the next task gets a new child.

        What the child asks meanwhile is answered by ``answer_question``; whatever that raises ends the task.
        """
        self._at = None
        self._asked.clear()  # a child that does not start, or ended since, was lost over nobody who was asked before
        child = self._ready_child()
        try:
            send_frame(_file_descriptor(child.stdin), task)
            answer = self._receive_answer(child, monotonic() + self._limits.wall_s, answer_question)
        except FrameTimeoutError as error:
            raise self._fail_task(f"took more than {self._allowed_s:g} s", late=True) from error
        except (PeerExitedError, OSError) as error:
            raise self._fail_task(_describe_exit(child) or str(error)) from error
        except FrameError as error:
            raise self._fail_task(str(error)) from error
        except AdvisorError:  # there is no answer to a question
            self.stop_child()
            raise
        fresh, self._served = not self._served, self._served + 1
        if "result" in answer:
            return answer["result"]
        for kind in ("refused", "unreachable"):
            if kind in answer:
                raise TaskFailed(kind, str(answer[kind]))
        self.stop_child()
        reason = str(answer.get("fault", "an answer without a result"))
        raise TaskFailed("fault", reason, asked=tuple(self._asked), fresh=fresh)

    def _receive_answer(self, child: subprocess.Popen[bytes], end: float, answer_question: Answerer | None) -> Document:
        """Return the answer to the task at hand, noting on the way what it is about."""
        due, self._allowed_s = end, self._limits.wall_s
        while True:
            answer = receive_frame(_file_descriptor(child.stdout), max(due - monotonic(), 0.0))
            if answer.keys() == {"question"} and answer_question is not None:
                send_frame(_file_descriptor(child.stdin), answer_question(answer["question"]))
                continue
            if answer.keys() != {"at", "what"}:
                return answer
            self._at, due, self._allowed_s = str(answer["at"]) or None, end, self._limits.wall_s
            if self._at:
                self._asked.pop(self._at, None)  # in the order in which they were asked last
                self._asked[self._at] = None
            if self._at and answer["what"] and answer["what"] not in UNHURRIED:
                due, self._allowed_s = min(end, monotonic() + self._limits.plugin_s), self._limits.plugin_s

    def close(self) -> None:
        """End the child, whatever it is at, and start none from now on."""
        self._closed = True
        self.stop_child()

    def stop_child(self) -> None:
        """End the child and everything that it started."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            containment.kill_tree(child.pid)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        try:
            child.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:  # one that hangs in the kernel ends when that lets it
            Thread(target=child.wait, daemon=True).start()
        for stream in (child.stdin, child.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()

    def _ready_child(self) -> subprocess.Popen[bytes]:
        """Return a child that waits for a task."""
        if self._child is not None and (self._served >= self._limits.tasks or self._has_grown(self._child)):
            self.stop_child()
        if self._child is None:
            self._start_child()
        if self._child is None:
            raise TaskFailed("killed", "was stopped")
        return self._child

    def _has_grown(self, child: subprocess.Popen[bytes]) -> bool:
        """Return whether a child keeps so much memory after its tasks that the next one could lack it."""
        with suppress(OSError, ValueError, IndexError):
            pages = int(Path(f"/proc/{child.pid}/statm").read_text(encoding="ascii").split()[1])
            return pages * _PAGE_B > _GROWN * self._limits.memory_B
        return False

    def _start_child(self) -> None:
        self._served = 0
        self._printed.clear()
        try:
            child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=self._environment, start_new_session=True, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            raise TaskFailed("unreachable", f"no process could be started: {error.strerror}") from error
        self._reader = Thread(target=_drain_stream, args=(child.stderr, self._printed), daemon=True)
        self._reader.start()
        self._child = child
        if self._closed:  # by another thread, which may have found no child yet
            raise self._fail_task("was stopped")
        try:
            receive_frame(_file_descriptor(child.stdout), _START_S)
        except FrameError as error:
            raise self._fail_task("did not start") from error

    def _fail_task(self, reason: str, *, late: bool = False) -> TaskFailed:
        """Return the failure of a task whose child is gone from now on, with what the child said last."""
        self.stop_child()
        if self._reader is not None:
            self._reader.join(_PATIENCE_S)
        said = _find_last_word(b"".join(self._printed).decode("utf-8", "replace"))
        return TaskFailed(
            "killed",
            f"{reason}{f' ({said[-300:]})' if said else ''}",
            self._at,
            asked=tuple(self._asked),
            late=late,
            fresh=not self._served,
        )


def _find_last_word(text: str) -> str:
    """Return the exception of the last traceback in a text, without notes that were added to it; else the last line."""
    _, traceback, tail = text.rpartition("Traceback (most recent call last):\n")
    lines = tail.rstrip().split("\n")
    stated = (line for line in lines if traceback and not line.startswith(" "))
    return next(stated, lines[-1])


def _describe_exit(child: subprocess.Popen[bytes]) -> str | None:
    """Return how a child ended that was not stopped; None if that says nothing."""
    try:
        code = child.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return None
    if code < 0:
        return f"was ended by {name_signal(-code)}"
    return f"ended with exit code {code}" if code else None


def _file_descriptor(stream: IO[bytes] | None) -> int:
    assert stream is not None
    return stream.fileno()


def _drain_stream(stream: IO[bytes] | None, printed: deque[bytes]) -> None:
    """Keep the end of a child's output, so that it never blocks on a full pipe."""
    assert stream is not None
    with stream, suppress(OSError, ValueError):
        while part := os.read(stream.fileno(), _TAIL_BYTES):
            printed.append(part)
