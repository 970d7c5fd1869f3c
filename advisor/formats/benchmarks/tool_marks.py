"""Which tool wrote a document of benchmarks, by what stands at its two ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

#: What the JSON documents of each tool hold at their ends.
IN_DOCUMENTS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "Google Benchmark": (b'"context"', b'"benchmarks"', b'"real_time"', b'"cpu_time"'),
    "pytest-benchmark": (b'"machine_info"', b'"benchmarks"', b'"stats"'),
    "hyperfine": (b'"results"', b'"command"', b'"median"', b'"stddev"'),
    "JMH": (b'"jmhVersion"', b'"primaryMetric"', b'"scoreUnit"'),
    "BenchmarkDotNet": (b'"HostEnvironmentInfo"', b'"BenchmarkDotNetVersion"', b'"Benchmarks"'),
    "pyperf": (b'"benchmarks"', b'"runs"', b'"metadata"', b'"python_implementation"'),
}

#: What the lines of each tool look like; the first that is found has written the file.
IN_LINES: Final[Mapping[str, re.Pattern[bytes]]] = {
    "Go": re.compile(rb"(?m)^Benchmark\S*\s+\d+\s+[\d.]+ ns/op"),
    "Criterion.rs": re.compile(rb"(?m)^.*\btime: +\[[\d.]+ \S{1,3} [\d.]+ \S{1,3} [\d.]+ \S{1,3}\]"),
    "libtest": re.compile(rb"(?m)^test .{1,300} \.\.\. bench: +[\d,.]+ ..?/iter \(\+/- "),
    "Catch2": re.compile(rb"(?m)^benchmark name +samples +iterations +est"),
    "JMH's table": re.compile(
        rb"(?m)^(?:\[\w+\]\s+)?Benchmark[ \t]+(?:\(\S+\)[ \t]+)*Mode[ \t]+(?:Thr[ \t]+)?(?:Cnt|Count|Samples)[ \t]+"
        rb"(?:Sec[ \t]+)?(?:Score|Mean)[ \t].*Units?\s*$"
    ),
    "JMH's CSV": re.compile(rb'\A"?Benchmark"?[,;]"?Mode"?[,;]"?Threads"?[,;]"?Samples"?[,;]"?Score"?[,;]'),
    "RAJAPerf": re.compile(rb"\A(?:Mean|Min|Max) Runtime Report \(sec\.\)[ ,]*\r?\n(?:Kernel|Variant) *,"),
}


def find_tool(ends: bytes) -> str | None:
    """Return the tool that wrote a document, by its two ends; None where it is none of benchmarks."""
    for tool, marks in IN_DOCUMENTS.items():
        if all(mark in ends for mark in marks):
            return tool
    return next((tool for tool, mark in IN_LINES.items() if mark.search(ends)), None)
