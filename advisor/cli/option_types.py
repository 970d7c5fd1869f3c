"""Types of options that several commands take."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Final

#: One parameter of a production size.
_SIZE: Final = re.compile(r"[A-Za-z_]\w*=\d+(\.\d+)?([eE][+-]?\d+)?")


def whole_number(expected: str, least: int = 1, most: int = 10**9 - 1) -> Callable[[str], int]:
    """Return what reads a whole number between two limits, plain digits; ``expected`` is what the message asks for."""

    def parse_number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
            raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
        return int(text)

    return parse_number


def make_quantity_parser(dimension: str, expected: str, least: float, most: float) -> Callable[[str], float]:
    """Return what reads a quantity with its unit (``10 min``) in the base unit of ``dimension``, between two limits."""

    def parse_number(text: str) -> float:
        from advisor.model import units

        try:
            value = units.parse_quantity(text, dimension)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
        return value

    return parse_number


#: Reads the seconds of a budget.
parse_budget = make_quantity_parser("time", "a time up to 24 h", 1e-9, 86400.0)


parse_cores = whole_number("a number of cores")


def parse_target(text: str) -> str:
    """Return a production size such as ``P=1024 N=8192`` with single spaces."""
    if not text.strip() or not all(_SIZE.fullmatch(part) for part in text.split()):
        raise argparse.ArgumentTypeError(f"expected names and numbers such as 'P=1024 N=8192', found {text!r}")
    return " ".join(text.split())
