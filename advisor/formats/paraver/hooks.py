"""Paraver traces, as Extrae writes them: ``.prv`` with ``.pcf`` and ``.row`` (see ``docs/formats/paraver.md``)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.plain_text import read_head
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.events import Trace

_MAGIC: Final = b"#Paraver ("
_HEAD: Final = 4 << 10
#: Bytes of a trace from which on compiling takes less time than it saves.
_WORTH_COMPILING: Final = 30_000_000


def read_trace(path: Path, compiled: bool | None = None) -> Trace:
    """Return the events of the Paraver trace at ``path``, which may be packed by gzip.

    ``compiled`` chooses between reading by numba and by numpy; without it the size of the file does. Raises
    ``InputError`` with file and line for what is damaged, and ``UsageError`` when numba is demanded, but not there.
    """
    from advisor.formats import number_lines
    from advisor.formats.paraver import header, labels
    from advisor.formats.paraver.catalogue import EventCatalogue
    from advisor.formats.paraver.rows import ParaverRows
    from advisor.formats.paraver.trace_builder import TraceBuilder
    from advisor.model.errors import UsageError

    available = find_spec("numba") is not None
    if compiled and not available:
        raise UsageError(f"compiled reading needs numba: {install_line('fast')}")
    with number_lines.open_maybe_packed(path) as stream:
        if compiled is None:
            compiled = available and path.stat().st_size >= _WORTH_COMPILING
        head, begun = header.read_header(stream, path)
        names = labels.read_labels(labels.sibling_path(path, ".pcf"))
        known = EventCatalogue(names)
        rows = ParaverRows(head, known, path)
        for block in number_lines.read_number_lines(stream, path, head.lines + 1, compiled, begun):
            rows.add_lines(block)
    return TraceBuilder(path, head, known, rows).build_trace(
        names, labels.read_nodes(labels.sibling_path(path, ".row"))
    )


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a file that begins as a Paraver trace does, packed or not, else None."""
    return 1.0 if path.is_file() and read_head(path, _HEAD).startswith(_MAGIC) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded in the Paraver trace at ``path``; raises ``InputError`` for what is damaged."""
    from advisor.trace import events
    from advisor.trace.profile import from_trace

    return from_trace(events.keep_trace(path, read_trace(path)), path, "paraver")


@hookimpl
def advisor_trace(path: Path) -> Trace:
    """Return the events of the Paraver trace at ``path``; raises ``InputError`` for what is damaged."""
    return read_trace(path)
