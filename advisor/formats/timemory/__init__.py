"""timemory's JSON, which Omnitrace and ROCm Systems Profiler write as well (see ``docs/formats/timemory.md``)."""

from advisor.formats.timemory.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
