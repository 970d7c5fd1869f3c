"""Names of C++ functions, whose template arguments can be longer than all else, and may hold what ends a name."""

from __future__ import annotations

import re
from typing import Final

#: Longer names are shortened for people to read.
LONGEST_NAME: Final = 60
#: Operators whose angle brackets are none of template arguments.
_OPERATOR: Final = re.compile(r"\boperator\s*(?:<=>|<<=?|>>=?|->\*?|<=?|>=?)")
#: A namespace without a name, and what of the same length has neither brackets nor spaces.
_UNNAMED: Final = ("(anonymous namespace)", "_anonymous_namespace_")
#: Stands for each character of template arguments; no name holds it.
MASK: Final = "\0"


def mask_template_arguments(name: str) -> str:
    """Return the name with each character of template arguments replaced by ``MASK``; the outer brackets stay.

    A namespace without a name gets one, so that the other brackets and spaces are those around the name.
    """
    name = name.replace(*_UNNAMED)
    protected = {at for found in _OPERATOR.finditer(name) for at in range(*found.span())}
    depth, masked = 0, []
    for at, character in enumerate(name):
        bracket = at not in protected
        if bracket and character == ">" and depth:
            depth -= 1
        masked.append(MASK if depth else character)
        if bracket and character == "<":
            depth += 1
    return "".join(masked)


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
