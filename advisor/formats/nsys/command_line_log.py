"""Logs of CUDA's command-line profiler, which ``CUDA_PROFILE=1`` (``COMPUTE_PROFILE=1``) turned on up to CUDA 7.5.

A line for each kernel and copy: microseconds on the device, and of the call on the host, which waits where it blocks.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.nsys.summary_tables import DeviceSum, build_sums
from advisor.formats.plain_text import PlainText, read_plain_text

if TYPE_CHECKING:
    from advisor.model.records import Profile

_VERSION: Final = re.compile(r"# CUDA_PROFILE_LOG_VERSION ")
_CELL: Final = re.compile(r"(\w+)=\[\s*(.*?)\s*\](?=\s|$)")
_COPY: Final = re.compile(r"mem(?:cpy|set)", re.IGNORECASE)
_US: Final = 1e-6


def read_command_line_log(path: Path) -> Profile:
    """Return the sums of the log at ``path``; raises ``InputError`` with the line of what is damaged."""
    text = read_plain_text(path)
    sums: defaultdict[tuple[str, bool], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for line, cells in _iterate_rows(text):
        if "method" not in cells or "gputime" not in cells or line == len(text.lines) - 1:
            raise text.make_error(line, "a line of the log is cut off")
        sums[cells["method"], False][0] += text.parse_number(cells["gputime"], line) * _US
        sums[cells["method"], False][1] += 1
        if cells.get("cputime"):
            call = _name_call(cells["method"])
            sums[call, True][0] += text.parse_number(cells["cputime"], line) * _US
            sums[call, True][1] += 1
    found = [DeviceSum(name, seconds, calls, 0.0, is_call) for (name, is_call), (seconds, calls) in sums.items()]
    return build_sums(found, path, "nsys")


def _name_call(method: str) -> str:
    """Return the call that issued a method, by the name that later tools give it."""
    kind = _COPY.match(method)
    if kind is None:
        return "cudaLaunchKernel"
    return f"cudaMem{kind[0][3:].lower()}{'Async' if method.lower().endswith('async') else ''}"


def _iterate_rows(text: PlainText) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the cells of each line by their names: they stand in each, or in the heading of CSV."""
    head: list[str] = []
    begun = False
    for line, words in enumerate(text.lines):
        if _VERSION.match(words):
            if begun:
                raise text.make_error(line, "a second log begins: give each run a file")
            begun = True
        if not words.strip() or words.startswith("#"):
            continue
        named = dict(_CELL.findall(words))
        if named or "=[" in words:
            yield line, named
            continue
        cells = [cell.strip() for cell in next(csv.reader([words]))]
        if "method" in cells:
            head = cells
        elif head and begun:
            # Counters of the last columns are left out where a copy has none.
            yield line, dict(zip(head, cells, strict=False))
