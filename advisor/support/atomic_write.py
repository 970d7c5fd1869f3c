"""Files that appear under their names only when complete, so that no reader sees half of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path beside ``path`` to write to, which replaces it when the block ends, and is removed if it fails.

    At any time either the old or the new file is there; ``OSError`` is passed on.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
