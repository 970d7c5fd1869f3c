"""Perfetto traces of device runs (see ``docs/formats/perfetto.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.protobuf_wire import WireError, iterate_fields, read_varint

if TYPE_CHECKING:
    from advisor.model.records import Profile

_SUFFIXES: Final = (".pftrace", ".perfetto-trace", ".proto")
_HEAD_BYTES: Final = 4096


def list_traces(folder: Path) -> list[Path]:
    """Return the traces directly in a directory: one for each process."""
    try:
        return sorted(path for path in folder.iterdir() if _is_trace(path))
    except OSError:
        return []


def _is_trace(path: Path) -> bool:
    """Return whether a file begins with a packet: field 1 of known length that holds whole fields."""
    if not path.name.endswith(_SUFFIXES) or not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
        if head[:1] != b"\x0a":
            return False
        length, place = read_varint(head, 1)
        return length > _HEAD_BYTES or bool(dict(iterate_fields(head[place : place + length])))
    except (OSError, WireError):
        return False


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 0.9 for a trace, and for a directory with several."""
    if path.is_dir():
        return 0.9 if len(list_traces(path)) > 1 else None
    return 0.9 if _is_trace(path) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded at ``path``, each trace a rank; raises ``InputError`` for what is damaged."""
    from advisor.formats.device_ranks import profile_device_ranks
    from advisor.formats.perfetto.packets import read_traces

    files = list_traces(path) if path.is_dir() else [path]
    return profile_device_ranks(read_traces(files), path, "perfetto", files)
