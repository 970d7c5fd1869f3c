"""libotf2 as the ``otf2`` wheel carries it, through ctypes with plain integers; standard library only.

The wheel's own Python layers cost half of a first advice to import and refuse traces with repeated definitions;
of the wheel only the shared library is used. Everything here runs in the reading process (``child``).
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_uint8, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: One letter per argument of a callback, as in the ``struct`` module; ``L`` is a pointer to 64-bit ids.
TYPES: dict[str, Any] = {
    "B": c_uint8,
    "I": c_uint32,
    "Q": c_uint64,
    "q": ctypes.c_int64,
    "d": ctypes.c_double,
    "s": c_char_p,
    "L": POINTER(c_uint64),
    "P": c_void_p,
}
SUCCESS = 0
#: Records read in one go; bounds the memory of the reading process.
BATCH = 1 << 14

_ERROR_CALLBACK = CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint64, c_char_p, c_int, c_char_p, c_void_p)


class LibraryError(Exception):
    """A call of libotf2 failed; the text is what the library reported."""


class Library:
    """The shared library with its error messages captured instead of printed."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._c = ctypes.CDLL(None)
        self.messages: list[str] = []
        self._kept: list[Any] = [_ERROR_CALLBACK(self._note)]
        register = self._library.OTF2_Error_RegisterCallback
        register.restype = c_void_p
        register.argtypes = [_ERROR_CALLBACK, c_void_p]
        register(self._kept[0], None)
        self._library.OTF2_Error_GetDescription.restype = c_char_p

    def _note(
        self, _data: int | None, _file: bytes, _line: int, _function: bytes, code: int, text: bytes | None, values: int
    ) -> int:
        buffer = ctypes.create_string_buffer(400)
        self._c.vsnprintf(buffer, ctypes.c_size_t(len(buffer)), text or b"", c_void_p(values))
        described: bytes = self._library.OTF2_Error_GetDescription(code) or b""
        self.messages.append(f"{described.decode('utf-8', 'replace')}: {buffer.value.decode('utf-8', 'replace')}")
        return code

    def callback(self, arguments: str, function: Callable[..., int]) -> object:
        """Return ``function`` as a C callback whose arguments have the types of the letters; kept alive here."""
        pointer = CFUNCTYPE(c_int, *(TYPES[letter] for letter in arguments))(function)
        self._kept.append(pointer)
        return pointer

    def handle(self, name: str, *arguments: object) -> int | None:
        """Call the library's function ``name`` and return the pointer it gives, None for a null pointer."""
        function = getattr(self._library, f"OTF2_{name}")
        function.restype = c_void_p
        result: int | None = function(*map(_pass, arguments))
        return result

    def call(self, name: str, *arguments: object) -> int:
        """Call the library's function ``name`` and return its error code."""
        function = getattr(self._library, f"OTF2_{name}")
        function.restype = c_int
        code: int = function(*map(_pass, arguments))
        return code

    def must(self, name: str, *arguments: object) -> None:
        """Call the library's function ``name``; raises ``LibraryError`` when it reports an error."""
        if self.call(name, *arguments) != SUCCESS:
            raise LibraryError(self.reason(f"{name} failed"))

    def records(self, name: str, reader: int, source: int | None, limit: int) -> Iterator[int]:
        """Call the reading function ``name`` again and again; yield how many records have been read so far.

        Raises ``LibraryError`` when it fails, and after ``limit`` records: of a file that ends between two
        chunks libotf2 reads the last one for ever.
        """
        total, count = 0, c_uint64(BATCH)
        while count.value == BATCH:
            code = self.call(name, reader, source, c_uint64(BATCH), ctypes.byref(count))
            total += count.value
            yield total
            if code != SUCCESS:
                raise LibraryError(self.reason(f"{name} failed"))
            if total > limit:
                raise LibraryError(f"holds more than the {limit} records that it should")

    def reason(self, fallback: str) -> str:
        """Return the first message since the last call of this method, or ``fallback``."""
        text = self.messages[0] if self.messages else fallback
        self.messages.clear()
        return text

    def numbers(self, name: str, handle: int, types: str) -> list[int]:
        """Return the numeric properties of a handle that the library's function ``name`` hands out."""
        values = [TYPES[letter]() for letter in types]
        self.must(name, handle, *map(ctypes.byref, values))
        return [value.value for value in values]

    def text(self, name: str, handle: int) -> str:
        """Return a string property of a handle (``Reader_GetCreator`` and its kind), empty if there is none."""
        value = c_char_p()
        if self.call(name, handle, ctypes.byref(value)) != SUCCESS or value.value is None:
            return ""
        return value.value.decode("utf-8", "replace")


def _pass(argument: object) -> object:
    return c_void_p(argument) if isinstance(argument, int) and not isinstance(argument, bool) else argument
