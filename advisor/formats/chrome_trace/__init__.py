"""Chrome trace JSON, as PyTorch's profiler writes it (see ``docs/formats/chrome_trace.md``)."""

from advisor.formats.chrome_trace.hooks import advisor_read, advisor_sniff

__all__ = ["advisor_read", "advisor_sniff"]
