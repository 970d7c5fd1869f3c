"""What may stand in a manifest: names, templates of command lines, patterns of output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KERNEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
_LONGEST: Final = 200
_PLACE: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]")
_VALUE: Final = r"([+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?)"


class Name(str):
    """The name of a parameter, an array or a metric."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Name:
        """The name; ValueError for what is none."""
        if len(text) > _LONGEST or not _NAME.fullmatch(text):
            raise ValueError("expected a name of letters, digits and _")
        return cls(text)


class KernelName(str):
    """The name of a kernel: no commas, since these separate the kernels of a chain."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> KernelName:
        """The name; ValueError for what is none."""
        if len(text) > _LONGEST or not _KERNEL.fullmatch(text):
            raise ValueError("expected a name without blanks and commas")
        return cls(text)


class Template(str):
    """One word of a command line with places ``{N}``, ``{chain}`` … in it; ``{{`` and ``}}`` stand for braces."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Template:
        """The template; ValueError for a brace that belongs to no place."""
        if "\0" in text:
            raise ValueError("expected text without the character NUL")
        for found in _PLACE.finditer(text):
            if found[0] in ("{", "}"):
                raise ValueError("expected {name}, or {{ or }} for a brace")
        return cls(text)

    @property
    def names(self) -> tuple[str, ...]:
        """The places to fill."""
        return tuple(dict.fromkeys(name for name in _PLACE.findall(self) if name))

    def fill_places(self, values: Mapping[str, str]) -> str:
        """The word with its places filled; what is filled in is never looked at again."""

        def fill_part(found: re.Match[str]) -> str:
            return values[found[1]] if found[1] else found[0][0]

        return _PLACE.sub(fill_part, self)


class Pattern(str):
    """Text of a program's output with ``{value}`` where the number stands; blanks match any blanks."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """The pattern; ValueError without exactly one ``{value}``, or with nothing before and after it."""
        if text.count("{value}") != 1 or not text.replace("{value}", "").strip():
            raise ValueError("expected the text around one {value}")
        return cls(text)

    def find_values(self, output: str) -> tuple[float, ...]:
        """All numbers that the output shows in that place, in order; thousands may be grouped by commas."""
        before, after = (r"\s+".join(map(re.escape, part.split())) for part in self.split("{value}"))
        shape = before + r"\s*" + _VALUE + (r"\s*" + after if after else "")
        texts = (found.replace(",", "").replace("d", "e").replace("D", "e") for found in re.findall(shape, output))
        return tuple(float(text) for text in texts)
