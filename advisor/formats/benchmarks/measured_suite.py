"""Suites of benchmarks as Google Benchmark, pytest-benchmark and hyperfine write them: seconds of one call of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.plain_text import read_content
from advisor.model.errors import InputError
from advisor.model.record_class import dataclass
from advisor.support import strict_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from advisor.support.strict_json import JsonNode

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_MOST_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class MeasuredBenchmark:
    """A benchmark: the median seconds of a call, CPU seconds (None: not known), and the spread of repetitions.

    ``spread`` is the standard deviation over the mean, or half of the range over the median of few repetitions; None
    of a single one.
    """

    name: str
    wall_s: float
    cpu_s: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredSuite:
    """The benchmarks of one file, and what it says of the run."""

    tool: str
    benchmarks: tuple[MeasuredBenchmark, ...]
    program: str = ""
    started: str | None = None
    host: str | None = None
    cores: int | None = None
    build: str | None = None
    failed: tuple[str, ...] = ()


def find_tool(ends: bytes) -> str | None:
    """Return the tool that wrote a document, by its two ends; None where it is none of benchmarks."""
    for tool, (marks, _) in _TOOLS.items():
        if all(mark in ends for mark in marks):
            return tool
    return None


def read_suite(path: Path, tool: str) -> MeasuredSuite:
    """Return the benchmarks in the document at ``path``; raises ``InputError`` with the place of what is wrong."""
    suite = _TOOLS[tool][1](strict_json.parse_json(path, read_content(path)))
    names = [benchmark.name for benchmark in suite.benchmarks]
    if not names:
        raise InputError(path, "holds no benchmark that was measured")
    if len(set(names)) < len(names):
        raise InputError(path, "two benchmarks have the same name")
    return suite


def _require(node: JsonNode, *names: str) -> dict[str, JsonNode]:
    """Return the members of an object, ``names`` among them."""
    found = node.require_fields()
    for name in names:
        if name not in found:
            raise node.make_error(f"{name!r} is missing")
    return found


def _seconds(node: JsonNode, unit_s: float = 1.0) -> float:
    seconds = node.require_number(0.0) * unit_s
    if seconds > _MOST_S:
        raise node.make_error(f"{seconds:g} s are impossible here")
    return seconds


def _optional_text(fields: dict[str, JsonNode], name: str) -> str | None:
    return fields[name].require_text() if name in fields else None


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))


def _half_range(values: list[float]) -> float | None:
    middle = _median(values)
    return (max(values) - min(values)) / 2 / middle if len(values) > 1 and middle > 0 else None


def _read_google(root: JsonNode) -> MeasuredSuite:
    fields = _require(root, "context", "benchmarks")
    context = _require(fields["context"])
    executable = _optional_text(context, "executable") or ""
    found: dict[str, tuple[list[float], list[float]]] = {}
    summed_up: dict[str, dict[str, float]] = {}
    failed: list[str] = []
    for node in fields["benchmarks"].require_items():
        each = _require(node, "name")
        name = _optional_text(each, "run_name") or each["name"].require_text()
        if "error_occurred" in each or "error_message" in each:
            failed.append(name)
            continue
        if "real_time" not in each:
            continue
        unit_s = _UNITS[_require(node, "time_unit")["time_unit"].require_choice(_UNITS)]
        if _optional_text(each, "run_type") == "aggregate":
            if _optional_text(each, "aggregate_unit") != "percentage":
                kind = _optional_text(each, "aggregate_name") or ""
                summed_up.setdefault(name, {})[kind] = _seconds(each["real_time"], unit_s)
            continue
        walls, cpus = found.setdefault(name, ([], []))
        walls.append(_seconds(each["real_time"], unit_s))
        if "cpu_time" in each and each.get("threads", each["name"]).value in (1, each["name"].value):
            cpus.append(_seconds(each["cpu_time"], unit_s))
    benchmarks = tuple(
        MeasuredBenchmark(
            name,
            _median(walls),
            _median(cpus) if len(cpus) == len(walls) else None,
            _half_range(walls),
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
        _optional_text(context, "date"),
        _optional_text(context, "host_name"),
        context["num_cpus"].require_whole(1) if "num_cpus" in context else None,
        failed=tuple(failed),
    )


def _read_pytest(root: JsonNode) -> MeasuredSuite:
    fields = _require(root, "benchmarks", "machine_info")
    benchmarks = []
    for node in fields["benchmarks"].require_items():
        each = _require(node, "fullname", "stats")
        stats = _require(each["stats"], "median", "mean", "stddev", "min", "max")
        least, middle, most = (_seconds(stats[name]) for name in ("min", "median", "max"))
        if not least <= middle <= most:
            raise each["stats"].make_error("the median is not between the least and the most")
        mean = _seconds(stats["mean"])
        spread = _seconds(stats["stddev"]) / mean if mean > 0 else None
        benchmarks.append(MeasuredBenchmark(each["fullname"].require_text(), middle, None, spread))
    commit = fields["commit_info"].require_fields() if "commit_info" in fields else {}
    build = _optional_text(commit, "id")
    dirty = "dirty" in commit and commit["dirty"].require_flag()
    machine = fields["machine_info"].require_fields()
    return MeasuredSuite(
        "pytest-benchmark",
        tuple(benchmarks),
        started=_optional_text(fields, "datetime"),
        host=_optional_text(machine, "node"),
        build=None if build in (None, "unversioned") else f"{build[:12]}{'+dirty' if dirty else ''}",
    )


def _read_hyperfine(root: JsonNode) -> MeasuredSuite:
    fields = _require(root, "results")
    benchmarks = []
    for node in fields["results"].require_items():
        each = _require(node, "command", "mean", "median", "min", "max")
        least, middle, most = (_seconds(each[name]) for name in ("min", "median", "max"))
        if not least <= middle <= most:
            raise node.make_error("the median is not between the least and the most")
        cpu_s = sum(_seconds(each[name]) for name in ("user", "system") if name in each)
        mean = _seconds(each["mean"])
        spread = _seconds(each["stddev"]) / mean if "stddev" in each and mean > 0 else None
        known = "user" in each and "system" in each and cpu_s <= middle
        benchmarks.append(MeasuredBenchmark(each["command"].require_text(), middle, cpu_s if known else None, spread))
    return MeasuredSuite("hyperfine", tuple(benchmarks))


#: What the documents of each tool hold at their ends, and what reads them.
_TOOLS: Final[dict[str, tuple[tuple[bytes, ...], Callable[[JsonNode], MeasuredSuite]]]] = {
    "Google Benchmark": ((b'"context"', b'"benchmarks"', b'"real_time"', b'"cpu_time"'), _read_google),
    "pytest-benchmark": ((b'"machine_info"', b'"benchmarks"', b'"stats"'), _read_pytest),
    "hyperfine": ((b'"results"', b'"command"', b'"median"', b'"stddev"'), _read_hyperfine),
}
