"""HPCG 3: the seconds of its kernels, and of ``MPI_Allreduce`` over the ranks (``ReportResults.cpp``).

Kernels are timed on the first process; all processes meet in three reductions an iteration. Reductions wait for the
slowest one: their least, mean and most over the ranks tell how the kernels are balanced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_VALUE: Final = re.compile(r"\s*(\S[^=]*?)=([-+.\w]+)\s*$")
_TIME: Final = "Benchmark Time Summary::"
_FLOPS: Final = "Floating Point Operations Summary::"
_REDUCTION: Final = "DDOT Timing Variations::{} DDOT MPI_Allreduce time"
_KERNELS: Final = ("DDOT", "WAXPBY", "SpMV", "MG")
#: Numbers have six digits.
_DIGITS: Final = 1e-4
#: The sets are timed as a whole, kernels inside, by the same clock.
_SLACK: Final = 0.01


def parse(text: PlainText) -> TimingTable:
    """Return the kernels of the benchmark; raises ``InputError`` where numbers are missing or contradict each other."""
    values = _ReportValues(text)
    wall_s = values.read(f"{_TIME}Total")
    ranks = int(values.read("Machine Summary::Distributed Processes"))
    seconds = {name: values.read(f"{_TIME}{name}") for name in _KERNELS}
    flops = {name: values.read(f"{_FLOPS}Raw {name}") for name in _KERNELS}
    if abs(sum(flops.values()) - values.read(f"{_FLOPS}Total")) > _DIGITS * sum(flops.values()):
        raise values.make_error(f"{_FLOPS}Total", "the operations of the kernels do not add up to it")
    if not wall_s > 0 or sum(seconds.values()) > wall_s * (1 + _SLACK):
        raise values.make_error(f"{_TIME}Total", "the kernels take longer than the benchmark")
    for name in _KERNELS:
        rate = values.read(f"GFLOP/s Summary::Raw {name}")
        if abs(rate * seconds[name] * 1e9 - flops[name]) > _DIGITS * flops[name]:
            raise values.make_error(f"{_TIME}{name}", "time, operations and rate of the kernel contradict each other")
    threads = int(values.read("Machine Summary::Threads per processes"))
    counted = threads == 1  # the operations of threads are not those of one core
    rows = [
        TimingRow(name, seconds[name], role=Role.USER, counts={"source_ops.flops": flops[name]} if counted else {})
        for name in _KERNELS
    ]
    if ranks > 1:
        rows.append(_make_reduction(values, seconds["DDOT"]))
    return TimingTable(
        tool="HPCG", program="xhpcg", wall_s=wall_s, rows=tuple(rows), ranks=ranks,
        threads=threads, hides_waiting=True, language="cxx",
        counts={"kernel_bytes": values.read("GB/s Summary::Raw Total B/W") * wall_s * 1e9} if counted else {},
        parameters={
            name: values.read(f"Global Problem Dimensions::Global {name}") for name in ("nx", "ny", "nz")
        },
    )  # fmt: skip


def _make_reduction(values: _ReportValues, products_s: float) -> TimingRow:
    """Return ``MPI_Allreduce`` of the dot products, which are the first row."""
    least, mean, most = (values.read(_REDUCTION.format(name)) for name in ("Min", "Avg", "Max"))
    if not least * (1 - _DIGITS) <= mean <= most * (1 + _DIGITS):
        raise values.make_error(_REDUCTION.format("Avg"), "the mean is not between the least and the most")
    # The dot products are those of the first process alone, which may be the one that waits least.
    inside = mean <= products_s
    return TimingRow("MPI_Allreduce", mean, least, most, parent=0 if inside else -1)


class _ReportValues:
    """The numbers of the report by their names; raises ``InputError`` for one that is missing or damaged."""

    def __init__(self, text: PlainText) -> None:
        self._text = text
        self._found: Mapping[str, tuple[int, str]] = {
            found[1]: (line, found[2]) for line, found in text.find_matches(_VALUE)
        }

    def read(self, name: str) -> float:
        """Return the number called ``name``."""
        if name not in self._found:
            raise InputError(self._text.path, f"the report of HPCG lacks {name!r}")
        line, cell = self._found[name]
        return self._text.parse_number(cell, line)

    def make_error(self, name: str, reason: str) -> InputError:
        """Return the error for the line of the number called ``name``."""
        return self._text.make_error(self._found[name][0], reason)
