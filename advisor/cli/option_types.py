"""Types of options that several commands take."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def whole_number(expected: str, least: int = 1, most: int = 10**9 - 1) -> Callable[[str], int]:
    """Return what reads a whole number between two limits, plain digits; ``expected`` is what the message asks for."""

    def parse_number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
            raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
        return int(text)

    return parse_number
