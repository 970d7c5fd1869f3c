"""Nsight Systems reports, exported as SQLite, Parquet or Arrow (see ``docs/formats/nsys.md``)."""

from advisor.formats.nsys.hooks import advisor_read, advisor_sniff

__all__ = ["advisor_read", "advisor_sniff"]
