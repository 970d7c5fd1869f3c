"""Names of C++ functions, whose template arguments can be longer than all else, and may hold what ends a name."""

from __future__ import annotations

import re
from typing import Final

#: Longer names are shortened for people to read.
LONGEST_NAME: Final = 60
#: A bracket, or an operator whose angle brackets are none of template arguments.
_BRACKET: Final = re.compile(r"\boperator\s*(?:<=>|<<=?|>>=?|->\*?|<=?|>=?)|[<>]")
#: A namespace without a name, and what of the same length has neither brackets nor spaces.
_UNNAMED: Final = ("(anonymous namespace)", "_anonymous_namespace_")
#: Stands for each character of template arguments; no name holds it.
MASK: Final = "\0"


def mask_template_arguments(name: str) -> str:
    """Return the name with each character of template arguments replaced by ``MASK``; the outer brackets stay.

    A namespace without a name gets one, so that the other brackets and spaces are those around the name.
    """
    name = name.replace(*_UNNAMED)
    depth, begin, parts = 0, 0, []
    for found in _BRACKET.finditer(name):
        if found[0] == "<":
            if not depth:
                parts.append(name[begin : found.end()])
                begin = found.end()
            depth += 1
        elif found[0] == ">" and depth:
            depth -= 1
            if not depth:
                parts.append(MASK * (found.start() - begin))
                begin = found.start()
    return "".join((*parts, MASK * (len(name) - begin) if depth else name[begin:]))


def shorten_name(name: str) -> str:
    """Return a name without parameters in the way people say it: ``std::vector<...>::push_back``.

    The return type of a template goes, and where the name is long its arguments.
    """
    if "<" not in name:
        return name
    scope, operator, _ = mask_template_arguments(name).partition("operator")
    kept = name[scope.rfind(" ") + 1 :] if operator or not scope.endswith(" ") else name
    if len(kept) <= LONGEST_NAME:
        return kept
    unnamed, placeholder = _UNNAMED
    return re.sub(f"{MASK}+", "...", mask_template_arguments(kept)).replace(placeholder, unnamed)
