"""JMH's tables: the one that it prints last, that of kotlinx-benchmark, and those of ``-rf csv`` and ``-rf scsv``.

They state means, with half of the interval of 99.9 %; rows of a secondary metric have a colon in their name.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.analysis.distributions import student_t_quantile
from advisor.formats.benchmarks.benchmark_records import MOST_S, UNITS, MeasuredBenchmark

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_COLUMNS: Final = ("Benchmark", "Mode", "Threads", "Samples", "Score")
_FRONT: Final = r"(?:\[\w+\]\s+)?"  # sbt's and Maven's
_HEAD: Final = re.compile(
    rf"{_FRONT}Benchmark\s+((?:\(\S+\)\s+)*)Mode\s+(Thr\s+)?(?:Cnt|Count|Samples)\s+(Sec\s+)?(?:Score|Mean)\s"
)
_MODES: Final = ("thrpt", "avgt", "sample", "ss")
_ROW: Final = re.compile(rf"{_FRONT}(\S+)\s+(.*?\s)??({'|'.join(_MODES)})\s+(\S.*)")
_NUMBER: Final = re.compile(r"-?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?")
#: Scores of a sample of single calls scatter as these do: their interval is not one of repetitions.
_REPEATED: Final = ("thrpt", "avgt", "ss")
_REACH: Final = 0.9995  # the quantile at the upper end of an interval of 99.9 %


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a table; ``count`` and ``error`` are None where it does not say."""

    line: int
    name: str
    mode: str
    count: int | None
    score: str
    error: str | None
    unit: str


def read_jmh_output(text: PlainText) -> tuple[tuple[MeasuredBenchmark, ...], tuple[str, ...]]:
    """Return the benchmarks of the tables that JMH prints, and the names of those without a number."""
    return _build_benchmarks(text, _iterate_printed(text))


def read_jmh_csv(text: PlainText) -> tuple[tuple[MeasuredBenchmark, ...], tuple[str, ...]]:
    """Return the benchmarks of ``-rf csv`` or ``-rf scsv``, and the names of those without a number."""
    return _build_benchmarks(text, _iterate_cells(text))


def _build_benchmarks(text: PlainText, rows: Iterable[_Row]) -> tuple[tuple[MeasuredBenchmark, ...], tuple[str, ...]]:
    kept = [row for row in rows if ":" not in row.name.partition(" (")[0]]
    modes = len({row.mode for row in kept}) > 1
    found, without = [], []
    for row in kept:
        name = f"{row.name} [{row.mode}]" if modes else row.name
        benchmark = _build_benchmark(text, row, name) if _NUMBER.fullmatch(row.score) else None
        if benchmark is None:
            without.append(name)
        else:
            found.append(benchmark)
    return tuple(found), tuple(without)


def _build_benchmark(text: PlainText, row: _Row, name: str) -> MeasuredBenchmark | None:
    """Return one benchmark: the inverse of a throughput, None of one that is rounded to zero."""
    over, _, under = row.unit.partition("/")
    inverse = over == "ops"
    unit = under if inverse else over
    if unit not in UNITS or (under not in ("op", "ops") and not inverse):
        raise text.make_error(row.line, f"{row.unit!r} is no time of an operation, and no operations in a time")
    score = _parse_score(text, row.score, row.line)
    if inverse and not score > 0:
        return None
    wall_s = UNITS[unit] / score if inverse else score * UNITS[unit]
    if wall_s > MOST_S:
        raise text.make_error(row.line, f"{wall_s:g} s are impossible here")
    return MeasuredBenchmark(name, wall_s, None, _compute_spread(text, row, score))


def _compute_spread(text: PlainText, row: _Row, score: float) -> float | None:
    """Return the standard deviation over the mean, at least half of the last digit that is printed; None: unknown."""
    if row.mode not in _REPEATED or row.count is None or row.count < 3 or not score > 0:
        return None
    if row.error is None or not _NUMBER.fullmatch(row.error):
        return None
    half_width = _parse_score(text, row.error, row.line)
    deviation = half_width * math.sqrt(row.count) / student_t_quantile(_REACH, row.count - 1)
    digits = len(_normalize_number(row.score).partition(".")[2])
    return float(max(deviation, 0.5 * 10.0**-digits) / score)


