"""What several tools recorded of one run, made one profile."""

from advisor.analysis.merging.recordings import merge
from advisor.analysis.merging.runs import together

__all__ = ["merge", "together"]
