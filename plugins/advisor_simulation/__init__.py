"""Simulation of programs: models executed on machine models, and what a change would win."""

from advisor_simulation.hooks import (
    advisor_commands,
    advisor_counterfactuals,
    advisor_document,
    advisor_expected_gain,
    advisor_facts,
    advisor_findings,
    advisor_rules,
)

__all__ = [
    "advisor_commands",
    "advisor_counterfactuals",
    "advisor_document",
    "advisor_expected_gain",
    "advisor_facts",
    "advisor_findings",
    "advisor_rules",
]
