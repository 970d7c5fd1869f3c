"""Outputs of cachegrind: instructions, data accesses, cache misses by function (see ``docs/formats/cachegrind.md``)."""

from advisor.formats.cachegrind.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
