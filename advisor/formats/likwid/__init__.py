"""What ``likwid-perfctr`` and ``likwid-mpirun`` print: CSV and text tables (see ``docs/formats/likwid.md``)."""

from advisor.formats.likwid.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
