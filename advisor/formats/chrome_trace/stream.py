"""The events of a Chrome trace, some at a time: the file is never in memory as a whole."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from advisor.formats.number_lines import open_maybe_packed
from advisor.model.errors import InputError
from advisor.model.records import Note

_CHUNK: Final = 4 << 20
#: One event, or what stands before the events, is never this long.
_LONGEST: Final = 64 << 20
_BETWEEN: Final = re.compile(r"[\s,]*")
_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
#: Where an event ends and another one follows, or at least objects inside an event do.
_BOUNDARY: Final = re.compile(rb'\}(\s*,\s*)\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id)"')
#: So far from the end of a chunk a boundary is looked for, and so many are tried.
_TAIL: Final = 64 << 10
_TRIES: Final = 4


#: Said of a trace whose list of events lacks its closing bracket.
OPEN_ENDED: Final = Note(
    "trace does not end", "the list of events is not closed: the program ended early, or the file was cut off", 0.1
)


class EventArgs(msgspec.Struct, gc=False):
    """What is read of the arguments of an event; whatever type they have."""

    name: Any = None
    correlation: Any = None
    correlation_id: Any = msgspec.field(default=None, name="correlationId")
    external_id: Any = msgspec.field(default=None, name="External id")
    device: Any = None
    stream: Any = None
    bytes: Any = None
    size: Any = None
    direction: Any = None
    grid: Any = None
    blocks_per_sm: Any = msgspec.field(default=None, name="blocks per SM")
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")
    members: Any = msgspec.field(default=None, name="Process Group Name")
    member_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    collective: Any = msgspec.field(default=None, name="Collective name")
    dtype: Any = None
    elements_in: Any = msgspec.field(default=None, name="In msg nelems")
    elements_out: Any = msgspec.field(default=None, name="Out msg nelems")
    shapes: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")  # of every operator: left as text
    types: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input type")


class Event(msgspec.Struct, gc=False):
    """What is read of an event; None where it is missing."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = 0
    tid: Any = 0
    ts: Any = None
    dur: Any = None
    args: EventArgs | str | int | float | bool | list[Any] | None = None


_LEFT_AS_TEXT: Final = tuple(each.encode_name for each in msgspec.structs.fields(EventArgs) if each.type is msgspec.Raw)
#: Fields that are not read are passed over, which takes a fifth of the time of making objects of them.
_EVENT_LIST: Final = msgspec.json.Decoder(list[Event])
_SHAPES: Final = msgspec.json.Decoder(list[list[int]])
_TYPES: Final = msgspec.json.Decoder(list[str])


def read_tensors(args: EventArgs) -> list[tuple[str, list[int]]]:
    """Return type and shape of each tensor that an operator got; none where these are not recorded (as plain ones)."""
    if not args.shapes or not args.types:
        return []
    try:
        return list(zip(_TYPES.decode(args.types), _SHAPES.decode(args.shapes), strict=True))
    except (msgspec.DecodeError, ValueError):
        return []


