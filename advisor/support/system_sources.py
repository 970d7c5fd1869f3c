"""Source files that belong to the system, as debug information names them."""

from __future__ import annotations

from typing import Final

_SYSTEM: Final = ("/usr/include/", "/usr/lib/", "/build/", "../sysdeps/")


def is_system_source(file: str) -> bool:
    """Return whether a source belongs to the system or the compiler and not to the user."""
    return file.startswith(_SYSTEM) or "/sysdeps/" in file
