"""Timing tables that libraries and applications print by themselves (see ``docs/formats/timing_tables.md``)."""

from advisor.formats.timing_tables.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
