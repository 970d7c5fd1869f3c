"""The functions that a preprocessed ``mpi.h`` declares, with the types of their parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ATTRIBUTE: Final = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
_FUNCTION: Final = re.compile(r"(?<![\w*])int\s+(MPI_[A-Z]\w*)\s*\(([^;{}]*)\)\s*;")
_NAME: Final = re.compile(r"(\w+)\s*((?:\[[^\]]*\]\s*)*)$")


@dataclass(frozen=True, slots=True)
class Prototype:
    """A function that returns an ``int``: its name, and the declaration of each parameter, named ``a0``, ``a1`` …"""

    name: str
    parameters: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """The names of the parameters, as a call passes them on."""
        return ", ".join(f"a{number}" for number in range(len(self.parameters)))

    @property
    def declaration(self) -> str:
        """The parameters as a definition lists them."""
        return ", ".join(self.parameters) or "void"


def parse_prototypes(text: str) -> tuple[Prototype, ...]:
    """Return the functions that a preprocessed header declares; those with a variable number of parameters are left
    out, and so is what is no function of the interface (``MPI_T_``, handlers and callbacks).
    """
    found: dict[str, Prototype] = {}
    for name, inside in _FUNCTION.findall(_ATTRIBUTE.sub(" ", text)):
        if name in found or "..." in inside or name.startswith("MPI_T_") or name.endswith(("_fn", "_FN")):
            continue
        declared = [part.strip() for part in _split_parameters(inside)]
        if declared == ["void"] or declared == [""]:
            declared = []
        found[name] = Prototype(name, tuple(_rename(part, number) for number, part in enumerate(declared)))
    return tuple(found.values())


def _split_parameters(text: str) -> list[str]:
    """Return the parameters of a list, which are divided by commas outside of brackets."""
    parts, depth = [""], 0
    for char in " ".join(text.split()):
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _rename(parameter: str, number: int) -> str:
    """Return a parameter with the name that wrappers use for it."""
    found = _NAME.search(parameter)
    words = re.findall(r"\w+", parameter)
    unnamed = found is None or len([word for word in words if word not in ("const", "struct", "unsigned")]) < 2
    if found is None or unnamed:
        return f"{parameter} a{number}"
    return f"{parameter[: found.start(1)]}a{number}{found[2]}"
