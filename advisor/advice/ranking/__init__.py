"""From the rules that apply to recommendations in their order."""

from advisor.advice.ranking.gains import ExpectedGain
from advisor.advice.ranking.order import Ranking, rank_matches
from advisor.advice.ranking.outlook import Outlook, find_outlook

__all__ = ["ExpectedGain", "Outlook", "Ranking", "find_outlook", "rank_matches"]
