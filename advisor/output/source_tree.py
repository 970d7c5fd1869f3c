"""Where code hosts show a recommendation: a file of the checkout and a line, for every recommendation.

Code hosts reject what has no place in the repository (GitHub: "expected a physical location"), and a recording often
has none: it names no file, or the file as the compiler saw it on another machine.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

#: What a checkout may hold that stands for the program as a whole, the most telling first.
PROJECT_FILES = (
    "CMakeLists.txt", "meson.build", "Makefile", "makefile", "GNUmakefile", "configure.ac", "pyproject.toml",
    "README.md", "README.rst", "README",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A file and its line, from 1; ``in_tree`` is False where the file lies outside the source root.

    A path in the tree is relative to the root.
    """

    path: PurePosixPath
    line: int | None = None
    in_tree: bool = True


@dataclass(frozen=True, slots=True)
class SourceTree:
    """The checkout that the places are relative to, and the place of what has no file in it."""

    root: PurePosixPath | None
    fallback: SourcePlace

    def find_place(self, file: str | None, line: int | None) -> SourcePlace | None:
        """Return where a file of a profile lies, or None where the profile names none."""
        if not file:
            return None
        path = PurePosixPath(os.path.normpath(file))
        if self.root is not None and path.is_relative_to(self.root):
            return SourcePlace(path.relative_to(self.root), line)
        if found := self._find_suffix(path):
            return SourcePlace(found, line)
        leaves = path.is_absolute() or path.parts[:1] == ("..",)
        return SourcePlace(path, line, in_tree=not leaves)

    def choose_place(self, file: str | None, line: int | None) -> SourcePlace:
        """Return the place in the tree to show: that of the file, else the fallback."""
        place = self.find_place(file, line)
        return place if place is not None and place.in_tree else self.fallback

    def _find_suffix(self, path: PurePosixPath) -> PurePosixPath | None:
        """Return the longest end of a path that is a file of the tree: compilers name files as their machine did.

        The bare name of a file in other directories proves nothing.
        """
        if self.root is None:
            return None
        parts = [part for part in path.parts if part not in ("/", "..")]
        shortest = 1 if len(parts) == 1 or not path.is_absolute() else 2
        for start in range(len(parts) - shortest + 1):
            end = PurePosixPath(*parts[start:])
            with suppress(OSError):  # a name that no file can have
                if Path(self.root, end).is_file():
                    return end
        return None


def open_source_tree(root: Path | None, fallback: str | None = None) -> SourceTree:
    """Return the tree below ``root``; ``fallback`` is ``FILE`` or ``FILE:LINE`` in it, else its first project file."""
    absolute = None if root is None else PurePosixPath(os.path.abspath(root))
    if fallback:
        name, _, number = fallback.rpartition(":")
        has_line = bool(name) and number.isascii() and number.isdigit() and int(number) > 0
        place = SourcePlace(PurePosixPath(name if has_line else fallback), int(number) if has_line else 1)
        return SourceTree(absolute, place)
    start = Path(absolute or ".")
    present = next((name for name in PROJECT_FILES if (start / name).is_file()), "README.md")
    return SourceTree(absolute, SourcePlace(PurePosixPath(present), 1))
