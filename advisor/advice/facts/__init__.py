"""Facts: the vocabulary of the rules' conditions, and its values at every site."""

from advisor.advice.facts.from_findings import add_finding_values
from advisor.advice.facts.sheet import FactSheet, Site, collect_facts
from advisor.advice.facts.vocabulary import VOCABULARY, Fact

__all__ = ["VOCABULARY", "Fact", "FactSheet", "Site", "add_finding_values", "collect_facts"]
