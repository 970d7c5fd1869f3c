"""Nsight Compute's tables of counted kernels (see ``docs/formats/ncu.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.model.records import Profile

#: The heading of a table of either form; what the program itself printed may stand before it.
HEADING: Final = b'"ID","Process ID",'
_KERNEL: Final = b'"Kernel Name"'
_HEAD_BYTES: Final = 1 << 16


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a table of kernels near whose beginning its heading stands."""
    if not path.is_file() or not path.name.endswith((".csv", ".txt", ".log")):
        return None
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    return 1.0 if HEADING in head and _KERNEL in head else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the kernels counted in a table as a run; raises ``InputError`` for what is damaged."""
    from advisor.formats.ncu.kernels import profile_kernels, read_kernels

    return profile_kernels(read_kernels(path), path)