class EventStream:
    """The events of one file, and what stands beside them: ``header``, of which what comes before the events is there
    from the first event on, the rest after the last.

    ``open_ended`` is, after the last, whether a file that is nothing but a list of events lacks its closing bracket.
    The format allows that, so that a program may end at any time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.header: dict[str, Any] = {}
        self.open_ended = False
        self._bare = False
        self._data, self._at = b"", 0
        self._read_bytes = 0

    def iterate_batches(self) -> Iterator[list[Event]]:
        """Yield the events in their order; raises ``InputError`` where the file is damaged or cut off."""
        try:
            with open_maybe_packed(self._path) as stream:
                self._stream = stream
                before = self._find_events().decode("utf-8", "replace")
                self._parse_header(f"{before.rstrip().rstrip(',')}}}")
                yield from self._iterate_chunks()
                after = (self._data[self._at :] + self._stream.read(_CHUNK)).decode("utf-8", "replace")
                self._parse_header("{" + after.strip().removeprefix(","))
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(self._path, f"cannot be unpacked: {error}") from error
        except RecursionError:
            raise InputError(self._path, "is nested too deeply") from None

    def _read_more(self) -> bool:
        """Append to the data, drop what was used; return whether anything came."""
        if len(self._data) - self._at > _LONGEST:
            raise InputError(self._path, "holds an event that is too long", f"byte {self._read_bytes}")
        more = self._stream.read(_CHUNK)
        self._read_bytes += len(more)
        self._data, self._at = self._data[self._at :] + more, 0
        return bool(more)

    def _find_events(self) -> bytes:
        """Move behind the bracket that opens the events; return what stands before."""
        self._read_more()
        if self._data.lstrip().startswith(b"["):
            self._at = self._data.index(b"[") + 1
            self._bare = True
            return b""
        while (found := _EVENTS.search(self._data)) is None:
            if not self._read_more():
                raise InputError(self._path, "holds no list traceEvents")
        self._at = found.end()
        return self._data[: found.start()]

    def _iterate_chunks(self) -> Iterator[list[Event]]:
        """Yield the events of each chunk: by boundaries as far as those are found, then one by one."""
        while True:
            if events := self._decode_to_boundary():
                yield events
            events, ended = self._decode_singly()
            yield events
            if ended:
                return

    def _decode_to_boundary(self) -> list[Event]:
        """Return the events up to the last boundary in the chunk, none where they cannot be read so.

        A list of whole events that is closed there is sound JSON; one cut within an event, or a string, is not.
        """
        found = list(_BOUNDARY.finditer(self._data, max(self._at, len(self._data) - _TAIL)))
        for boundary in found[: -_TRIES - 1 : -1]:
            try:
                events = _EVENT_LIST.decode(b"[%b]" % self._data[self._at : boundary.start() + 1].lstrip(b" \t\r\n,"))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            self._at = boundary.end(1)
            return events
        return []

    def _decode_singly(self) -> tuple[list[Event], bool]:
        """Return the events in what is left of the chunk, and whether the last one was among them.

        Bytes stand for characters until the end of an event is found: so places in the data and in the text agree.
        """
        text, at = self._data[self._at :].decode("latin-1"), 0
        decode = json.JSONDecoder().raw_decode
        events: list[Event] = []
        problem, place = "is cut off: the list of events does not end", None
        while (at := _skip_between(text, at)) < len(text) and text[at] != "]":
            try:
                event, end = decode(text, at)
            except json.JSONDecodeError as error:
                problem = f"is damaged or cut off: {error.msg}"
                place = f"byte {self._read_bytes - len(text) + error.pos}"
                break
            except ValueError as error:
                raise InputError(self._path, f"is damaged: {error}") from None
            if isinstance(event, dict):
                events.append(_convert_event(event, text[at:end]))
            at = end
        self._at += at
        if text[at : at + 1] == "]":
            self._at += 1
            return events, True
        if not self._read_more():
            self.open_ended = self._bare and place is None
            if not self.open_ended:
                raise InputError(self._path, problem, place)
        return events, self.open_ended

    def _parse_header(self, text: str) -> None:
        """Keep what stands before or behind the events, as far as it is sound."""
        try:
            found = json.loads(text)
        except ValueError:
            return
        if isinstance(found, dict):
            self.header |= found


def _skip_between(text: str, at: int) -> int:
    """Return where the next event, or the end of their list, stands."""
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _convert_event(event: dict[str, Any], text: str) -> Event:
    """Return an event that was decoded from ``text``, whose characters stand for bytes."""
    if not text.isascii():
        event = json.loads(text.encode("latin-1").decode("utf-8", "replace"))
    args = event.get("args")
    if isinstance(args, dict):
        event["args"] = args | {
            key: msgspec.Raw(json.dumps(args[key]).encode()) for key in _LEFT_AS_TEXT if key in args
        }
    return msgspec.convert(event, Event)
