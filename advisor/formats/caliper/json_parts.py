"""JSON with millions of records, decoded piece by piece so that no more than a piece is ever held as objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
import numpy as np

from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

_PIECE: Final = 1 << 20  # bytes decoded at a time
_GLANCE: Final = 4096  # bytes in which an array begins
_BOM: Final = b"\xef\xbb\xbf"

_FLAT: Final = msgspec.json.Decoder(list[float | None])

T = TypeVar("T")


def decode_json(path: Path, data: bytes | msgspec.Raw, kind: type[T], where: str = "") -> T:
    """Return a JSON text as ``kind``; raises ``InputError`` that names ``where`` in the file it stands."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise InputError(path, str(error), where or None) from error
    except msgspec.DecodeError as error:
        raise InputError(path, f"damaged or cut off: {error}", where or None) from error
    except UnicodeDecodeError as error:
        raise InputError(path, "is not UTF-8 text", where or None) from error
    except RecursionError:
        raise InputError(path, "is nested too deeply", where or None) from None


def decode_sections(path: Path, data: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of the object that a file holds, undecoded."""
    return decode_json(path, data.removeprefix(_BOM), dict[str, msgspec.Raw])


def split_array(text: bytes | msgspec.Raw, closing: bytes) -> Iterator[bytes]:
    """Yield the elements of a JSON array in pieces, each an array of its own.

    ``closing`` is what an element ends with. The comma behind it only counts before a line break, which no JSON string
    can hold; an array without line breaks is one piece.
    """
    view = memoryview(text)
    mark = re.compile(re.escape(closing + b",\n"))
    at, last = bytes(view[:_GLANCE]).index(b"[") + 1, len(view)
    while bytes(view[last - 1 : last]) != b"]":
        last -= 1
    while at < last:
        found = mark.search(view, at + _PIECE)
        end = found.start() + len(closing) if found else last - 1
        yield b"[" + view[at:end] + b"]"
        at = end + 1


def parse_number_rows(piece: bytes, width: int) -> FloatArray | None:
    """Return an array of rows of ``width`` numbers (rows, width), ``null`` as NaN; None where it is not just that.

    The brackets of the rows are taken out first, which halves the objects to be made; where they stood is checked.
    """
    text = np.frombuffer(piece, dtype=np.uint8)
    opening, closing = np.flatnonzero(text == ord("[")), np.flatnonzero(text == ord("]"))
    commas = np.flatnonzero(text == ord(","))
    rows = len(opening) - 1
    if len(commas) != width * rows - 1 or len(closing) != rows + 1 or rows < 1:
        return None
    between = commas[width - 1 :: width]
    if (between < closing[:-2]).any() or (between > opening[2:]).any():
        return None
    try:
        values = _FLAT.decode(b"[" + piece.translate(None, b"[]") + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return np.array(values, dtype=np.float64).reshape(rows, width)
