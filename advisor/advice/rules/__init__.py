"""Rules that map gaps to tuning actions. Rules are data: ``rules/*.yaml``, explained in ``docs/rules.md``."""

from advisor.advice.rules.matching import RuleMatch, RuleMatches, match_rules
from advisor.advice.rules.records import RuleBook
from advisor.advice.rules.rule_loader import load_default, load_rules

__all__ = ["RuleBook", "RuleMatch", "RuleMatches", "load_default", "load_rules", "match_rules"]
