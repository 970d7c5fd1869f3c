"""Source files that belong to the system, as debug information names them."""

from __future__ import annotations

from typing import Final

#: Of the standard library of Rust as its compilers are built, and of Go where it is installed by default.
_SYSTEM: Final = ("/usr/include/", "/usr/lib/", "/build/", "../sysdeps/", "/rustc/", "/usr/local/go/src/")
#: Sources that a package manager fetched are not the user's either.
_INSIDE: Final = ("/sysdeps/", "/.cargo/registry/", "/.rustup/")


def is_system_source(file: str) -> bool:
    """Return whether a source belongs to the system, a compiler or a package, and not to the user."""
    return file.startswith(_SYSTEM) or any(part in file for part in _INSIDE)
