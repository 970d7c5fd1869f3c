"""The expected gain of an action from its realised gains in similar programs, from findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from advisor.advice.ranking.gains import ExpectedGain

if TYPE_CHECKING:
    from advisor.model.records import Finding

#: A finding of this kind, whose subject is an action, tells the share of its ceiling that the action may win.
KIND: Final = "expectation"
#: Its measures: the share that is expected, the lowest and the highest one.
MEASURES: Final = ("share", "share_low", "share_high")
Shares = tuple[float, float, float]


def collect_won_shares(findings: Sequence[Finding]) -> Mapping[str, Shares]:
    """Return expected, lowest and highest share of the ceiling by action, from the first finding on each.

    Findings without these numbers, in this order and at most 1, are passed over.
    """
    found: dict[str, Shares] = {}
    for finding in findings:
        if finding.kind != KIND or not all(name in finding.measures for name in MEASURES):
            continue
        expected, low, high = (finding.measures[name] for name in MEASURES)
        if low <= expected <= high <= 1.0:
            found.setdefault(finding.subject, (expected, low, high))
    return found


def compute_gain(shares: Shares, ceiling_s: float) -> ExpectedGain:
    """Return the gain in seconds of an action that may win these ``shares`` of its ceiling."""
    expected, low, high = shares
    return ExpectedGain(expected * ceiling_s, low * ceiling_s, high * ceiling_s, "similar")