def _normalize_number(number: str) -> str:
    """Return a number with a point: JMH groups no digits, so that a comma alone stands for one."""
    return number.replace(",", "" if "." in number else ".")


def _parse_score(text: PlainText, number: str, line: int) -> float:
    return text.parse_number(_normalize_number(number), line)


def _name_row(name: str, params: Iterable[str], values: Iterable[str]) -> str:
    setting = ", ".join(f"{param}={value}" for param, value in sorted(zip(params, values, strict=False)) if value)
    return f"{name} ({setting})" if setting else name


def _iterate_printed(text: PlainText) -> Iterable[_Row]:
    """Yield the rows of printed tables, which end with a line that is none."""
    params: list[str] | None = None
    old: tuple[bool, bool] = (False, False)
    for line, words in enumerate(text.lines):
        if head := _HEAD.match(words):
            params = [word.strip("()") for word in head[1].split()]
            old = (head[2] is not None, head[3] is not None)
            continue
        if params is None:
            continue
        cells = _ROW.match(words)
        if cells is None:
            params = None
            continue
        *numbers, unit = cells[4].split()
        count, score, error = _split_numbers(numbers, old)
        if score is None:
            raise text.make_error(line, "a row of the table is cut off")
        values = (cells[2] or "").split("  ") if params else []
        values = [value.strip() for value in values if value.strip()]
        if len(values) != len(params):
            values = (cells[2] or "").split()
        yield _Row(line, _name_row(cells[1], params, values), cells[3], count, score, error, unit)


def _split_numbers(words: list[str], old: tuple[bool, bool]) -> tuple[int | None, str | None, str | None]:
    """Return count, score and error; ``old``: threads stand before the count, seconds behind it.

    The error follows a sign whose bytes may be damaged; early versions wrote none, and the error is left out where it
    is not known, as the count is where it is 1.
    """
    numbers = words[1:] if old[0] else list(words)
    if old[1] and len(numbers) > 1:
        del numbers[1]
    signs = [n for n, word in enumerate(numbers) if n and not any(letter.isalnum() for letter in word)]
    if any(word.startswith("≈") for word in numbers):
        return None, "≈", None
    if signs:
        error = numbers[signs[0] + 1] if signs[0] + 1 < len(numbers) else None
        numbers = numbers[: signs[0]]
    elif len(numbers) == 3:
        error = numbers.pop()
    else:
        error = None
    if not numbers:
        return None, None, None
    count = int(numbers[0]) if len(numbers) == 2 and numbers[0].isdecimal() else None
    return count, numbers[-1], error


def _iterate_cells(text: PlainText) -> Iterable[_Row]:
    """Yield the rows of the file, by the names of its columns."""
    mark = ";" if ";" in text.lines[0] else ","
    lines = [number for number, words in enumerate(text.lines) if words.strip()]
    rows = list(csv.reader((text.lines[number] for number in lines), delimiter=mark))
    head = [cell.strip() for cell in rows[0]]
    if "Unit" not in head or any(name not in head for name in _COLUMNS):
        raise text.make_error(0, "columns of JMH are missing")
    error = next((cell for cell in head if cell.startswith("Score Error")), None)
    params = [cell for cell in head if cell.startswith("Param: ")]
    for line, cells in zip(lines[1:], rows[1:], strict=False):
        if len(cells) != len(head):
            raise text.make_error(line, f"has {len(cells)} cells, the head {len(head)}")
        each: Mapping[str, str] = dict(zip(head, (cell.strip() for cell in cells), strict=True))
        count = int(each["Samples"]) if each["Samples"].isdecimal() else None
        name = _name_row(each["Benchmark"], (p.removeprefix("Param: ") for p in params), (each[p] for p in params))
        yield _Row(line, name, each["Mode"], count, each["Score"], each[error] if error else None, each["Unit"])
