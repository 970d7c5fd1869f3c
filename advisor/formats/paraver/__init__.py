"""Paraver traces, as Extrae writes them: ``.prv`` with ``.pcf`` and ``.row`` (see ``docs/formats/paraver.md``)."""

from advisor.formats.paraver.hooks import advisor_read, advisor_sniff, advisor_trace, read_trace

__all__ = ["advisor_read", "advisor_sniff", "advisor_trace", "read_trace"]
