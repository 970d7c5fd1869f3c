"""Files with tokens and addresses that are secret, which nobody but their owner may read."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def read_secret(file: Path) -> str:
    """Return the text of a file, stripped; raises ``UsageError`` where others may read it, or it is no text."""
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or 'is not text'}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{file}: others may read it; chmod 600 it")
    return text
