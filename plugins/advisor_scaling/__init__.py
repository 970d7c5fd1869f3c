"""How time grows with problem size and processors: models of runs, regions and gaps, and what they predict."""

from advisor_scaling.hooks import (
    advisor_api,
    advisor_commands,
    advisor_document,
    advisor_facts,
    advisor_findings,
    advisor_rules,
    advisor_services,
)

__all__ = [
    "advisor_api",
    "advisor_commands",
    "advisor_document",
    "advisor_facts",
    "advisor_findings",
    "advisor_rules",
    "advisor_services",
]
