"""What can be said about a run in words: the vocabulary of the rules' conditions, and its values at every site."""

from advisor.advice.facts.page import document
from advisor.advice.facts.sheet import FactSheet, Site, collect
from advisor.advice.facts.told import told
from advisor.advice.facts.vocabulary import VOCABULARY, Fact

__all__ = ["VOCABULARY", "Fact", "FactSheet", "Site", "collect", "document", "told"]
