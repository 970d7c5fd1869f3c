"""The report that DLB prints on stderr when no output file is asked for, between whatever else the program prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from advisor.formats.talp.recording import ProcessRegion, RegionTotals, TalpRecording, tabulate_processes
from advisor.model.errors import InputError

LIMIT: Final = 512 << 20  # bytes; what the program prints stands in the same file
PROCESSES: Final = "Monitoring Region Summary"
SUMS: Final = "Monitoring Region POP Metrics"
#: Other output may stand before it: ``mpirun --tag-output``, or a program's line without an end.
_LINE: Final = re.compile(r"DLB(?: WARNING)?\[[^\]]*\]: (.*)")
_HEADING: Final = re.compile(r"#{3,} *(.*?) *#*")
_FIELD: Final = re.compile(r"### *([\w ]+?) ?: *(.*)")
_NS: Final = re.compile(r"(\d{1,18}) ns")
_PROCESS: Final = re.compile(r"\d+ \((.*)\)")
_SHORT: Final = re.compile(r"(\d+(?:\.\d+)?) (ns|us|ms|s|m|h)")
_UNIT_NS: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 6e10, "h": 3.6e12}
_TIMES: Final = {
    "Elapsed time": "elapsedTime",
    "Useful time": "usefulTime",
    "Not useful MPI": "mpiTime",
    "Not useful OMP Load Imbalance": "ompLoadImbalanceTime",
    "Not useful OMP Scheduling": "ompSchedulingTime",
    "Not useful OMP Serialization": "ompSerializationTime",
}

#: A block of the report: its heading, the line where it begins, and its lines as name and value.
Block = tuple[str, int, dict[str, str]]


def read_recording(path: Path) -> TalpRecording:
    """Return the recording in the report in the text at ``path``; raises ``InputError`` with the line of a mistake."""
    blocks = list(_read_blocks(path))
    sums = [_parse_sums(path, block) for block in blocks if block[0] == SUMS]
    processes = [_parse_process(path, block) for block in blocks if block[0] == PROCESSES]
    warned = sum(block[0] == "outside" for block in blocks)
    doubts = (f"DLB itself calls {warned} of its metrics impossible",) if warned else ()
    return replace(tabulate_processes(path, processes), totals=tuple(sums), doubts=doubts)


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of DLB with their numbers, without the prefix."""
    if path.stat().st_size > LIMIT:
        raise InputError(path, f"is larger than {LIMIT:,} bytes")
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
        for number, line in enumerate(stream):
            found = _LINE.search(line)
            if found is None:
                continue
            if not line.endswith("\n"):
                raise InputError(path, "the last line has no end", f"line {number + 1}")
            yield number + 1, found[1].rstrip()


def _read_blocks(path: Path) -> Iterator[Block]:
    current: Block | None = None
    for number, line in _read_lines(path):
        heading = _HEADING.fullmatch(line)
        if "is outside the allowed range" in line:
            yield "outside", number, {}
        elif heading and heading[1] in (PROCESSES, SUMS):
            if current:
                yield current
            current = (heading[1], number, {})
        elif line.startswith("###") and current:
            found = _FIELD.fullmatch(line)
            if found is None or found[1] in current[2]:
                if current[0] == PROCESSES:
                    raise InputError(path, "a line of a region's summary that can't be understood", f"line {number}")
                continue
            current[2][found[1]] = found[2]
    if current:
        yield current


def _parse_process(path: Path, block: Block) -> ProcessRegion:
    _, line, fields = block
    place = f"line {line}"
    needed = ("Name", "Process", "Rank", "CpuSet", "Elapsed time", "Useful time")
    missing = [name for name in needed if name not in fields]
    if missing:
        raise InputError(path, f"a region's summary without {missing[0]}", place)
    unknown = fields.keys() - {*needed, *_TIMES, "IPC"}
    host = _PROCESS.fullmatch(fields["Process"])
    if unknown or host is None or not re.fullmatch(r"\d{1,9}", fields["Rank"], re.ASCII):
        odd = min(unknown, default="Rank" if host else "Process")
        raise InputError(path, f"{odd[:80]!r} can't be understood here", place)
    values = {"mpiTime": 0.0}
    for title, name in _TIMES.items():
        if title in fields:
            found = _NS.fullmatch(fields[title])
            if found is None or not found[1].isascii():
                raise InputError(path, f"{title}: {fields[title][:40]!r} is not a time", place)
            values[name] = float(found[1])
    return ProcessRegion(fields["Name"], int(fields["Rank"]), host[1], place, values)


def _parse_sums(path: Path, block: Block) -> RegionTotals:
    """Return the block of one region over all ranks: a rounded time and the efficiency."""
    _, line, fields = block
    if "Name" not in fields:
        raise InputError(path, "the metrics of a region without name", f"line {line}")
    values = {}
    short = _SHORT.fullmatch(fields.get("Elapsed Time", ""))
    if short:
        values["roundedElapsedTime"] = float(short[1]) * _UNIT_NS[short[2]]
    if re.fullmatch(r"\d\.\d\d", fields.get("Parallel efficiency", ""), re.ASCII):
        values["parallelEfficiency"] = float(fields["Parallel efficiency"])
    return RegionTotals(fields["Name"], f"line {line}", values)
