"""Suites of benchmarks in the documents of tools that measure them: seconds of one call of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from advisor.formats.benchmarks.benchmark_records import (
    UNITS,
    MeasuredBenchmark,
    MeasuredSuite,
    compute_half_range,
    compute_median,
    read_seconds,
)
from advisor.formats.benchmarks.json_suites import read_dotnet, read_jmh, read_pyperf
from advisor.formats.benchmarks.text_suites import read_text_suite
from advisor.formats.benchmarks.tool_marks import IN_LINES
from advisor.formats.plain_text import read_content, read_plain_text
from advisor.model.errors import InputError
from advisor.support import strict_json
from advisor.support.strict_json import JsonNode, optional_text

_GOOGLE_UNITS: Final = ("ns", "us", "ms", "s")


def read_suite(path: Path, tool: str) -> MeasuredSuite:
    """Return the benchmarks in the document at ``path``; raises ``InputError`` with the place of what is wrong."""
    if tool in IN_LINES:
        suite = read_text_suite(read_plain_text(path), tool)
    else:
        suite = _READERS[tool](strict_json.parse_json(path, read_content(path)))
    names = [benchmark.name for benchmark in suite.benchmarks]
    if not names:
        raise InputError(path, "holds no benchmark that was measured")
    if len(set(names)) < len(names):
        raise InputError(path, "two benchmarks have the same name")
    return suite


def _read_google(root: JsonNode) -> MeasuredSuite:
    fields = root.require_members("context", "benchmarks")
    context = fields["context"].require_members()
    executable = optional_text(context, "executable") or ""
    found: dict[str, tuple[list[float], list[float]]] = {}
    summed_up: dict[str, dict[str, float]] = {}
    failed: list[str] = []
    for node in fields["benchmarks"].require_items():
        each = node.require_members("name")
        name = optional_text(each, "run_name") or each["name"].require_text()
        if "error_occurred" in each or "error_message" in each:
            failed.append(name)
            continue
        if "real_time" not in each:
            continue
        unit_s = UNITS[node.require_members("time_unit")["time_unit"].require_choice(_GOOGLE_UNITS)]
        if optional_text(each, "run_type") == "aggregate":
            if optional_text(each, "aggregate_unit") != "percentage":
                kind = optional_text(each, "aggregate_name") or ""
                summed_up.setdefault(name, {})[kind] = read_seconds(each["real_time"], unit_s)
            continue
        walls, cpus = found.setdefault(name, ([], []))
        walls.append(read_seconds(each["real_time"], unit_s))
        if "cpu_time" in each and each.get("threads", each["name"]).value in (1, each["name"].value):
            cpus.append(read_seconds(each["cpu_time"], unit_s))
    benchmarks = tuple(
        MeasuredBenchmark(
            name,
            compute_median(walls),
            compute_median(cpus) if len(cpus) == len(walls) else None,
            compute_half_range(walls),
        )
        for name, (walls, cpus) in found.items()
    )
    # --benchmark_report_aggregates_only
    benchmarks += tuple(
        MeasuredBenchmark(name, middle, None, kinds["stddev"] / middle if "stddev" in kinds and middle > 0 else None)
        for name, kinds in summed_up.items()
        if name not in found and (middle := kinds.get("median", kinds.get("mean"))) is not None
    )
    return MeasuredSuite(
        "Google Benchmark",
        benchmarks,
        executable.rsplit("/", 1)[-1],
        optional_text(context, "date"),
        optional_text(context, "host_name"),
        context["num_cpus"].require_whole(1) if "num_cpus" in context else None,
        failed=tuple(failed),
    )


def _read_pytest(root: JsonNode) -> MeasuredSuite:
    fields = root.require_members("benchmarks", "machine_info")
    benchmarks = []
    for node in fields["benchmarks"].require_items():
        each = node.require_members("fullname", "stats")
        stats = each["stats"].require_members("median", "mean", "stddev", "min", "max")
        least, middle, most = (read_seconds(stats[name]) for name in ("min", "median", "max"))
        if not least <= middle <= most:
            raise each["stats"].make_error("the median is not between the least and the most")
        mean = read_seconds(stats["mean"])
        spread = read_seconds(stats["stddev"]) / mean if mean > 0 else None
        benchmarks.append(MeasuredBenchmark(each["fullname"].require_text(), middle, None, spread))
    commit = fields["commit_info"].require_fields() if "commit_info" in fields else {}
    build = optional_text(commit, "id")
    dirty = "dirty" in commit and commit["dirty"].require_flag()
    machine = fields["machine_info"].require_fields()
    return MeasuredSuite(
        "pytest-benchmark",
        tuple(benchmarks),
        started=optional_text(fields, "datetime"),
        host=optional_text(machine, "node"),
        build=None if build in (None, "unversioned") else f"{build[:12]}{'+dirty' if dirty else ''}",
    )


def _read_hyperfine(root: JsonNode) -> MeasuredSuite:
    fields = root.require_members("results")
    benchmarks = []
    for node in fields["results"].require_items():
        each = node.require_members("command", "mean", "median", "min", "max")
        least, middle, most = (read_seconds(each[name]) for name in ("min", "median", "max"))
        if not least <= middle <= most:
            raise node.make_error("the median is not between the least and the most")
        cpu_s = sum(read_seconds(each[name]) for name in ("user", "system") if name in each)
        mean = read_seconds(each["mean"])
        spread = read_seconds(each["stddev"]) / mean if "stddev" in each and mean > 0 else None
        known = "user" in each and "system" in each and cpu_s <= middle
        benchmarks.append(MeasuredBenchmark(each["command"].require_text(), middle, cpu_s if known else None, spread))
    return MeasuredSuite("hyperfine", tuple(benchmarks))


_READERS: Final[Mapping[str, Callable[[JsonNode], MeasuredSuite]]] = {
    "Google Benchmark": _read_google,
    "pytest-benchmark": _read_pytest,
    "hyperfine": _read_hyperfine,
    "JMH": read_jmh,
    "BenchmarkDotNet": read_dotnet,
    "pyperf": read_pyperf,
}
