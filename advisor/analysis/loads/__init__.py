"""What the processors have to do in each phase: one pass over the arrays of a profile."""

from advisor.analysis.loads.summary import Loads, Spread, summarize

__all__ = ["Loads", "Spread", "summarize"]
