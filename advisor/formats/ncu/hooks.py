"""Nsight Compute's tables of counted kernels (see ``docs/formats/ncu.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.plain_text import read_head

if TYPE_CHECKING:
    from advisor.model.records import Profile

#: The heading of a table of either form; what the program itself printed may stand before it.
HEADING: Final = b'"ID","Process ID",'
_KERNEL: Final = b'"Kernel Name"'
_CONTEXT: Final = b", Context 1, Stream "
_HEAD_BYTES: Final = 1 << 18


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a table of kernels near whose beginning its heading stands, and for a page of text."""
    if not path.is_file() or not path.name.endswith((".csv", ".txt", ".log")):
        return None
    head = read_head(path, _HEAD_BYTES)
    if HEADING in head and _KERNEL in head:
        return 1.0
    if _CONTEXT not in head:
        return None
    from advisor.formats.ncu.text_pages import is_text_page

    return 1.0 if is_text_page(head) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the kernels counted in a table as a run; raises ``InputError`` for what is damaged."""
    from advisor.formats.ncu.kernels import profile_kernels, read_kernels

    return profile_kernels(read_kernels(path), path)
