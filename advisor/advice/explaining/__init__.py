"""The derivation of every number of the advice."""

from advisor.advice.explaining.numbers import explain_study
from advisor.advice.explaining.records import ExplainedNumber, Explanation, NumberInput

__all__ = ["ExplainedNumber", "Explanation", "NumberInput", "explain_study"]
