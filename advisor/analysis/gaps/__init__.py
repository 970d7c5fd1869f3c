"""The gaps between bounds: how many seconds, where they come from, and what caused them."""

from advisor.analysis.gaps.between_bounds import attribute, ceiling, phase_shares

__all__ = ["attribute", "ceiling", "phase_shares"]
