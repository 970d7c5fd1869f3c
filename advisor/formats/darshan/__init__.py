"""Darshan logs: what a run read and wrote, by file, rank and interface (see ``docs/formats/darshan.md``)."""

from advisor.formats.darshan.hooks import advisor_findings, advisor_read, advisor_sniff

__all__ = ["advisor_findings", "advisor_read", "advisor_sniff"]
