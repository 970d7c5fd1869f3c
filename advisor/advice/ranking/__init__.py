"""From the rules that apply to recommendations in their order."""

from advisor.advice.ranking.gains import Gain
from advisor.advice.ranking.order import Ranking, rank
from advisor.advice.ranking.outlook import later

__all__ = ["Gain", "Ranking", "later", "rank"]
