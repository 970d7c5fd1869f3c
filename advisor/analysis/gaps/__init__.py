"""The gaps between bounds: how many seconds, where they come from, and what caused them."""

from advisor.analysis.gaps.between_bounds import attribute_gaps, build_accounts, compute_phase_shares

__all__ = ["attribute_gaps", "build_accounts", "compute_phase_shares"]
