"""Which tuning actions meet which gaps. Rules are data: ``rules/*.yaml``, explained in ``docs/rules.md``."""

from advisor.advice.rules.book import load, load_default
from advisor.advice.rules.matching import Match, Matches, match
from advisor.advice.rules.records import RuleBook

__all__ = [
    "Match",
    "Matches",
    "RuleBook",
    "load",
    "load_default",
    "match",
]
