"""Files that appear under their names only when they are complete, so that nobody ever sees half of one."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a place beside ``path`` to write to, which takes its name when the block ends, and goes where it fails.

    The old file or the new one is there, whatever happens meanwhile; ``OSError`` goes through.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
