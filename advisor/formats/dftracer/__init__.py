"""DFTracer traces (``.pfw``, ``.pfw.gz``): calls on files of all processes (see ``docs/formats/dftracer.md``)."""

from advisor.formats.dftracer.hooks import advisor_findings, advisor_read, advisor_sniff

__all__ = ["advisor_findings", "advisor_read", "advisor_sniff"]
