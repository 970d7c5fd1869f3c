"""The events of a Chrome trace, one at a time: the file is never in memory as a whole."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from typing import IO, TYPE_CHECKING, Any, Final

from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK: Final = 4 << 20
#: One event, or what stands before the events, is never this long.
_LONGEST: Final = 64 << 20
_BETWEEN: Final = re.compile(r"[\s,]*")
_EVENTS: Final = re.compile(r'"traceEvents"\s*:\s*\[')


class EventStream:
    """The events of one file, and what stands beside them: ``header``, of which what comes before the events is there
    from the first event on, the rest after the last.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.header: dict[str, Any] = {}
        self._text, self._at, self._ended = "", 0, False
        self._read_bytes = 0

    def iterate_events(self) -> Iterator[dict[str, Any]]:
        """Yield the events in their order; raises ``InputError`` where the file is damaged or cut off."""
        try:
            with self._open() as stream:
                self._stream = stream
                before = self._find_events()
                self._parse_header(f"{before.rstrip().rstrip(',')}}}")
                yield from self._iterate_objects()
                after = self._text[self._at :] + self._read_rest()
                self._parse_header("{" + after.strip().removeprefix(","))
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(self._path, f"cannot be unpacked: {error}") from error
        except RecursionError:
            raise InputError(self._path, "is nested too deeply") from None

    def _open(self) -> IO[str]:
        with self._path.open("rb") as start:
            packed = start.read(2) == b"\x1f\x8b"
        if packed:
            return gzip.open(self._path, "rt", encoding="utf-8", errors="replace")
        return self._path.open("rt", encoding="utf-8", errors="replace")

    def _read_more(self) -> bool:
        """Append to the text, drop what was used; return whether anything came."""
        if len(self._text) - self._at > _LONGEST:
            raise InputError(self._path, "holds an event that is too long", f"character {self._read_bytes}")
        more = self._stream.read(_CHUNK)
        self._read_bytes += len(more)
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)

    def _find_events(self) -> str:
        """Move behind the bracket that opens the events; return what stands before."""
        self._read_more()
        if self._text.lstrip().startswith("["):
            self._at = self._text.index("[") + 1
            return ""
        while (found := _EVENTS.search(self._text)) is None:
            if not self._read_more():
                raise InputError(self._path, "holds no list traceEvents")
        self._at = found.end()
        return self._text[: found.start()]

    def _iterate_objects(self) -> Iterator[dict[str, Any]]:
        decoder = json.JSONDecoder()
        decode = decoder.raw_decode
        while True:
            match = _BETWEEN.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at >= len(self._text):
                if not self._read_more():
                    raise InputError(self._path, "is cut off: the list of events does not end")
                continue
            if self._text[self._at] == "]":
                self._at += 1
                return
            try:
                event, self._at = decode(self._text, self._at)
            except json.JSONDecodeError as error:
                place = self._read_bytes - len(self._text) + error.pos
                if not self._read_more():
                    raise InputError(self._path, f"is damaged or cut off: {error.msg}", f"character {place}") from None
                continue
            except ValueError as error:
                raise InputError(self._path, f"is damaged: {error}") from None
            if isinstance(event, dict):
                yield event

    def _read_rest(self) -> str:
        return self._stream.read(_CHUNK)

    def _parse_header(self, text: str) -> None:
        """Keep what stands before or behind the events, as far as it is sound."""
        try:
            found = json.loads(text)
        except ValueError:
            return
        if isinstance(found, dict):
            self.header |= found
