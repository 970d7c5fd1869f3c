"""Dimemas traces (``.dim``), the computation and communication of a run without times (``docs/formats/dimemas.md``)."""

from advisor.formats.dimemas.hooks import advisor_read, advisor_sniff, advisor_trace, read_records

__all__ = ["advisor_read", "advisor_sniff", "advisor_trace", "read_records"]
