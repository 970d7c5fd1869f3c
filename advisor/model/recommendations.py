"""The records of advice on one place: an action, what it can win, and what speaks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Evidence:
    """One condition that was met: the fact, its value, the threshold, and how the fact is computed.

    Of a gap of which only limits are known ``value`` is the one that the condition was met with: ``relation`` says how
    the gap stands to it.
    """

    fact: str
    value: float | str | bool
    unit: str
    condition: str
    formula: str
    relation: Literal["=", ">=", "<="] = "="


@dataclass(frozen=True, slots=True)
class Need:
    """A fact that a rule asked for and the profile lacks, and the command that would provide it."""

    fact: str
    command: str


@dataclass(frozen=True, slots=True)
class Effect:
    """A gap that an action may reduce or increase, with its present seconds."""

    gap: str
    seconds: float


@dataclass(frozen=True, slots=True)
class HowTo:
    """How to carry out an action in one programming model and language."""

    model: str
    text: str
    language: str | None = None
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class TargetSeconds:
    """What an action can win at most, predicted for the ``point`` that the program is meant for (``P=1024 N=8192``)."""

    point: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One action at one place, with what it can win at most and what speaks for it.

    ``more_phases`` are those in which it wins something as well, besides ``phase`` that is shown; ``more_regions`` have
    to be changed as well as ``region`` for what it is expected to win. ``target`` is what it can win at most in the run
    that the program is meant for, where that is predicted.
    """

    rank: int
    action: str
    title: str
    step: int
    issue: str
    gaps: tuple[str, ...]
    phase: str | None
    region: str | None
    file: str | None
    line: int | None
    processors: tuple[str, ...]
    ceiling_s: float
    expected_s: float | None
    interval_s: tuple[float, float] | None
    basis: Literal["simulation", "history", "similar", "calibration", "experiment"] | None
    confidence: float
    effort: int
    may_help: tuple[Effect, ...]
    may_hurt: tuple[Effect, ...]
    conflicts: tuple[str, ...]
    alternatives: tuple[str, ...]
    how: tuple[HowTo, ...]
    why: str
    evidence: tuple[Evidence, ...]
    fingerprint: str
    rule_place: str
    state: str = "new"
    more_phases: tuple[str, ...] = ()
    target: TargetSeconds | None = None
    more_regions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dismissed:
    """A change that could be made and would not help, or not for certain: what it would have won at one place, seconds.

    ``gain_s`` is None for one that was not simulated, since the others took all the work that a run may cost;
    ``interval_s`` is what it may be, where it would be worth the change and the run does not prove it.
    """

    action: str
    title: str
    phase: str | None
    gain_s: float | None
    interval_s: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """What all recommendations together can win; overlapping gains are counted once."""

    ceiling_s: float
    expected_s: float | None = None
    interval_s: tuple[float, float] | None = None
