"""What ``perf stat`` prints for programs: CSV and JSON, a file for each rank (see ``docs/formats/perf.md``)."""

from advisor.formats.perf_stat.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
