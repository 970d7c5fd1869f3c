"""Recorder's traces: calls on files and of MPI of all ranks (see ``docs/formats/recorder.md``)."""

from advisor.formats.recorder.hooks import advisor_findings, advisor_read, advisor_sniff

__all__ = ["advisor_findings", "advisor_read", "advisor_sniff"]
