"""Reports of VTune: summaries and hotspots, as text and CSV (see ``docs/formats/vtune.md``)."""

from advisor.formats.vtune.hooks import advisor_read, advisor_sniff

__all__ = ["advisor_read", "advisor_sniff"]
