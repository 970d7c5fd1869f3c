"""What OSU Micro-Benchmarks, the Intel MPI Benchmarks and STREAM print, as numbers of a machine model.

Latencies are one way. Bandwidths are those of the size at which they are highest. Sizes are in bytes; MB are 10**6 B,
in IMB before 2018 2**20 B, so IMB's bandwidth is computed from its sizes and times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from advisor.analysis.machines.records import Measurement
from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.model.errors import InputError

_OSU: Final = re.compile(r"\s*# OSU MPI\S* (Latency|Bandwidth) Test v(\S+)")
_IMB: Final = re.compile(r"\s*# Benchmarking +(PingPong|Barrier) *$")
_IMB_PROCESSES: Final = re.compile(r"\s*# #processes = +(\d{1,9})")
_OVER_RANKS: Final = re.compile(r".*t_min\[usec\] +t_max\[usec\] +t_avg\[usec\]")
_STREAM: Final = re.compile(r"\s*STREAM version \$Revision: ([\d.]+)")
_STREAM_THREADS: Final = re.compile(r"\s*Number of Threads (?:counted|requested) = +(\d{1,6})")
_STREAM_TRIAD: Final = re.compile(r"\s*Triad: +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+) *$")
_STREAM_SIZE: Final = re.compile(r"\s*Array size = +(\d{1,12})")
_STREAM_WORD: Final = re.compile(r"\s*This system uses +(\d{1,2}) bytes per array element")
_ROW: Final = re.compile(r"\s*(\d{1,12})((?:\s+\d+(?:\.\d+)?)+)(?:\s+(?:Pass|-))?\s*$")
_BARRIER: Final = re.compile(r"\s*(\d{1,9})\s+(\d+\.\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)\s*$")
#: Messages of at most so many bytes are short.
_SHORT: Final = 8
#: The least size whose bandwidth is that of the network, not of its latency.
_LONG: Final = 64 << 10
_SOON: Final = 12
_SLACK: Final = 0.02
_MEGABYTES: Final = (1e6, float(1 << 20))


def read_outputs(path: Path) -> list[Measurement]:
    """Return what the file at ``path`` measured; raises ``InputError`` with the line of what is damaged."""
    text = read_plain_text(path)
    found = [*_read_osu(text), *_read_imb(text), *_read_stream(text)]
    if not found:
        reason = (
            "holds no osu_latency, osu_bw, IMB PingPong or Barrier of two processes, or STREAM that came to its end"
        )
        raise InputError(path, reason)
    return found


def _read_osu(text: PlainText) -> Iterator[Measurement]:
    for title, words in text.find_matches(_OSU):
        rows = _read_rows(text, title + 1, 1)
        tool = f"OSU MPI {words[1]} Test {words[2]}"
        if words[1] == "Latency":
            yield from _describe_times(text, {size: 1e-6 * cells[0] for size, cells in rows.items()}, tool)
        elif long := [cells[0] for size, cells in rows.items() if size >= _LONG]:
            yield Measurement("network.bandwidth", 1e6 * max(long), tool, text.path)


def _read_imb(text: PlainText) -> Iterator[Measurement]:
    for title, words in text.find_matches(_IMB):
        processes = next(iter(text.find_matches(_IMB_PROCESSES, title, title + 3)), None)
        if processes is None or int(processes[1][1]) != 2:
            continue
        if words[1] == "Barrier":
            yield from _read_barrier(text, title)
            continue
        over_ranks = text.find_line(_OVER_RANKS, title, title + _SOON) is not None
        columns = (3, 4) if over_ranks else (1, 2)  # the mean of least, most and mean; the only time
        rows = {size: (cells[columns[0]], cells[columns[1]])
                for size, cells in _read_rows(text, title + 2, columns[1] + 1).items()}  # fmt: skip
        for size, (micros, rate) in rows.items():
            if size >= _LONG and not any(abs(size / micros * 1e6 / unit / rate - 1) < _SLACK for unit in _MEGABYTES):
                raise InputError(text.path, f"{rate:g} MB/s are not {size:,} B in {micros:g} us")
        yield from _describe_times(text, {size: 1e-6 * micros for size, (micros, _) in rows.items()}, "IMB PingPong")


def _read_barrier(text: PlainText, title: int) -> Iterator[Measurement]:
    for line, cells in text.find_matches(_BARRIER, title, title + _SOON):
        least, most, mean = (text.parse_number(cells[n], line) for n in (2, 3, 4))
        if not least <= mean <= most:
            raise text.make_error(line, "the mean is not between the least and the most")
        yield Measurement("network.barrier", 1e-6 * mean, "IMB Barrier of two processes", text.path)
        return


def _describe_times(text: PlainText, seconds: dict[int, float], tool: str) -> Iterator[Measurement]:
    """Yield latency and bandwidth of messages of several sizes, in seconds one way."""
    if short := [time for size, time in seconds.items() if size <= _SHORT]:
        yield Measurement("network.latency", min(short), tool, text.path)
    if long := [size / time for size, time in seconds.items() if size >= _LONG]:
        yield Measurement("network.bandwidth", max(long), f"{tool}, size by time", text.path)


def _read_rows(text: PlainText, start: int, columns: int) -> dict[int, tuple[float, ...]]:
    """Return the numbers beside each size; raises ``InputError`` where sizes do not grow, or nothing took no time."""
    rows: dict[int, tuple[float, ...]] = {}
    for line in range(start, len(text.lines)):
        cells = _ROW.match(text.lines[line])
        if cells is None and rows and text.lines[line].lstrip().startswith("["):
            continue  # the distribution of the times
        if cells is None and rows:
            break
        if cells is None:
            if line > start + _SOON:
                break
            continue
        numbers = tuple(text.parse_number(cell, line) for cell in cells[2].split())
        size = int(cells[1])
        if len(numbers) < columns or (rows and size <= max(rows)):
            raise text.make_error(line, "no line of growing sizes with their numbers")
        if not all(numbers[: min(columns, 2)]):
            raise text.make_error(line, "messages that take no time")
        rows[size] = numbers[:columns]
    return rows


def _read_stream(text: PlainText) -> Iterator[Measurement]:
    titles = list(text.find_matches(_STREAM))
    for number, (title, version) in enumerate(titles):
        stop = titles[number + 1][0] if number + 1 < len(titles) else len(text.lines)
        triad = next(iter(text.find_matches(_STREAM_TRIAD, title, stop)), None)
        size, word = (text.find_match(pattern, title, stop) for pattern in (_STREAM_SIZE, _STREAM_WORD))
        if triad is None or size is None or word is None:
            continue
        line, cells = triad
        rate, mean, least, most = (text.parse_number(cells[n], line) for n in range(1, 5))
        moved = 3 * int(size[1]) * int(word[1])
        if not 0 < least <= mean <= most or abs(rate * 1e6 * least / moved - 1) > _SLACK:
            raise text.make_error(line, f"{rate:g} MB/s are not {moved:,} B in {least:g} s")
        threads = text.find_match(_STREAM_THREADS, title, stop)
        count = int(threads[1]) if threads else 1
        field = "memory.sustained" if count > 1 else "memory.per_core"
        yield Measurement(field, 1e6 * rate, f"STREAM {version[1]}, Triad on {count} threads", text.path)
