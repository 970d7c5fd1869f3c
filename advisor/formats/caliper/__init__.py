"""Profiles of Caliper: native ``.cali`` files and the JSON that ``cali-query`` and Caliper's recipes write.

What is read and what it becomes: ``docs/formats/caliper.md``.
"""

from advisor.formats.caliper.hooks import advisor_read, advisor_sniff, read_call_paths

__all__ = ["advisor_read", "advisor_sniff", "read_call_paths"]
