"""timemory's JSON, which Omnitrace and ROCm Systems Profiler write as well (see ``docs/formats/timemory.md``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths

#: The document holds ``timemory`` and in it metrics; its settings and metadata hold other things.
_BEGIN: Final = re.compile(rb'\s*\{\s*"timemory"\s*:\s*\{\s*"(?!metadata")\w+"\s*:\s*\{')


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for timemory's measurements, else None."""
    from advisor.formats.plain_text import read_ends

    return 1.0 if _BEGIN.match(read_ends(path)) else None


def read_call_paths(path: Path) -> CallPaths:
    """Return the call paths in the document at ``path``; raises ``InputError`` with the place of what is damaged."""
    from advisor.formats.timemory.call_path_builder import build_call_paths
    from advisor.formats.timemory.document import read_metrics

    return build_call_paths(read_metrics(path), path)


advisor_read = make_reader(read_call_paths)
