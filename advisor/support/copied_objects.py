"""How regions are called that stand for what containers, strings and other classes of C++ do for a program."""

from __future__ import annotations

from typing import Final

#: What stands before the name of the class: of copies, and of objects whose construction takes long.
COPYING: Final = "copying "
CONSTRUCTING: Final = "constructing "
#: Text that is put into new memory to change, and lookups.
REBUILDING: Final = "rebuilding std::string"
LOOKING_UP: Final = "looking up in hash tables"
WALKING: Final = "walking through std::map or std::set"
#: What checks the use of containers, exceptions on their way to who catches them, locks, and sorting.
CHECKING: Final = "checking the use of containers"
THROWING: Final = "throwing and catching exceptions"
LOCKING: Final = "taking and releasing locks"
#: Streams that hand each character to the C library, to be in step with its own.
SYNCING: Final = "std::cin and std::cout in step with stdio"
SORTING: Final = "std::sort"


def is_object_copy(name: str) -> bool:
    """Return whether a region stands for copies of objects."""
    return name.startswith(COPYING)


def is_construction(name: str) -> bool:
    """Return whether a region stands for the construction of objects."""
    return name.startswith(CONSTRUCTING)
