"""Output as likwid-perfctr prints it, made from numbers: after its source, since none could be recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Measured:
    """A region measured with a group: seconds and calls of each thread, events (name, counter) and metrics."""

    region: str | None
    group: str
    seconds: Sequence[float]
    calls: Sequence[int] = ()
    events: Mapping[tuple[str, str], Sequence[float | str]] = field(default_factory=dict)
    metrics: Mapping[str, Sequence[float | str]] = field(default_factory=dict)
    number: int = 1


def csv(parts: Sequence[Measured], columns: Sequence[str]) -> str:
    """The file that ``-o x.csv`` makes."""
    lines: list[str] = []
    for part in parts:
        tables = _tables(part, columns)
        width = max(len(rows[0]) for _, rows in tables)
        head = ["STRUCT,Info,3", "CPU name:,Intel(R) Xeon(R) CPU", "CPU type:,Intel Skylake SP", "CPU clock:,2.6 GHz"]
        lines += [_padded(line.split(","), width) for line in head]
        for title, rows in tables:
            if title == "info":
                info = rows
                continue
            region = "" if part.region is None else f"Region {part.region},"
            words = f"TABLE,{region}Group {part.number} {title},{part.group},{len(rows) - 1}"
            lines.append(words + "," * max(0, width - 4 - (part.region is not None)))
            if title == "Raw" and part.region is not None:
                lines += [_padded(row, width) for row in info]
            lines += [_padded(row, width) for row in rows]
    return "\n".join(lines) + "\n"


def text(parts: Sequence[Measured], columns: Sequence[str]) -> str:
    """What is printed without ``-o``, between what the program prints."""
    line = "-" * 80
    lines = [line, "CPU name:\tIntel(R) Xeon(R) CPU", "CPU type:\tIntel Skylake SP", "CPU clock:\t2.60 GHz", line]
    lines += ["hello from the program | not a table", line]
    for part in parts:
        region = "" if part.region is None else f"Region {part.region}, "
        lines.append(f"{region}Group {part.number}: {part.group}")
        for _, rows in _tables(part, columns):
            widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
            rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
            boxed = [
                "| " + " | ".join(cell.center(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in rows
            ]
            lines += [rule, boxed[0], rule, *boxed[1:], rule, ""]
    return "\n".join(lines) + "\n"


def _tables(part: Measured, columns: Sequence[str]) -> list[tuple[str, list[list[str]]]]:
    """Titles and rows of the tables of a part, in the order in which they are printed."""
    tables = []
    if part.region is not None:
        seconds, calls = [f"{value:.6f}" for value in part.seconds], [str(value) for value in part.calls]
        info = [["Region Info", *columns], ["RDTSC Runtime [s]", *seconds], ["call count", *calls]]
        tables.append(("info", info))
    events = dict(part.events)
    if not part.metrics:
        events = {("Runtime (RDTSC) [s]", "TSC"): [f"{value:e}" for value in part.seconds], **events}
    raw = [["Event", "Counter", *columns], *([*name, *map(_number, values)] for name, values in events.items())]
    tables.append(("Raw", raw))
    if len(columns) > 1:
        sums = [[f"{name} STAT", counter, *_sums(values)] for (name, counter), values in events.items()]
        tables.append(("Raw STAT", [["Event", "Counter", "Sum", "Min", "Max", "Avg"], *sums]))
    if part.metrics:
        metrics = {"Runtime (RDTSC) [s]": part.seconds, **part.metrics}
        rows = [["Metric", *columns], *([name, *map(_number, values)] for name, values in metrics.items())]
        tables.append(("Metric", rows))
        if len(columns) > 1:
            sums = [[f"{name} STAT", *_sums(values)] for name, values in metrics.items()]
            tables.append(("Metric STAT", [["Metric", "Sum", "Min", "Max", "Avg"], *sums]))
    return tables


def _padded(cells: Sequence[str], width: int) -> str:
    return ",".join(cells) + "," * max(0, width - len(cells))


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else f"{value:.4f}"


def _sums(values: Sequence[float | str]) -> list[str]:
    known = [float(value) for value in values if value != "-"]
    least, most = min(known, default=0.0), max(known, default=0.0)
    return [_number(value) for value in (sum(known), least, most, sum(known) / len(values))]
