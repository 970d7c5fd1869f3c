"""From the rules that apply to recommendations in their order."""

from advisor.advice.ranking.gains import ExpectedGain
from advisor.advice.ranking.order import Ranking, rank_matches
from advisor.advice.ranking.outlook import find_later_gaps

__all__ = ["ExpectedGain", "Ranking", "find_later_gaps", "rank_matches"]
