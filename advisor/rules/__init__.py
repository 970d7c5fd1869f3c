"""Which tuning actions meet which gaps. Rules are data: ``rules/*.yaml``, explained in ``docs/rules.md``."""

from advisor.rules.book import load, load_default
from advisor.rules.cases import ExampleResult, run_examples
from advisor.rules.lint import check, lint
from advisor.rules.matching import Match, Matches, match
from advisor.rules.records import RuleBook

__all__ = [
    "ExampleResult",
    "Match",
    "Matches",
    "RuleBook",
    "check",
    "lint",
    "load",
    "load_default",
    "match",
    "run_examples",
]
