"""The wire format of protocol buffers: the fields of a message by their numbers, without its schema.

A message is a list of tags (number and wire type) with their values; which type a field has is known to its reader.
Source: the encoding of protocol buffers, https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_SIGN: Final = 1 << 63
#: A number takes no more bytes than this.
LONGEST: Final = 10
_ALL: Final = (1 << 64) - 1
_LARGEST_NUMBER: Final = 1 << 29


class WireError(ValueError):
    """A message is damaged or cut off; ``offset`` is the byte at which that shows."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason)
        self.offset = offset


class Fields:
    """The fields of one message, in their order: numbers, and bytes that are texts, messages or packed numbers."""

    __slots__ = ("_bytes", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[int, list[int]] = {}
        self._bytes: dict[int, list[bytes]] = {}

    def add_value(self, field: int, value: int | bytes) -> None:
        """Take a number, or a text, a message or packed numbers."""
        if isinstance(value, int):
            self._numbers.setdefault(field, []).append(value)
        else:
            self._bytes.setdefault(field, []).append(value)

    def has_only(self, most: int) -> bool:
        """Return whether the message holds no field of a number above ``most``."""
        return max(self._numbers, default=0) <= most and max(self._bytes, default=0) <= most

    def find_number(self, field: int) -> int:
        """Return the last number of a field, 0 without one."""
        return self._numbers.get(field, [0])[-1]

    def list_messages(self, field: int) -> list[bytes]:
        """Return the texts or messages of a field."""
        return self._bytes.get(field, [])

    def list_numbers(self, field: int) -> list[int]:
        """Return the numbers of a field that is repeated, packed or not."""
        packed = [value for message in self._bytes.get(field, ()) for value in read_varints(message)]
        return self._numbers.get(field, []) + packed


def read_fields(message: bytes) -> Fields:
    """Return the fields of ``message``; raises ``WireError`` where it is none."""
    fields = Fields()
    for number, value in iterate_fields(message):
        fields.add_value(number, value)
    return fields


def iterate_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: whole numbers, and bytes for what has a length or 32 or 64 bits.

    Raises ``WireError`` where the message is damaged.
    """
    place = 0
    while place < len(message):
        begin = place
        key, place = read_varint(message, place)
        number, kind = key >> 3, key & 7
        if not 0 < number < _LARGEST_NUMBER:
            raise WireError(f"{number} is not a field number", begin)
        if kind == _VARINT:
            value, place = read_varint(message, place)
            yield number, value
            continue
        if kind == _BYTES:
            length, place = read_varint(message, place)
        elif kind in (_FIXED_64, _FIXED_32):
            length = 8 if kind == _FIXED_64 else 4
        else:
            raise WireError(f"a field of an unknown kind ({kind})", begin)
        if place + length > len(message):
            raise WireError("a field is longer than what it is in", begin)
        yield number, message[place : place + length]
        place += length


def read_varint(message: bytes, place: int) -> tuple[int, int]:
    """Return the number at a place, and the place behind it; raises ``WireError`` where it does not end."""
    value = shift = 0
    for at in range(place, min(place + LONGEST, len(message))):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _ALL, at + 1
        shift += 7
    raise WireError("a number without an end", place)


def read_varints(message: bytes) -> list[int]:
    """Return numbers that are packed one behind the other; raises ``WireError`` where the last one is cut off."""
    values, place = [], 0
    while place < len(message):
        value, place = read_varint(message, place)
        values.append(value)
    return values


def to_signed(value: int) -> int:
    """Return a number of a field that may be negative."""
    return value - (_SIGN << 1) if value >= _SIGN else value


def to_whole(value: int | bytes) -> int:
    """Return a field that must be a whole number; raises ``WireError`` where it is none."""
    if not isinstance(value, int):
        raise WireError("a field is not a number")
    return value


def to_bytes(value: int | bytes) -> bytes:
    """Return a field that must have a length; raises ``WireError`` where it has none."""
    if not isinstance(value, bytes):
        raise WireError("a field has no length")
    return value


def to_text(value: int | bytes) -> str:
    """Return a field that must be a text; raises ``WireError`` where it is none."""
    return to_bytes(value).decode("utf-8", errors="replace")
