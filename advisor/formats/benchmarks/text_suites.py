"""What ``go test -bench``, ``cargo bench`` (libtest, Criterion.rs), Catch2 and JMH print: seconds of a call of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from advisor.formats.benchmarks.benchmark_records import (
    MOST_S,
    UNITS,
    MeasuredBenchmark,
    MeasuredSuite,
    compute_half_range,
    compute_median,
)
from advisor.formats.benchmarks.jmh_tables import read_jmh_csv, read_jmh_output

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_NUMBER: Final = r"(\d[\d,]*(?:\.\d+)?)"
_UNIT: Final = r"(ps|ns|us|µs|μs|ms|s|min)"
_GO: Final = re.compile(rf"(Benchmark\S*)\s+\d+\s+{_NUMBER} ns/op(?:\s|$)")
_PACKAGE: Final = re.compile(r"pkg: (\S+)$")
_LIBTEST: Final = re.compile(rf"test (\S.{{0,300}}?) +\.\.\. bench: +{_NUMBER} {_UNIT}/iter \(\+/- {_NUMBER}\)\s*$")
_CRITERION: Final = re.compile(
    rf"(\S.{{0,300}}?)?\s+time: +\[{_NUMBER} {_UNIT} {_NUMBER} {_UNIT} {_NUMBER} {_UNIT}\]\s*$"
)
_NAME: Final = re.compile(r"(\S.{0,300}?)\s*$")
_CATCH: Final = re.compile(rf"(\S.{{0,300}}?) +\d+ +\d+ +{_NUMBER} {_UNIT}\s*$")
#: What its line of tunings begins with: as that of the variants did, in old versions.
_SECOND_HEADS: Final = ("", "Kernel", "Tuning")
#: What RAJAPerf writes where a kernel has no such variant, or it was not asked for.
_NOT_RUN: Final = frozenset({"", "-", "Not run"})
_THREE: Final = re.compile(rf" +{_NUMBER} {_UNIT} +{_NUMBER} {_UNIT} +{_NUMBER} {_UNIT}\s*$")
#: Tables of JMH by their form: those that also name benchmarks whose time they do not state.
_JMH: Final = {"JMH's table": read_jmh_output, "JMH's CSV": read_jmh_csv}


def read_text_suite(text: PlainText, tool: str) -> MeasuredSuite:
    """Return the benchmarks in an output; raises ``InputError`` with the line of what cannot be."""
    if tool in _JMH:
        benchmarks, unstated = _JMH[tool](text)
        return MeasuredSuite("JMH", benchmarks, unstated=unstated, middle="mean")
    found = _READERS[tool](text)
    packages = {match[1] for _, match in text.find_matches(_PACKAGE)} if tool == "Go" else set()
    return MeasuredSuite(
        tool, found, packages.pop() if len(packages) == 1 else "", middle="median" if tool == "Go" else "mean"
    )


def _parse_seconds(text: PlainText, line: int, number: str, unit: str) -> float:
    seconds = text.parse_number(number.replace(",", ""), line) * UNITS[unit]
    if seconds > MOST_S:
        raise text.make_error(line, f"{seconds:g} s are impossible here")
    return seconds


def _read_go(text: PlainText) -> tuple[MeasuredBenchmark, ...]:
    """Return the benchmarks, those of ``-count`` once; the package is part of the name where there are several."""
    several = len({match[1] for _, match in text.find_matches(_PACKAGE)}) > 1
    package, spent = "", dict[str, list[float]]()
    for line, words in enumerate(text.lines):
        if named := _PACKAGE.match(words):
            package = f"{named[1]}." if several else ""
        elif cells := _GO.match(words):
            spent.setdefault(package + cells[1], []).append(_parse_seconds(text, line, cells[2], "ns"))
    return tuple(
        MeasuredBenchmark(name, compute_median(values), None, compute_half_range(values))
        for name, values in spent.items()
    )


def _read_libtest(text: PlainText) -> tuple[MeasuredBenchmark, ...]:
    found = []
    for line, cells in text.find_matches(_LIBTEST):
        middle, spread = (_parse_seconds(text, line, number, cells[3]) for number in (cells[2], cells[4]))
        found.append(MeasuredBenchmark(cells[1], middle, None, spread / 2 / middle if middle > 0 else None))
    return tuple(found)


def _read_criterion(text: PlainText) -> tuple[MeasuredBenchmark, ...]:
    """Return the estimates; a long name stands in the line before its times."""
    found = []
    for line, cells in text.find_matches(_CRITERION):
        above = _NAME.match(text.lines[line - 1]) if line else None
        name = cells[1] or (above[1] if above else "")
        low, middle, high = (_parse_seconds(text, line, cells[n], cells[n + 1]) for n in (2, 4, 6))
        if not low <= middle <= high:
            raise text.make_error(line, "the estimate is not within its interval")
        found.append(MeasuredBenchmark(name, middle))
    return tuple(found)


def _read_catch(text: PlainText) -> tuple[MeasuredBenchmark, ...]:
    found = []
    for line, cells in text.find_matches(_CATCH):
        means = _THREE.match(text.lines[line + 1]) if line + 1 < len(text.lines) else None
        deviations = _THREE.match(text.lines[line + 2]) if line + 2 < len(text.lines) else None
        if means is None or deviations is None:
            raise text.make_error(line, "no means and deviations follow")
        middle, low, high = (_parse_seconds(text, line + 1, means[n], means[n + 1]) for n in (1, 3, 5))
        if not low <= middle <= high:
            raise text.make_error(line + 1, "the mean is not within its interval")
        deviation = _parse_seconds(text, line + 2, deviations[1], deviations[2])
        found.append(MeasuredBenchmark(cells[1], middle, None, deviation / middle if middle > 0 else None))
    return tuple(found)


def _read_rajaperf(text: PlainText) -> tuple[MeasuredBenchmark, ...]:
    """Return each kernel in each variant that was run; tunings of a variant stand in a second line of the heading."""
    variants = _split_cells(text.lines[1])[1:]
    tunings = _split_cells(text.lines[2]) if len(text.lines) > 2 else [""]
    first = 2
    if tunings[0] in _SECOND_HEADS and len(tunings) == len(variants) + 1:
        first = 3
        variants = [f"{variant} {tuning}".strip() for variant, tuning in zip(variants, tunings[1:], strict=True)]
    found = []
    for line in range(first, len(text.lines)):
        kernel, *cells = _split_cells(text.lines[line])
        if not kernel:
            continue
        if len(cells) < len(variants) or line == len(text.lines) - 1:
            raise text.make_error(line, "a row of the table is cut off")
        for variant, cell in zip(variants, cells, strict=False):
            if variant and cell not in _NOT_RUN:
                found.append(MeasuredBenchmark(f"{kernel} {variant}", _parse_seconds(text, line, cell, "s")))
    return tuple(found)


def _split_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


_READERS: Final[Mapping[str, Callable[[PlainText], tuple[MeasuredBenchmark, ...]]]] = {
    "Go": _read_go,
    "Criterion.rs": _read_criterion,
    "libtest": _read_libtest,
    "Catch2": _read_catch,
    "RAJAPerf": _read_rajaperf,
}
