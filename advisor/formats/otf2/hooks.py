"""OTF2 archives, the traces of Score-P, EZTrace and TAU, decoded in arrays (see ``docs/formats/otf2.md``)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.otf2 import archive
from advisor.model.errors import InputError, UsageError
from advisor.support import compiling
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from advisor.formats.otf2.definitions import Definitions
    from advisor.model.records import Profile
    from advisor.trace.events import Trace

#: Bytes of event files from which on the compiled decoder takes less time than it saves: loading it takes 0.6 s, in
#: which the plain one reads a million events of 13 bytes, and compiling it anew 2 s.
_LOADING, _COMPILING = 13_000_000, 50_000_000
#: How sure it is that a file with events or definitions is a profile: not without its anchor file.
_PART = 0.1


def read_trace(path: Path, compiled: bool | None = None) -> Trace:
    """Return the events of the OTF2 archive at ``path``: its anchor file, or a directory that holds one.

    ``compiled`` chooses between the decoder that numba compiles and the plain one; without it the size of the
    archive does. Raises ``InputError`` with file and place for what is missing or damaged, and
    ``UsageError`` when the compiled decoder is demanded without numba.
    """
    from advisor.formats.otf2.definitions import read_archive_definitions

    anchor = _require_anchor(path)
    return _build_trace(anchor, read_archive_definitions(anchor), compiled)


def _require_anchor(path: Path) -> Path:
    anchor = archive.find_anchor(path)
    if anchor is None:
        raise InputError(path, "no OTF2 archive here (an anchor file *.otf2)")
    if not archive.is_anchor(anchor):
        raise InputError(anchor, "not an OTF2 anchor file", "byte 0")
    return anchor


def _build_trace(anchor: Path, definitions: Definitions, compiled: bool | None) -> Trace:
    from advisor.formats.otf2.trace_builder import TraceBuilder

    return TraceBuilder(anchor, definitions).build_trace(compiled=_should_compile(anchor, compiled))


def _should_compile(anchor: Path, compiled: bool | None) -> bool:
    if compiled is False:
        return False
    if compiled and find_spec("numba") is None:
        raise UsageError(f"compiled reading needs numba: {install_line('fast')}")
    return compiled or compiling.is_worth_compiling(
        archive.decoding_effort(anchor), loading=_LOADING, compiling=_COMPILING
    )


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for an OTF2 anchor file and the directory that holds it, little for other parts of an archive."""
    if path.is_dir():
        if any(map(archive.is_anchor, archive.list_anchors(path))):
            return 1.0
        folder = path.absolute()  # "." has no name
        return _PART if folder.name and archive.is_anchor(folder.with_name(f"{folder.name}.otf2")) else None
    if archive.is_anchor(path):
        return 1.0
    return _PART if archive.is_part(path) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded in the OTF2 archive at ``path``; raises ``InputError`` for what is damaged."""
    from advisor.formats.otf2 import devices
    from advisor.formats.otf2.definitions import read_archive_definitions
    from advisor.trace import events
    from advisor.trace.profile import from_trace

    anchor = _require_anchor(path)
    definitions = read_archive_definitions(anchor)
    if devices.has_device_streams(definitions):
        from advisor.trace.devices.profile import profile_devices

        found = devices.read_device_trace(anchor, definitions, compiled=_should_compile(anchor, None))
        return profile_devices(found, path, "otf2")
    return from_trace(events.keep_trace(path, _build_trace(anchor, definitions, None)), path, "otf2")


@hookimpl
def advisor_trace(path: Path) -> Trace:
    """Return the events of the OTF2 archive at ``path``; raises ``InputError`` for what is damaged."""
    return read_trace(path)
