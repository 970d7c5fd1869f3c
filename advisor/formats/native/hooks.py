"""The project's own format ``gapwatch/profile/1``: JSON for small runs, NPZ for large ones (docs/formats/native.md).

``advisor_read`` is the inverse of ``native_writer.write_profile``; ``load_schema`` is the JSON Schema of the document.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import Profile

JSON_LIMIT: Final = 32 << 20  # bytes; a JSON text takes some eight times its size when it is read
MEMBER: Final = "profile"  # of an NPZ archive, holds the document
_GLANCE: Final = 64 << 10  # bytes at each end of a file by which its format is told
_ZIP: Final = b"PK\x03\x04"
_FORMAT: Final = b"gapwatch/profile/"


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a document that names this format, of whatever version, else None."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        head = stream.read(_GLANCE)
        stream.seek(max(len(head), stream.seek(0, 2) - _GLANCE))
        tail = stream.read()
    if head.startswith(_ZIP):
        member = f"{MEMBER}.npy".encode()
        return 1.0 if (member in head or member in tail) and _archive_names_format(path) else None
    begins_object = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    return 1.0 if begins_object and (_names_format(head) or _names_format(tail)) else None


def _names_format(text: bytes) -> bool:
    return _FORMAT in text.replace(b"\\/", b"/")


def _archive_names_format(path: Path) -> bool:
    from advisor.formats.native import npz

    try:
        archive = npz.open_archive(path)
        return MEMBER in archive.members and _names_format(archive.load_text(MEMBER))
    except InputError:
        return False


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run described at ``path``; raises ``InputError`` with the path inside the document."""
    from advisor.formats.native.arrays import ArraySource
    from advisor.formats.native.document import parse_document
    from advisor.support import strict_json

    if not path.is_file():
        raise InputError(path, "is not a file")
    with path.open("rb") as stream:
        is_archive = stream.read(len(_ZIP)) == _ZIP
    if not is_archive:
        return parse_document(strict_json.read_json(path, JSON_LIMIT), ArraySource(None))
    from advisor.formats.native import npz

    archive = npz.open_archive(path)
    if MEMBER not in archive.members:
        raise InputError(path, f"has no member {MEMBER}.npy with the document")
    text = archive.load_text(MEMBER)
    if len(text) > JSON_LIMIT:
        raise InputError(path, f"is larger than {JSON_LIMIT:,} bytes", f"{MEMBER}.npy")
    return parse_document(strict_json.parse_json(path, text), ArraySource(archive))


def load_schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of the document."""
    from importlib.resources import files

    text = files(__package__).joinpath("schema.json").read_text(encoding="utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded
