"""Files of Kokkos Tools' simple kernel timer, one a process (see ``docs/formats/kokkos_timer.md``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile
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

    files = list_processes(path) if path.is_dir() else [path]
    return build_call_paths([read_process(file) for file in files], path)


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run whose kernels are in ``path``; raises ``InputError`` for what is damaged."""
    from advisor.trace.callpaths.profile import from_call_paths

    return from_call_paths(read_call_paths(path), path)
