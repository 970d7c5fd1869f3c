"""What can be said about a run in words: the vocabulary of the rules' conditions, and its values at every site."""

from advisor.facts.page import document
from advisor.facts.sheet import FactSheet, Site, collect
from advisor.facts.told import told
from advisor.facts.vocabulary import VOCABULARY, Fact

__all__ = ["VOCABULARY", "Fact", "FactSheet", "Site", "collect", "document", "told"]
