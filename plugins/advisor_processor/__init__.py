"""How far a program is from what one processor can do, and why: M, MA, MAC, MACS and $ (docs/plugins/processor.md)."""

from advisor_processor.hooks import (
    advisor_commands,
    advisor_facts,
    advisor_findings,
    advisor_read,
    advisor_rules,
    advisor_services,
    advisor_sniff,
)

__all__ = [
    "advisor_commands",
    "advisor_facts",
    "advisor_findings",
    "advisor_read",
    "advisor_rules",
    "advisor_services",
    "advisor_sniff",
]
