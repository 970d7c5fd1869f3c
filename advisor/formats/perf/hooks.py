"""What ``perf script`` prints: samples by process and thread (see ``docs/formats/perf.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths

_FIELDS: Final = "comm,pid,tid,time,period,event,ip,sym,dso"


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for what perf script printed, or a directory with that of several ranks; less for perf's own file."""
    from advisor.formats.perf import detection

    return detection.sniff_path(path)


def read_call_paths(path: Path) -> CallPaths:
    """Return the seconds by region that the samples stand for.

    Raises ``InputError`` with the line of what is damaged, and for perf's own file, which nothing but perf reads.
    """
    from advisor.formats.perf import detection
    from advisor.formats.perf.call_path_builder import build_call_paths
    from advisor.formats.perf.samples import read_script
    from advisor.formats.rank_files import check_copies
    from advisor.model.errors import InputError

    try:
        files = detection.find_files(path) if path.is_dir() else [path]
        data = not path.is_dir() and detection.is_data(path)
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
    if data:
        command = f"perf script --header -F {_FIELDS} -i {path.name} > {path.name}.txt"
        raise InputError(path, f"only perf reads this file; print its samples with: {command}")
    if not files:
        raise InputError(path, "no samples of perf here")
    return check_copies(build_call_paths([read_script(file) for file in files], path), files)


advisor_read = make_reader(read_call_paths)
