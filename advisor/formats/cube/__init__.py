"""CUBE files (version 4, ``.cubex``), the profiles of Score-P and Scalasca (see ``docs/formats/cube.md``)."""

from advisor.formats.cube.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
