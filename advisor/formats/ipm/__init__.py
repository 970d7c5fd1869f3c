"""IPM's XML: MPI and I/O by call, size and task (see ``docs/formats/ipm.md``)."""

from advisor.formats.ipm.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
