"""Tables of sums of rocprof and rocprofv3 (``--stats``): seconds of kernels and copies, or of calls of HIP and HSA."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from advisor.formats.nsys.summary_tables import DeviceSum, build_sums
from advisor.formats.plain_text import read_plain_text
from advisor.trace.devices.naming import is_runtime_call

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.plain_text import PlainText
    from advisor.model.records import Profile

#: rocprof does not quote names, which hold commas; the numbers are at the end.
_ROW: Final = re.compile(
    r'(?P<name>\S.*?),"?(?P<calls>\d{1,15})"?,"?(?P<total>\d{1,18})"?,"?(?P<mean>[\d.e+]{1,24})"?,"?[\d.e+-]{1,24}"?(?:,.*)?$'
)
_SLACK: Final = 0.01


def read_statistics(path: Path) -> Profile:
    """Return the sums in the table at ``path``; raises ``InputError`` with the line of what is damaged."""
    return build_sums(_parse_rows(read_plain_text(path)), path, "rocprof")


def _parse_rows(text: PlainText) -> Iterator[DeviceSum]:
    for line, row in enumerate(text.lines[1:], start=1):
        if not row.strip():
            continue
        cells = _ROW.match(row.rstrip())
        if cells is None or line == len(text.lines) - 1:
            raise text.make_error(line, "no row of a table of sums: the file is cut off")
        calls, total, mean = (text.parse_number(cells[name], line) for name in ("calls", "total", "mean"))
        if abs(calls * mean - total) > _SLACK * total + calls:
            raise text.make_error(line, f"{calls:g} times {mean:g} ns are not {total:g} ns")
        name = cells["name"].strip('"')
        yield DeviceSum(name, total * 1e-9, calls, float("nan"), is_runtime_call(name))
