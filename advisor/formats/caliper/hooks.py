"""Profiles of Caliper: native ``.cali`` files and the JSON that ``cali-query`` and Caliper's recipes write.

What is read and what it becomes: ``docs/formats/caliper.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return how sure it is that ``path`` is a file of Caliper, or a directory of ``.cali`` files, a rank each."""
    from advisor.formats.caliper import detection

    try:
        return detection.sniff_directory(path) if path.is_dir() else detection.sniff_file(path)
    except OSError:
        return None


def read_call_paths(path: Path) -> CallPaths:
    """Return the call paths recorded at ``path``, a file or a directory of files of one run.

    Raises ``InputError`` with file and line, byte or row of what is damaged.
    """
    from advisor.formats.caliper import detection
    from advisor.formats.caliper.call_path_builder import build_call_paths
    from advisor.formats.caliper.files import read_table

    return build_call_paths([read_table(file) for file in detection.find_files(path)], path)


advisor_read = make_reader(read_call_paths)
