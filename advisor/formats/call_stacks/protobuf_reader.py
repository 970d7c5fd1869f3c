"""Protocol buffers as bytes: the fields of a message by their number, without a schema.

A message is a list of tags (number and wire type) with their values; which type a field has is known to its reader.
Source: the encoding of protocol buffers, https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from typing import Final

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED: Final = {_FIXED64: 8, _FIXED32: 4}
_LARGEST_NUMBER: Final = 1 << 29


class WireError(ValueError):
    """What is no message; ``offset`` is the byte at which that shows."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


class Fields:
    """The fields of one message, in their order: numbers, and bytes that are texts, messages or packed numbers."""

    __slots__ = ("_bytes", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[int, list[int]] = {}
        self._bytes: dict[int, list[bytes]] = {}

    def add_number(self, field: int, value: int) -> None:
        """Take a number."""
        self._numbers.setdefault(field, []).append(value)

    def add_bytes(self, field: int, value: bytes) -> None:
        """Take a text, a message or packed numbers."""
        self._bytes.setdefault(field, []).append(value)

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
    place = 0
    while place < len(message):
        begin = place
        tag, place = _read_varint(message, place)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < _LARGEST_NUMBER:
            raise WireError(f"{number} is no number of a field", begin)
        if kind == _VARINT:
            value, place = _read_varint(message, place)
            fields.add_number(number, value)
        elif kind == _LENGTH:
            size, place = _read_varint(message, place)
            if size > len(message) - place:
                raise WireError("a field is longer than what it is in", begin)
            fields.add_bytes(number, message[place : place + size])
            place += size
        elif kind in _FIXED and _FIXED[kind] <= len(message) - place:
            place += _FIXED[kind]
        else:
            raise WireError(f"a field of an unknown kind ({kind})", begin)
    return fields


def read_varints(message: bytes) -> list[int]:
    """Return numbers that are packed one behind the other; raises ``WireError`` where the last one is cut off."""
    values, place = [], 0
    while place < len(message):
        value, place = _read_varint(message, place)
        values.append(value)
    return values


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    """Return the number at ``place``, seven bits a byte, and where it ends."""
    value = shift = 0
    for end in range(place, min(place + 10, len(message))):
        value |= (message[end] & 0x7F) << shift
        if message[end] < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, end + 1
        shift += 7
    raise WireError("a number without an end", place)
