"""Nsight Compute's tables of counted kernels (see ``docs/formats/ncu.md``)."""

from advisor.formats.ncu.hooks import advisor_read, advisor_sniff

__all__ = ["advisor_read", "advisor_sniff"]
