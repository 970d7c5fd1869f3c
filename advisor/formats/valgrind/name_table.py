"""Names in an output of callgrind, which stand there once and are numbers from then on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.formats.valgrind.line_errors import MistakeError

if TYPE_CHECKING:
    from advisor.model.records import IntArray

_NUMBERED: Final = re.compile(rb"\((\d{1,9})\)(?: +(.*))?", re.DOTALL)
#: Which names share their numbers: of objects, files and functions.
_KINDS: Final = {
    b"ob": b"ob", b"fl": b"fl", b"fi": b"fl", b"fe": b"fl", b"fn": b"fn",
    b"cob": b"ob", b"cfi": b"fl", b"cfl": b"fl", b"cfn": b"fn", b"jfi": b"fl", b"jfn": b"fn",
}  # fmt: skip
UNKNOWN: Final = b"???"

#: A function: object file, source file of its own, name.
Function = tuple[bytes, bytes, bytes]
#: A place: object file, source file, function, source file of the function's own.
Cell = tuple[bytes, bytes, bytes, bytes]


@dataclass(slots=True)
class NameContext:
    """Where the counts belong that follow, and which function the next call goes to."""

    object: bytes = UNKNOWN
    file: bytes = UNKNOWN
    function: bytes | None = None
    own: bytes = UNKNOWN
    called_object: bytes | None = None
    called_file: bytes | None = None

    def current_cell(self) -> Cell:
        """Return the place; raises ``MistakeError`` before the first function."""
        if self.function is None:
            raise MistakeError("counts before the first function (fn=)")
        return self.object, self.file, self.function, self.own

    def set_name(self, key: bytes, name: bytes) -> None:
        """Take in a line that names an object, file or function."""
        if key == b"ob":
            self.object = name
        elif key in (b"fl", b"fi", b"fe"):
            self.file = name
        elif key == b"fn":
            self.function, self.own = name, self.file
        elif key == b"cob":
            self.called_object = name
        elif key in (b"cfi", b"cfl"):
            self.called_file = name


class NameTable:
    """Names and the numbers they were given, and how often functions were called."""

    def __init__(self, numbered: bool) -> None:
        self._numbered = numbered
        self._known: dict[bytes, dict[int, bytes]] = {b"ob": {}, b"fl": {}, b"fn": {}}
        self._functions: dict[int, Function] = {}
        self._called: dict[int, int] = {}
        self._called_by_name: dict[Function, int] = {}

    def add_line(self, key: bytes, text: bytes, context: NameContext) -> int | Function | None:
        """Take in a line ``key=text``; return which function is called if that is what it says.

        Raises ``MistakeError``.
        """
        if key not in _KINDS:
            raise MistakeError(f"unknown line {key[:50]!r}")
        found = _NUMBERED.fullmatch(text) if self._numbered else None
        name = text if found is None else self._resolve_number(_KINDS[key], int(found[1]), found[2])
        context.set_name(key, name)
        if key == b"fn" and found is not None:
            self._functions[int(found[1])] = (context.object, context.own, name)
        if key != b"cfn":
            return None
        called = (context.called_object or context.object, context.called_file or context.file, name)
        context.called_object = context.called_file = None
        return called if found is None else int(found[1])

    def _resolve_number(self, kind: bytes, number: int, name: bytes | None) -> bytes:
        known = self._known[kind]
        if name is not None:
            known[number] = name
        if number not in known:
            raise MistakeError(f"the number ({number}) has no name")
        return known[number]

    def count_calls(self, functions: IntArray, calls: IntArray) -> None:
        """Add calls of functions by number."""
        for function, number in zip(functions.tolist(), calls.tolist(), strict=True):
            self._called[function] = self._called.get(function, 0) + number

    def count_named(self, function: Function, calls: int) -> None:
        """Add calls of a function by name."""
        self._called_by_name[function] = self._called_by_name.get(function, 0) + calls

    def sum_calls(self) -> dict[Function, int]:
        """Return how often each function was called, of those in which something was counted."""
        total = dict(self._called_by_name)
        for number, calls in self._called.items():
            function = self._functions.get(number)
            if function is not None:
                total[function] = total.get(function, 0) + calls
        return total
