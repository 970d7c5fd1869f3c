"""What the processors have to do in each phase: one pass over the arrays of a profile."""

from advisor.analysis.loads.summary import ProfileLoads, SecondsSpread, summarize_loads

__all__ = ["ProfileLoads", "SecondsSpread", "summarize_loads"]
