"""Facts: the vocabulary of the rules' conditions, and its values at every site."""

from advisor.advice.facts.fact_records import Fact
from advisor.advice.facts.sheet import FactSheet, Site, add_finding_values, collect_facts
from advisor.advice.facts.vocabulary import VOCABULARY

__all__ = ["VOCABULARY", "Fact", "FactSheet", "Site", "add_finding_values", "collect_facts"]
