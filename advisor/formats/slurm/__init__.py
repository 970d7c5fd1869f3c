"""Slurm's accounts of a job, as ``sacct -P`` and ``seff`` print them (see ``docs/formats/slurm.md``)."""

from advisor.formats.slurm.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
