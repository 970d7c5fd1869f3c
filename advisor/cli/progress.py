"""A line on standard error while something takes long, if somebody is looking."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import TextIO

#: Nothing is shown for what takes less (seconds), and then the line is renewed this often.
_PATIENCE = 0.7
_PERIOD = 0.5
#: The line is at most that wide, in cells.
_WIDTH = 78
#: There is one line: what begins inside of other work shows nothing.
_LINE = Lock()


def format_time_left(seconds: float) -> str:
    """Return a time as roughly as it is known."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


class _StepProgress:
    """What is done (``title``), how many of ``total`` steps of it are done, and how long the others may take."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title = title
        self._total = total
        self._done: int | None = None
        self._first = (0, monotonic())

    def set_done(self, done: int) -> None:
        """Note that so many steps are done; where the first number is not small, it was done another time."""
        if self._done is None:
            self._first = (done, monotonic()) if done > 1 else self._first
        self._done = done

    def set_title(self, title: str) -> None:
        """Note that something else is done from now on."""
        self.title = title

    def describe_progress(self, start: float) -> str:
        """Return ``12 of 40, 3 s, about 7 s left``, without what is not known."""
        passed = f"{monotonic() - start:.0f} s"
        if self._done is None:
            return passed
        if self._total is None:
            return f"{self._done}, {passed}"
        left = self._describe_time_left()
        return f"{self._done} of {self._total}, {passed}" + ("" if left is None else f", about {left} left")

    def _describe_time_left(self) -> str | None:
        before, since = self._first
        done = (self._done or 0) - before
        if done <= 0 or self._total is None:
            return None
        return format_time_left((monotonic() - since) / done * max(0, self._total - done - before))


@contextmanager
def show_progress(words: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show ``describe_progress`` and the seconds that have passed, from the first moment in which one would wonder.

    Yields what takes the number of steps done so far; of ``total`` steps the time that the others may take is shown.
    """
    with _show_steps(_StepProgress(words, total)) as steps:
        yield steps.set_done


@contextmanager
def show_stages(words: str) -> Iterator[Callable[[str], None]]:
    """Show ``describe_progress`` as ``show_progress`` does; yields what takes other words, for what is done next."""
    with _show_steps(_StepProgress(words, None)) as steps:
        yield steps.set_title


@contextmanager
def _show_steps(steps: _StepProgress) -> Iterator[_StepProgress]:
    stream = sys.stderr
    seen = stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    if not (seen and _LINE.acquire(blocking=False)):
        yield steps
        return
    done = Event()
    teller = Thread(target=_write_progress, args=(stream, steps, done, monotonic()), daemon=True)
    teller.start()
    try:
        yield steps
    finally:
        done.set()
        teller.join()
        _LINE.release()


def _write_progress(stream: TextIO, steps: _StepProgress, done: Event, start: float) -> None:
    from advisor.output.clean import clean_text
    from advisor.output.text_cells import text_head

    widest = 0
    patience = _PATIENCE
    with suppress(OSError, ValueError):
        while not done.wait(patience):
            state = steps.describe_progress(start)
            shown = f"{text_head(clean_text(steps.title, stream.encoding), _WIDTH - 2 - len(state))}: {state}"
            stream.write(f"\r{shown.ljust(widest)}")
            stream.flush()
            widest = max(widest, len(shown))
            patience = _PERIOD
        if widest:
            stream.write(f"\r{' ' * widest}\r")
            stream.flush()
