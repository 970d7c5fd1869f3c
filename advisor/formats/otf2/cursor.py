"""Reading one value after the other from the bytes of an OTF2 file, with the place of whatever is wrong."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

from advisor.model.errors import InputError

Order = Literal["little", "big"]
#: The size byte that stands for "undefined": all bits of the value are set.
UNDEFINED = 255
#: A length byte with this value is followed by the length in eight bytes.
LONG = 255


#: Bytes that an anchor file or one with definitions has at most; a billion-event run has some hundred million.
FILE_AT_MOST = 1 << 31


def read_file(path: Path) -> bytes:
    """Return all bytes of a file beside the events; raises ``InputError`` where it cannot be read or is none."""
    try:
        # opened without waiting: a pipe would wait for a writer for ever
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):  # a device never ends
                raise InputError(path, "is not a regular file")
            if about.st_size > FILE_AT_MOST:
                raise InputError(path, f"damaged: has more than {FILE_AT_MOST >> 30} GiB, which no such file has")
            return file.read()
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error
    except MemoryError as error:
        raise InputError(path, "is larger than the memory") from error


class Cursor:
    """A position in the bytes of a file, which moves with every value that is read and never beyond ``end``."""

    __slots__ = ("data", "end", "file", "order", "position")

    def __init__(self, file: Path, data: bytes, order: Order, position: int = 0, end: int | None = None) -> None:
        self.file, self.data, self.order, self.position = file, data, order, position
        self.end = len(data) if end is None else end

    @property
    def bytes_left(self) -> int:
        """The number of bytes that have not been read."""
        return self.end - self.position

    def make_error(self, reason: str, position: int | None = None) -> InputError:
        """Return an error at a byte of the file: where the cursor is, unless ``position`` says otherwise."""
        return InputError(self.file, reason, f"byte {self.position if position is None else position}")

    def read_raw(self, size: int) -> int:
        """Return an unsigned integer of ``size`` bytes; raises ``InputError`` where fewer are left."""
        if size > self.end - self.position:
            raise self.make_error("damaged: ends inside a record")
        begin = self.position
        self.position = begin + size
        return int.from_bytes(self.data[begin : self.position], self.order)

    def read_packed(self, width: int) -> int:
        """Return a packed integer of at most ``width`` bytes: a size byte and that many bytes, 255 for undefined."""
        size = self.read_raw(1)
        if size == UNDEFINED:
            return (1 << 8 * width) - 1
        if size > width:
            raise self.make_error(f"damaged: an integer of {size} bytes is impossible", self.position - 1)
        return self.read_raw(size)

    def read_signed(self) -> int:
        """Return a packed signed integer of at most eight bytes; negative ones are stored in full width."""
        value = self.read_packed(8)
        return value - (1 << 64) if value >> 63 else value

    def read_text(self) -> str:
        """Return a zero-terminated string; bytes that are no UTF-8 become U+FFFD."""
        end = self.data.find(0, self.position, self.end)
        if end < 0:
            raise self.make_error("damaged: a string without an end")
        text = self.data[self.position : end].decode("utf-8", "replace")
        self.position = end + 1
        return text

    def read_record(self) -> Cursor:
        """Return a cursor over the record whose length stands here, and move on to its announced end."""
        begin = self.position
        length = self.read_raw(1)
        if length == LONG:
            length = self.read_raw(8)
        if length > self.end - self.position:
            raise self.make_error(f"damaged: a record of {length} bytes goes beyond its chunk", begin)
        start = self.position
        self.position = start + length
        return Cursor(self.file, self.data, self.order, start, self.position)
