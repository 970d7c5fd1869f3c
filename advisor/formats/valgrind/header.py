"""Lines of an output of valgrind that hold a word, a colon and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from advisor.formats.valgrind.line_errors import MistakeError

#: Events per line, and what stands at the beginning of a line of counts.
_EVENTS: Final = 64
_POSITIONS: Final = ("instr", "addr", "bb", "line")
_EVENT: Final = re.compile(r"\w{1,100}")
_NUMBER: Final = re.compile(r"\d{1,9}")
_CACHE: Final = re.compile(r"(I1|D1|LL|L2) cache: +(\S.*)")


@dataclass(slots=True)
class DumpHeader:
    """What the lines said so far."""

    command: str = ""
    pid: int | None = None
    thread: int | None = None
    part: int = 1
    caches: list[str] = field(default_factory=list)
    positions: tuple[str, ...] = ("line",)
    events: tuple[str, ...] = ()
    parts: int = 0

    def add_line(self, key: str, text: str) -> None:
        """Take in a line ``key: text``; raises ``MistakeError`` for one that is not understood."""
        words = tuple(text.split())
        if key == "version" and text != "1":
            raise MistakeError(f"version {text!r} of the format is not known")
        if key == "cmd":
            self.command = text
        elif key in ("pid", "thread", "part"):
            if not _NUMBER.fullmatch(text):
                raise MistakeError(f"{key} is not a number: {text[:50]!r}")
            setattr(self, key, int(text))
        elif key == "desc":
            self._add_cache(text)
        elif key == "positions":
            if not words or not set(words) <= set(_POSITIONS):
                raise MistakeError(f"unknown positions: {text[:50]!r}")
            self.positions = words
        elif key == "events":
            self._set_events(words)
        elif key not in ("version", "creator", "event"):
            raise MistakeError(f"unknown line {key[:50]!r}")

    def _add_cache(self, text: str) -> None:
        found = _CACHE.fullmatch(text.strip())
        if found and f"{found[1]} {found[2]}" not in self.caches:
            self.caches.append(f"{found[1]} {found[2]}")

    def _set_events(self, words: tuple[str, ...]) -> None:
        if not words or len(words) > _EVENTS or len(set(words)) < len(words):
            raise MistakeError("expected the names of events, each once")
        if not all(map(_EVENT.fullmatch, words)):
            raise MistakeError("the name of an event is not a word")
        if self.events and words != self.events:
            raise MistakeError("the parts of the file count different events")
        self.events = words
