"""How every number of the advice on a run came about."""

from advisor.advice.explaining.numbers import explain
from advisor.advice.explaining.records import Explanation, Input, Number

__all__ = ["Explanation", "Input", "Number", "explain"]
