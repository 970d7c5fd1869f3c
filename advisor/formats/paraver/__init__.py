"""Paraver traces, as Extrae writes them: ``.prv`` with ``.pcf`` and ``.row`` (see ``docs/formats/paraver.md``)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile
    from advisor.trace.events import Trace

_MAGIC: Final = b"#Paraver ("
_PACKED: Final = b"\x1f\x8b"
_HEAD: Final = 4 << 10
#: Bytes of a trace from which on compiling takes less time than it saves.
_WORTH_COMPILING: Final = 30_000_000


def read_trace(path: Path, compiled: bool | None = None) -> Trace:
    """Return the events of the Paraver trace at ``path``, which may be packed by gzip.

    ``compiled`` chooses between reading by numba and by numpy; without it the size of the file does. Raises
    ``InputError`` with file and line for what is damaged, and ``UsageError`` when numba is demanded, but not there.
    """
    from advisor.formats import numerals
    from advisor.formats.paraver import header, labels
    from advisor.formats.paraver.assembly import Assembly
    from advisor.formats.paraver.catalogue import Catalogue
    from advisor.formats.paraver.rows import Rows
    from advisor.model.errors import UsageError

    available = find_spec("numba") is not None
    if compiled and not available:
        raise UsageError(f"compiled reading needs numba: {install_line('fast')}")
    with numerals.open_maybe_packed(path) as stream:
        if compiled is None:
            compiled = available and path.stat().st_size >= _WORTH_COMPILING
        head, begun = header.read(stream, path)
        names = labels.read(labels.beside(path, ".pcf"))
        known = Catalogue(names)
        rows = Rows(head, known, path)
        for block in numerals.blocks(stream, path, head.lines + 1, compiled, begun):
            rows.add(block)
    return Assembly(path, head, known, rows).trace(names, labels.nodes(labels.beside(path, ".row")))


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a file that begins as a Paraver trace does, packed or not, else None."""
    return 1.0 if path.is_file() and _beginning(path).startswith(_MAGIC) else None


def _beginning(path: Path) -> bytes:
    import zlib

    try:
        with path.open("rb") as file:
            begin = file.read(_HEAD)
        return zlib.decompressobj(wbits=31).decompress(begin, _HEAD) if begin.startswith(_PACKED) else begin
    except (OSError, zlib.error):
        return b""


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded in the Paraver trace at ``path``; raises ``InputError`` for what is damaged."""
    from advisor.trace.profile import from_trace

    return from_trace(read_trace(path), path, "paraver")


@hookimpl
def advisor_trace(path: Path) -> Trace:
    """Return the events of the Paraver trace at ``path``; raises ``InputError`` for what is damaged."""
    return read_trace(path)
