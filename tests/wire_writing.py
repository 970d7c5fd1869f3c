"""Messages in the wire format of protocol buffers, for tests of readers."""

from __future__ import annotations

Field = tuple[int, "int | str | bytes | list[Field]"]


def write_varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def write_message(fields: list[Field]) -> bytes:
    """Return a message; a list is a message inside it."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += write_varint(number << 3) + write_varint(value)
            continue
        data = value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else write_message(value)
        found += write_varint(number << 3 | 2) + write_varint(len(data)) + data
    return found
