"""Files of Kokkos Tools' simple kernel timer, one a process (see ``docs/formats/kokkos_timer.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a file of a process, or a folder with those of the processes of one run, else None."""
    from advisor.formats.kokkos_timer.kernel_files import is_timer_file, list_processes

    if path.is_dir():
        return 1.0 if list_processes(path) else None
    return 1.0 if path.is_file() and is_timer_file(path) else None


def read_call_paths(path: Path) -> CallPaths:
    """Return the kernels in the file or folder at ``path``; raises ``InputError`` for what is damaged."""
    from advisor.formats.kokkos_timer.call_path_builder import build_call_paths
    from advisor.formats.kokkos_timer.kernel_files import list_processes, read_process
    from advisor.formats.rank_files import check_copies

    files = list_processes(path) if path.is_dir() else [path]
    return check_copies(build_call_paths([read_process(file) for file in files], path), files)


advisor_read = make_reader(read_call_paths)
