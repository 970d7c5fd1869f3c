"""How regions are called that stand for what containers, strings and other classes of C++ do for a program."""

from __future__ import annotations

from typing import Final

#: What stands before the name of the class: of copies, of text that is put into new memory to grow, and of lookups.
COPYING: Final = "copying "
REBUILDING: Final = "rebuilding std::string"
LOOKING_UP: Final = "looking up in hash tables"


def is_object_copy(name: str) -> bool:
    """Return whether a region stands for copies of objects."""
    return name.startswith(COPYING)
