"""Nsight Compute's pages as text: below the line of each kernel, sections with a table of metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.plain_text import read_plain_text
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

#: A kernel with its grid and block, or before 2022 with its date, then the context and the stream that it ran in.
_KERNEL: Final = re.compile(
    r"  (?P<name>\S.*?)(?: \([\d, ]+\)x\([\d, ]+\)|, \d{4}-\w{3}-\d{2} [\d:]+), Context \d+, Stream \d+"
)
_ROW: Final = re.compile(r"    \S")
#: The lines above, between and below the rows show how wide the three columns are.
_RULE: Final = re.compile(r"    (-+) (-+) (-+)\s*$")
_HEADING: Final = "Metric Name"
#: What is printed for each kernel while the program runs, to its end where it was counted.
_COUNTED: Final = re.compile(r"==PROF== Profiling .*100%")


def is_text_page(head: bytes) -> bool:
    """Return whether the beginning of a file holds a kernel and its sections."""
    text = head.decode("utf-8", "replace").split("\n")
    return any(line.startswith("    Section: ") for line in text) and any(map(_KERNEL.match, text))


def iterate_metrics(path: Path) -> Iterator[dict[str, str]]:
    """Yield each metric as a row of the page of details in CSV has it; raises ``InputError`` for a page cut off."""
    text = read_plain_text(path)
    number, name = -1, ""
    columns: tuple[tuple[int, int], ...] = ()
    metrics: dict[int, set[str]] = {}
    for line in text.lines:
        if kernel := _KERNEL.match(line):
            number, name, columns = number + 1, kernel["name"].partition("(")[0], ()
        elif rule := _RULE.match(line):
            columns = tuple(rule.span(group) for group in (1, 2, 3))
        elif columns and _ROW.match(line) and number >= 0:
            metric, unit, value = (line[begin:end].strip() for begin, end in columns)
            if metric != _HEADING:
                metrics.setdefault(number, set()).add(metric)
                yield {
                    "ID": str(number), "Kernel Name": name, "Metric Name": metric, "Metric Unit": unit,
                    "Metric Value": value,
                }  # fmt: skip
        else:
            columns = ()
    _check_end(text, metrics, number + 1)


def _check_end(text: PlainText, metrics: dict[int, set[str]], kernels: int) -> None:
    """Raise ``InputError`` where fewer kernels follow than were counted, or the last lacks what all others have."""
    counted = sum(1 for _ in text.find_lines(_COUNTED))
    last = metrics.pop(kernels - 1, set())
    others = set.intersection(*metrics.values()) if metrics else set()
    if kernels and (counted > kernels or others - last):
        raise InputError(text.path, f"is cut off: {counted} kernels were counted, and metrics of {kernels} follow")
