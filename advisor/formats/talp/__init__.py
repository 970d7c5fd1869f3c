"""TALP, the monitor in DLB: JSON, tables and the report on stderr (see ``docs/formats/talp.md``)."""

from advisor.formats.talp.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
