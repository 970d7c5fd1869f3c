"""What a function is handed by its caller, and what it hands back: values, members of structures, extents of arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advisor_processor.symbolic.data_sizes import ArrayShapes
    from advisor_processor.symbolic.walk_records import Frame


def hand_over(
    frame: Frame, parameter: str, text: str, caller: Frame, shared: Mapping[str, Any], shapes: ArrayShapes
) -> None:
    """Give a parameter the members of a structure, and its extents; ``text`` is the argument as written."""
    plain = _name_variable(text)
    extents = shapes.find_extents(caller, plain)
    if extents is not None:
        frame.extents[parameter] = extents
    for name, each in {**shared, **caller.variables}.items():
        if name.startswith(plain + "."):
            frame.variables[parameter + name.removeprefix(plain)] = each


def hand_back(
    frame: Frame, parameter: str, text: str, language: str, assigned: frozenset[str]
) -> Iterator[tuple[str, Any]]:
    """Yield what a function changed through a pointer, a structure or, in Fortran, any argument."""
    plain = _name_variable(text)
    if not re.fullmatch(r"[A-Za-z_][\w.]*", plain):
        return
    if text.startswith("&") and "*" + parameter in frame.variables:
        yield plain, frame.variables["*" + parameter]
    elif language == "fortran":
        yield plain, frame.variables.get(parameter)
    elif language == "cpp" and parameter in assigned:
        yield plain, None
    for name, each in frame.variables.items():
        if name.startswith(parameter + "."):
            yield plain + name.removeprefix(parameter), each


def _name_variable(text: str) -> str:
    """Return what an argument as written names: a variable or a member, also by its address or through a pointer."""
    return text.lstrip("&").replace("->", ".")
