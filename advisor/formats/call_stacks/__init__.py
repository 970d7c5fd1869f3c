"""Profiles of call stacks: folded stacks, speedscope, pyinstrument, cProfile (see ``docs/formats/call_stacks.md``)."""

from advisor.formats.call_stacks.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
