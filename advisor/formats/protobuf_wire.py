"""The wire format of protocol buffers: the fields of a message, without its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_SIGN: Final = 1 << 63
#: A number takes no more bytes than this.
_LONGEST: Final = 10


class WireError(ValueError):
    """A message is damaged or cut off."""


def iterate_fields(message: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: whole numbers, and bytes for what has a length or 32 or 64 bits.

    Raises ``WireError`` where the message is damaged.
    """
    place, last = start, len(message) if end is None else end
    while place < last:
        key, place = read_varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = read_varint(message, place)
            yield number, value
            continue
        if kind == _BYTES:
            length, place = read_varint(message, place)
        elif kind in (_FIXED_64, _FIXED_32):
            length = 8 if kind == _FIXED_64 else 4
        else:
            raise WireError(f"byte {place}: no such kind of field")
        if place + length > last:
            raise WireError(f"byte {place}: a field is cut off")
        yield number, message[place : place + length]
        place += length


def read_varint(message: bytes, place: int) -> tuple[int, int]:
    """Return the number at a place, and the place behind it; raises ``WireError`` where it does not end."""
    value = shift = 0
    for at in range(place, min(place + _LONGEST, len(message))):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
    raise WireError(f"byte {place}: a number is cut off")


def to_signed(value: int) -> int:
    """Return a number of a field that may be negative."""
    return value - (_SIGN << 1) if value >= _SIGN else value


def to_whole(value: int | bytes) -> int:
    """Return a field that must be a whole number; raises ``WireError`` where it is none."""
    if not isinstance(value, int):
        raise WireError("a field is no number")
    return value


def to_bytes(value: int | bytes) -> bytes:
    """Return a field that must have a length; raises ``WireError`` where it has none."""
    if not isinstance(value, bytes):
        raise WireError("a field has no length")
    return value


def to_text(value: int | bytes) -> str:
    """Return a field that must be a text; raises ``WireError`` where it is none."""
    return to_bytes(value).decode("utf-8", errors="replace")
