"""Suites of benchmarks: Google Benchmark, pytest-benchmark, hyperfine (see ``docs/formats/benchmarks.md``)."""

from advisor.formats.benchmarks.hooks import advisor_read, advisor_sniff

__all__ = ["advisor_read", "advisor_sniff"]
