"""SQLite databases that profilers write."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def open_database(path: Path) -> sqlite3.Connection:
    """Return a connection that only reads, and neither locks the file nor writes beside it."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
