"""Databases, CSV tables and JSON of rocprofv3 (see ``docs/formats/rocprof.md``)."""

from advisor.formats.rocprof.hooks import advisor_read, advisor_sniff

__all__ = ["advisor_read", "advisor_sniff"]
