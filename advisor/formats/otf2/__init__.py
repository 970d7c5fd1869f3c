"""OTF2 archives, the traces of Score-P, EZTrace and TAU, decoded in arrays (see ``docs/formats/otf2.md``)."""

from advisor.formats.otf2.hooks import advisor_read, advisor_sniff, advisor_trace, read_trace

__all__ = ["advisor_read", "advisor_sniff", "advisor_trace", "read_trace"]
