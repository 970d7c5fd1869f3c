"""Kernel coupling: which kernels of a loop hurt or help each other, and what the program takes because of it."""

from advisor_coupling.hooks import (
    advisor_api,
    advisor_commands,
    advisor_document,
    advisor_facts,
    advisor_findings,
    advisor_rules,
)

__all__ = ["advisor_api", "advisor_commands", "advisor_document", "advisor_facts", "advisor_findings", "advisor_rules"]
