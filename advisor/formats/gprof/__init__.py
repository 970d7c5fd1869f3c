"""Text of gprof: flat profiles and call graphs, one report per process (see ``docs/formats/gprof.md``)."""

from advisor.formats.gprof.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
