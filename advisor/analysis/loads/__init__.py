"""The load of each processor in each phase, in one pass over the arrays of a profile."""

from advisor.analysis.loads.phases import ProfileLoads, SecondsSpread, summarize_loads

__all__ = ["ProfileLoads", "SecondsSpread", "summarize_loads"]
