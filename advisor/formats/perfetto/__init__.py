"""Perfetto traces of device runs (see ``docs/formats/perfetto.md``)."""

from advisor.formats.perfetto.hooks import advisor_read, advisor_sniff

__all__ = ["advisor_read", "advisor_sniff"]
