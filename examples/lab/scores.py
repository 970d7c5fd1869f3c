"""What the judgements of many programs say together: shares, errors, tables."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lab.loads import Floats
    from lab.truth import Gain

#: An item that wins less than this share of the run is of no use; a run whose best remedy does is clean.
USEFUL: Final = 0.01
#: Up to this share of the run, silence is as right as the best item.
BORDER: Final = 0.02
#: An item is right if it wins this share of what the best remedy wins.
NEAR: Final = 0.9
#: By how much an interval may miss a gain.
SLACK_S: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Item:
    """An item of advice: what it said, and ``gain_s``, what it wins in truth.

    ``parts`` items of the advice meant the same change in the same phases: what they said is added up.
    """

    action: str
    place: str
    gain_s: float
    expected_s: float | None
    interval_s: tuple[float, float] | None
    ceiling_s: float
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Case:
    """The advice on one program beside the truth: its remedies that win most, and its items."""

    seed: int
    shape: str
    ranks: int
    threads: int
    faults: tuple[str, ...]
    wall_s: float = 0.0
    best: list[Gain] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    grade: str = ""
    spent_s: float = 0.0
    error: str = ""

    @property
    def best_s(self) -> float:
        """What the best remedy wins."""
        return max([0.0, *(gain.seconds for gain in self.best)])

    @property
    def clean(self) -> bool:
        """Whether no remedy is worth its effort, nor what an item means: the same change in several phases."""
        return max([self.best_s, *(item.gain_s for item in self.items)]) < USEFUL * self.wall_s

    def right(self, first: int = 1) -> bool:
        """Return whether one of the first items wins as much as the best remedy, or there is rightly none."""
        if self.clean:
            return not self.items
        if not self.items:
            return self.best_s < BORDER * self.wall_s
        return any(item.gain_s >= NEAR * self.best_s for item in self.items[:first])

    @property
    def missed_s(self) -> float:
        """What the best remedy wins more than the first item."""
        return self.best_s - max(self.items[0].gain_s if self.items else 0.0, 0.0)


def report(cases: Sequence[Case]) -> str:
    """Return the summary and, where the advice was wrong anywhere, the tables as Markdown."""
    judged = [case for case in cases if not case.error]
    parts = [_summary(judged, len(cases) - len(judged))]
    if not all(case.right() for case in judged):
        parts += [_by("shape", judged), _by("fault", judged), _worst(judged)]
    return "\n\n".join(parts)


def _share(values: Iterable[bool]) -> str:
    known = list(values)
    return f"{sum(known)} of {len(known)} ({100 * sum(known) / len(known):.0f} %)" if known else "none"


def _summary(cases: Sequence[Case], failed: int) -> str:
    faulty, clean = [c for c in cases if not c.clean], [c for c in cases if c.clean]
    items = [(case, item) for case in cases for item in case.items]
    useful = [(case, item) for case, item in items if item.gain_s >= USEFUL * case.wall_s]
    simulated = [(case, item) for case, item in items if item.expected_s is not None]
    errors = [abs(item.expected_s - item.gain_s) / item.gain_s for _, item in useful if item.expected_s is not None]
    inside = [_holds(item) for _, item in simulated if item.interval_s]
    count = f"{len(cases)}, of them {len(clean)} that no remedy makes 1 % faster"
    rows = [
        ("programs", count + (f"; {failed} failed" if failed else "")),
        ("first item right", _share(case.right() for case in faulty)),
        ("right item among the first three", _share(case.right(3) for case in faulty)),
        ("advice on clean runs", _share(bool(case.items) for case in clean)),
        ("items that win less than 1 %", _share(item.gain_s < USEFUL * case.wall_s for case, item in items)),
        ("items that repeat the change of another", str(sum(item.parts - 1 for _, item in items))),
        ("items without an expected gain", _share(item.expected_s is None for _, item in items)),
        ("error of the expected gain, median", f"{100 * float(np.median(errors)):.0f} %" if errors else "none"),
        ("80 % intervals that hold", _share(inside)),
        ("gain above the ceiling", _share(item.gain_s > 1.01 * item.ceiling_s for _, item in useful)),
        ("rank correlation of expected and true gains", f"{_correlation(simulated):.2f}"),
        ("share of the possible gain that first items win", _won(faulty)),
    ]  # fmt: skip
    return "\n".join(["| measure | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _holds(item: Item) -> bool:
    """Return whether the gain lies in the interval, to 0.1 ms."""
    low, high = item.interval_s or (0.0, 0.0)
    return low - SLACK_S <= item.gain_s <= high + SLACK_S


def _won(cases: Sequence[Case]) -> str:
    possible = sum(case.best_s for case in cases)
    return f"{100 * (1 - sum(case.missed_s for case in cases) / possible):.0f} %" if possible else "none"


def _correlation(items: Sequence[tuple[Case, Item]]) -> float:
    """Return Spearman's coefficient of expected and true gains, in shares of the runs."""
    if len(items) < 3:
        return float("nan")
    pairs = np.array([[(item.expected_s or 0.0) / case.wall_s, item.gain_s / case.wall_s] for case, item in items])
    return float(np.corrcoef(_ranked(pairs[:, 0]), _ranked(pairs[:, 1]))[0, 1])


def _ranked(values: Floats) -> Floats:
    """Return the ranks of values, the mean rank for equal ones."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def _by(what: str, cases: Sequence[Case]) -> str:
    """Return a table by shape or by fault; a program with several faults counts for each of them."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        for name in (case.shape,) if what == "shape" else case.faults or ("none",):
            groups[name].append(case)
    lines = [
        f"| {what} | programs | first right | in the first three | useless items | first item where it is wrong |",
        "|---|---|---|---|---|---|",
    ]
    for name, members in sorted(groups.items()):
        wrong: dict[str, int] = defaultdict(int)
        for case in members:
            if not case.right():
                wrong[case.items[0].action if case.items else "none"] += 1
        most = sorted(wrong.items(), key=lambda each: -each[1])[:5]
        listed = ", ".join(f"{action} {count}" for action, count in most)
        useless = sum(item.gain_s < USEFUL * case.wall_s for case in members for item in case.items)
        first, three = sum(case.right() for case in members), sum(case.right(3) for case in members)
        lines.append(f"| {name} | {len(members)} | {first} | {three} | {useless} | {listed} |")
    return "\n".join(lines)


def _worst(cases: Sequence[Case], count: int = 10) -> str:
    """Return the programs on which the advice loses the largest share of the run."""
    chosen = sorted((case for case in cases if not case.right()), key=lambda case: -case.missed_s / case.wall_s)[:count]
    lines = [
        "| seed | shape | ranks | faults | best remedy | it wins | first item | it wins |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in chosen:
        best = max(case.best, key=lambda gain: gain.seconds)
        first = case.items[0] if case.items else None
        said = f"{first.action} at {first.place}" if first else "none"
        won = f"{100 * first.gain_s / case.wall_s:.1f} %" if first else ""
        lines.append(
            f"| {case.seed} | {case.shape} | {case.ranks} | {', '.join(case.faults) or 'none'} | {best.remedy} at "
            f"{best.phase or 'the run'} | {100 * best.seconds / case.wall_s:.1f} % | {said} | {won} |"
        )
    return "\n".join(lines)
