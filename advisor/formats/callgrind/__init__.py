"""Outputs of callgrind: instructions, data accesses, cache misses by function (see ``docs/formats/callgrind.md``)."""

from advisor.formats.callgrind.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
