"""Profiles of TAU, and a word about its binary traces (see ``docs/formats/tau.md``)."""

from advisor.formats.tau.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
