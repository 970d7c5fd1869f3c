"""What ``perf script`` prints: samples by process and thread (see ``docs/formats/perf.md``)."""

from advisor.formats.perf.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
