"""JSON of JMH (Java), BenchmarkDotNet (.NET) and pyperf (Python): seconds of one call of each benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from advisor.formats.benchmarks.benchmark_records import (
    UNITS,
    MeasuredBenchmark,
    MeasuredSuite,
    compute_median,
    read_seconds,
)
from advisor.support.strict_json import JsonNode, optional_text

#: A median of few digits may be a little outside of the range.
_SLACK: Final = 1e-9


def read_jmh(root: JsonNode) -> MeasuredSuite:
    """Return the suite of ``-rf json``. Of throughputs, operations of all threads together, it is the inverse."""
    names: list[str] = []
    benchmarks: list[MeasuredBenchmark] = []
    for node in root.require_items():
        each = node.require_members("benchmark", "mode", "primaryMetric")
        metric = each["primaryMetric"].require_members("score", "scoreUnit", "scorePercentiles")
        parts = metric["scoreUnit"].require_text().split("/")
        inverse = parts[0] == "ops"
        if len(parts) != 2 or parts[1 - inverse] not in ("ops", "op") or parts[inverse] not in UNITS:
            raise metric["scoreUnit"].make_error("no time of an operation, and no operations in a time")
        unit_s = UNITS[parts[inverse]]
        least, middle, most = (
            metric["scorePercentiles"].require_members(at)[at].require_number(0.0) for at in ("0.0", "50.0", "100.0")
        )
        score = metric["score"].require_number(0.0)
        if not (least <= middle <= most and least * (1 - _SLACK) <= score <= most * (1 + _SLACK)):
            raise each["primaryMetric"].make_error("score and median are not between the least and the most")
        if inverse and not middle > 0:
            raise each["primaryMetric"].make_error("no operation in any time")
        params = each["params"].require_members() if "params" in each else {}
        setting = ", ".join(f"{name}={value.require_text()}" for name, value in sorted(params.items()))
        names.append(each["benchmark"].require_text() + (f" ({setting})" if setting else ""))
        raw = metric["rawData"].require_items() if "rawData" in metric else []
        values = [value.require_number(0.0) for fork in raw for value in fork.require_items()]
        wall_s = unit_s / middle if inverse else middle * unit_s
        benchmarks.append(MeasuredBenchmark(each["mode"].require_text(), wall_s, None, _compute_spread(values)))
    modes = len({benchmark.name for benchmark in benchmarks}) > 1
    return MeasuredSuite(
        "JMH",
        tuple(
            MeasuredBenchmark(f"{name} [{each.name}]" if modes else name, each.wall_s, None, each.spread)
            for name, each in zip(names, benchmarks, strict=True)
        ),
    )


def read_dotnet(root: JsonNode) -> MeasuredSuite:
    """Return the suite of BenchmarkDotNet's JSON exporters, full and brief."""
    fields = root.require_members("HostEnvironmentInfo", "Benchmarks")
    host = fields["HostEnvironmentInfo"].require_members()
    nodes = [node.require_members("FullName") for node in fields["Benchmarks"].require_items()]
    often = Counter(each["FullName"].require_text() for each in nodes)
    benchmarks: list[MeasuredBenchmark] = []
    failed: list[str] = []
    for each in nodes:
        name = each["FullName"].require_text()
        shown = (optional_text(each, "DisplayInfo") or name) if often[name] > 1 else name
        if "Statistics" not in each:
            failed.append(shown)
            continue
        stats = each["Statistics"].require_members("Min", "Median", "Max", "Mean", "StandardDeviation")
        least, middle, most, mean = (read_seconds(stats[key], 1e-9) for key in ("Min", "Median", "Max", "Mean"))
        if not (least <= middle <= most and least * (1 - _SLACK) <= mean <= most * (1 + _SLACK)):
            raise each["Statistics"].make_error("median and mean are not between the least and the most")
        spread = read_seconds(stats["StandardDeviation"], 1e-9) / mean if mean > 0 else None
        benchmarks.append(MeasuredBenchmark(shown, middle, None, spread))
    cores = host["LogicalCoreCount"].require_whole(1) if "LogicalCoreCount" in host else None
    return MeasuredSuite("BenchmarkDotNet", tuple(benchmarks), cores=cores, failed=tuple(failed))


def read_pyperf(root: JsonNode) -> MeasuredSuite:
    """Return the benchmarks of pyperf that measure seconds: those of memory and counts are left out."""
    fields = root.require_members("benchmarks", "version")
    common = fields["metadata"].require_members() if "metadata" in fields else {}
    benchmarks: list[MeasuredBenchmark] = []
    for node in fields["benchmarks"].require_items():
        each = node.require_members("runs")
        about = {**common, **(each["metadata"].require_members() if "metadata" in each else {})}
        if (optional_text(about, "unit") or "second") != "second":
            continue
        runs = [run.require_members() for run in each["runs"].require_items()]
        values = [read_seconds(value) for run in runs if "values" in run for value in run["values"].require_items()]
        if values:
            name = optional_text(about, "name") or "benchmark"
            benchmarks.append(MeasuredBenchmark(name, compute_median(values), None, _compute_spread(values)))
    cores = common["cpu_count"].require_whole(1) if "cpu_count" in common else None
    return MeasuredSuite("pyperf", tuple(benchmarks), host=optional_text(common, "hostname"), cores=cores)


def _compute_spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation over the mean, of any numbers; None of a single value."""
    most = max(values, default=0.0)
    if len(values) < 2 or not most > 0:
        return None
    shares = np.asarray(values) / most  # squares of the values themselves may be beyond all numbers
    return float(np.std(shares, ddof=1) / np.mean(shares))
