"""Text reports of mpiP, the lightweight MPI profiler (see ``docs/formats/mpip.md``)."""

from advisor.formats.mpip.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
