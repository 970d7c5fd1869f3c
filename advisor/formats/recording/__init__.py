"""Recordings of ``gapwatch run``, in the format ``gapwatch/trace/1`` (see ``docs/formats/recording.md``)."""

from advisor.formats.recording.hooks import advisor_read, advisor_sniff, advisor_trace, read_trace

__all__ = ["advisor_read", "advisor_sniff", "advisor_trace", "read_trace"]
