"""Suites of benchmarks in the documents of many tools (see ``docs/formats/benchmarks.md``)."""

from advisor.formats.benchmarks.hooks import advisor_read, advisor_sniff

__all__ = ["advisor_read", "advisor_sniff"]
