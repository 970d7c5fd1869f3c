"""Recordings of Java Flight Recorder in format 2, written for tests: a few types, as Java describes its own."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

Fields = tuple[tuple[str, int, str], ...]
#: Types by number: name, and fields with their type, ``*`` for references to constants and ``[]`` for lists.
TYPES: Final[dict[int, tuple[str, Fields]]] = {
    4: ("boolean", ()),
    5: ("float", ()),
    6: ("int", ()),
    7: ("long", ()),
    8: ("java.lang.String", ()),
    20: ("jdk.types.Symbol", (("string", 8, ""),)),
    21: ("java.lang.Class", (("name", 20, "*"),)),
    22: ("jdk.types.Method", (("type", 21, "*"), ("name", 20, "*"))),
    23: ("jdk.types.StackFrame", (("method", 22, "*"), ("lineNumber", 6, ""))),
    24: ("jdk.types.StackTrace", (("truncated", 4, ""), ("frames", 23, "[]"))),
    25: ("java.lang.Thread", (("osThreadId", 7, ""),)),
    26: ("jdk.types.ThreadState", (("name", 8, ""),)),
    101: (
        "jdk.ExecutionSample",
        (("startTime", 7, ""), ("sampledThread", 25, "*"), ("stackTrace", 24, "*"), ("state", 26, "*")),
    ),
    102: ("jdk.ActiveSetting", (("startTime", 7, ""), ("id", 7, ""), ("name", 8, ""), ("value", 8, ""))),
    103: ("jdk.CPULoad", (("startTime", 7, ""), ("jvmUser", 5, ""), ("jvmSystem", 5, ""))),
    104: ("jdk.CPUInformation", (("startTime", 7, ""), ("hwThreads", 6, ""))),
    105: ("jdk.JVMInformation", (("startTime", 7, ""), ("javaArguments", 8, ""))),
    106: ("jdk.GarbageCollection", (("startTime", 7, ""), ("sumOfPauses", 7, ""))),
}
_HEAD: Final = 68
_TICKS_PER_S: Final = 1_000_000


@dataclass
class Recording:
    """A chunk to be written: ``samples`` are a thread, its stack with the innermost method first, and a state."""

    samples: list[tuple[int, tuple[str, ...], str]]
    duration_s: float = 1.0
    period: str = "10 ms"
    load: float = 0.125
    processors: int = 4
    arguments: str = "org.example.Heat 1000"
    pauses_s: float = 0.0

    def write(self) -> bytes:
        """Return the chunk: its header, types, constants, and events."""
        metadata = self._write_metadata()
        stacks = sorted({stack for _, stack, _ in self.samples})
        states = sorted({state for _, _, state in self.samples})
        threads = sorted({thread for thread, _, _ in self.samples})
        events = [_event(102, 1, 101, _text("period"), _text(self.period))]
        events += [_event(103, 1, struct.pack(">ff", self.load, 0.0)), _event(104, 1, self.processors)]
        events += [_event(105, 1, _text(self.arguments)), _event(106, 1, int(self.pauses_s * _TICKS_PER_S))]
        events += [
            _event(101, 1, threads.index(thread) + 1, stacks.index(stack) + 1, states.index(state) + 1)
            for thread, stack, state in self.samples
        ]
        constants = self._write_constants(stacks, states, threads)
        body = metadata + constants + b"".join(events)
        head = struct.pack(
            ">4sHHQQQQQQQI", b"FLR\0", 2, 1, _HEAD + len(body), _HEAD + len(metadata), _HEAD, 1_700_000_000 * 10**9,
            int(self.duration_s * 1e9), 0, _TICKS_PER_S, 1,
        )  # fmt: skip
        return head + body

    def _write_constants(self, stacks: list[tuple[str, ...]], states: list[str], threads: list[int]) -> bytes:
        methods = sorted({method for stack in stacks for method in stack})
        owners = sorted({method.rpartition(".")[0] for method in methods})
        names = sorted({*owners, *(method.rpartition(".")[2] for method in methods)})
        tables = {
            20: [_text(name) for name in names],
            21: [_join(names.index(owner) + 1) for owner in owners],
            22: [
                _join(owners.index(method.rpartition(".")[0]) + 1, names.index(method.rpartition(".")[2]) + 1)
                for method in methods
            ],
            24: [
                b"\0" + _join(len(stack), *(n for method in stack for n in (methods.index(method) + 1, 7)))
                for stack in stacks
            ],
            25: [_join(thread) for thread in threads],
            26: [_text(state) for state in states],
        }
        body = _join(1, 0, 0, 0, 1, len(tables))
        for kind, values in tables.items():
            body += _join(kind, len(values)) + b"".join(_join(n) + value for n, value in enumerate(values, 1))
        return _sized(body)

    def _write_metadata(self) -> bytes:
        texts: list[str] = []
        tree = _element("root", {}, texts, [_element("metadata", {}, texts, [_class(n, texts) for n in TYPES])])
        return _sized(_join(0, 0, 0, 1, len(texts)) + b"".join(map(_text, texts)) + tree)


def _class(number: int, texts: list[str]) -> bytes:
    name, fields = TYPES[number]
    members = []
    for title, kind, mark in fields:
        facts = {"name": title, "class": str(kind)}
        facts |= {"constantPool": "true"} if mark == "*" else {"dimension": "1"} if mark else {}
        members.append(_element("field", facts, texts, []))
    return _element("class", {"name": name, "id": str(number)}, texts, members)


def _element(name: str, facts: dict[str, str], texts: list[str], below: list[bytes]) -> bytes:
    numbers = [_number_text(word, texts) for pair in facts.items() for word in pair]
    return _join(_number_text(name, texts), len(facts), *numbers, len(below)) + b"".join(below)


def _number_text(text: str, texts: list[str]) -> int:
    if text not in texts:
        texts.append(text)
    return texts.index(text)


def _event(kind: int, *values: int | bytes) -> bytes:
    return _sized(_join(kind) + b"".join(value if isinstance(value, bytes) else _join(value) for value in values))


def _sized(body: bytes) -> bytes:
    """Return what follows a size of four bytes that counts itself, as Java pads it."""
    size = len(body) + 4
    return bytes((size >> shift & 0x7F | 0x80) for shift in (0, 7, 14)) + bytes([size >> 21]) + body


def _text(text: str) -> bytes:
    return b"\x03" + _join(len(text.encode())) + text.encode()


def _join(*numbers: int) -> bytes:
    found = bytearray()
    for number in numbers:
        while number > 0x7F:
            found.append(number & 0x7F | 0x80)
            number >>= 7
        found.append(number)
    return bytes(found)
