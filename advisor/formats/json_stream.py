"""JSON written piece by piece: lists of any length between parts that are in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TextIO


def format_json(content: object) -> str:
    """Return a compact document; raises ``ValueError`` for a number that JSON does not have."""
    return json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def write_list(stream: TextIO, items: Iterable[object]) -> None:
    """Write a list, one item a line."""
    stream.write("[")
    for number, item in enumerate(items):
        stream.write(",\n" if number else "\n")
        stream.write(format_json(item))
    stream.write("\n]")
