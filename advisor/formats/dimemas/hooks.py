"""Dimemas traces (``.dim``), the computation and communication of a run without times (``docs/formats/dimemas.md``)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.formats.dimemas.records import DimemasRecords
    from advisor.model.records import Profile
    from advisor.trace.events import Trace

_MAGIC: Final = b"#DIMEMAS:"
#: Bytes of a trace from which on compiling takes less time than it saves.
_WORTH_COMPILING: Final = 30_000_000


def read_records(path: Path, compiled: bool | None = None) -> DimemasRecords:
    """Return the records of the Dimemas trace at ``path``; raises ``InputError`` with the place of what is damaged.

    ``compiled`` chooses between reading by numba and by numpy; without it the size of the file does.
    """
    from advisor.formats import number_lines
    from advisor.formats.dimemas.reading import DimemasReader

    with number_lines.convert_read_errors(path), path.open("rb") as stream:
        if compiled is None:
            compiled = find_spec("numba") is not None and path.stat().st_size >= _WORTH_COMPILING
        return DimemasReader(path, stream).read_records(compiled)


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a file that begins as a Dimemas trace does, else None."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return 1.0 if file.read(len(_MAGIC)) == _MAGIC else None
    except OSError:
        return None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return what the Dimemas trace at ``path`` tells of a run; raises ``InputError`` for what is damaged."""
    from advisor.formats.dimemas import computation_trace, profile
    from advisor.formats.paraver import labels

    records = read_records(path)
    names = labels.read_labels(labels.sibling_path(path, ".pcf"))
    return profile.build_profile(computation_trace.build_computation_trace(records, names), records, path)


@hookimpl
def advisor_trace(path: Path) -> Trace:
    """Return the events of the Dimemas trace at ``path``, on a clock on which communication takes no time.

    Raises ``InputError`` for what is damaged.
    """
    from advisor.formats.dimemas import events
    from advisor.formats.paraver import labels

    return events.build_event_trace(read_records(path), labels.read_labels(labels.sibling_path(path, ".pcf")))
