"""A line on standard error while something takes long, if somebody is looking."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Nothing is shown for what takes less (seconds), and then the line is renewed this often.
_PATIENCE = 0.7
_PERIOD = 0.5


@contextmanager
def working(words: str) -> Iterator[None]:
    """Show ``words`` and the seconds that have passed, from the first moment in which one would wonder."""
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = Event()
    teller = Thread(target=_tell, args=(stream, words, done, monotonic()), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(stream: TextIO, words: str, done: Event, start: float) -> None:
    from advisor.render.clean import clean
    from advisor.render.text import head

    shown = ""
    patience = _PATIENCE
    with suppress(OSError, ValueError):
        while not done.wait(patience):
            shown = head(f"{clean(words, stream.encoding)}: {monotonic() - start:.0f} s", 78)
            stream.write(f"\r{shown}")
            stream.flush()
            patience = _PERIOD
        if shown:
            stream.write(f"\r{' ' * len(shown)}\r")
            stream.flush()
