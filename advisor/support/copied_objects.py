"""How regions are called that stand for copies of objects of C++: of containers, strings and other classes."""

from __future__ import annotations

from typing import Final

#: What stands before the name of the class.
COPYING: Final = "copying "


def is_object_copy(name: str) -> bool:
    """Return whether a region stands for copies of objects."""
    return name.startswith(COPYING)
