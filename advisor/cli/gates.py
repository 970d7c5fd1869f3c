"""Gates for ``--fail-on``: a gap against a share of the run or a time, ``L > 3 %``, or what a build made worse.

``new`` is crossed by advice that no run of the base build shows, ``regression`` by a gap that has grown since the base
build by more than repeated runs differ, ``network`` by more latencies, bytes or messages, which hardly vary from run to
run. A gate that cannot be judged is an error, also where no earlier build is known: a first build looks the same as a
lost cache or a mistyped directory.
"""

from __future__ import annotations

import argparse
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from advisor.cli import output
from advisor.model.errors import GateCrossed, UsageError

if TYPE_CHECKING:
    from advisor.advice.earlier_runs import ComparisonBase
    from advisor.model.records import Advice, Gap

#: Gates on what changed since the base build.
SINCE = ("new", "regression", "network")

_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_GATE = re.compile(r"\s*([^<>=\s]+)\s*(>=|<=|>|<)\s*(\S.*?)\s*")


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition on one gap (or on several that are merged) under which a run fails."""

    text: str
    gap: str
    compare: str
    threshold: float
    dimension: Literal["share", "time"]

    def is_crossed_by(self, gap: Gap) -> bool:
        """Return whether the gap meets the condition."""
        return bool(_COMPARE[self.compare](gap.share if self.dimension == "share" else gap.seconds, self.threshold))


@dataclass(frozen=True, slots=True)
class ChangeGate:
    """A condition on what changed since the base build: one of ``SINCE``."""

    text: str


def add_gate_argument(parser: argparse.ArgumentParser, words: str = "Exit with status 1 if GATE holds") -> None:
    """Give a command the option that names gates."""
    parser.add_argument(
        "--fail-on", metavar="GATE", type=parse_gate, action="append", default=[],
        help=f"{words}: 'L > 3 %%', 'W >= 2 s', new, regression or network (since the base build); repeatable",
    )  # fmt: skip


def parse_gate(text: str) -> Gate | ChangeGate:
    """Return the gate that ``text`` describes; the type of the argument ``--fail-on``."""
    from advisor.model import units
    from advisor.model.records import GAP_NAMES

    if text.strip() in SINCE:
        return ChangeGate(text.strip())
    parts = _GATE.fullmatch(text)
    if parts is None:
        raise argparse.ArgumentTypeError(
            f"expected a condition such as 'L > 3 %' or 'W >= 200 ms', new, regression or network, found {text!r}"
        )
    gap, compare, quantity = parts.groups()
    unknown = [name for name in gap.split("+") if name not in GAP_NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no gap {unknown[0]!r}; the gaps are {', '.join(GAP_NAMES)}")
    dimension: Literal["share", "time"] = "share" if quantity[-1] in "%.0123456789" else "time"
    try:
        return Gate(text.strip(), gap, compare, units.parse_quantity(quantity, dimension), dimension)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def check_gates(gates: Sequence[Gate | ChangeGate], advice: Advice, base: Callable[[], ComparisonBase | None]) -> None:
    """Raise ``GateCrossed`` with every gate that the run crosses, else ``UsageError`` where one can't be judged.

    ``base`` finds what the run is compared with; it is asked only for gates on what changed.
    """
    if gates and advice.grade.letter == "F":
        worst = max(advice.grade.notes, key=lambda note: note.penalty, default=None)
        why = f": {worst.text}" if worst is not None else ""
        raise UsageError(f"the gate {gates[0].text!r} can't be judged: the grade of this run is F{why}")
    reasons: list[str] = []
    unjudged: list[str] = []
    for gate in gates:
        try:
            if isinstance(gate, ChangeGate):
                reasons += _find_changes(gate, advice, base())
            elif (gap := _find_crossing_gap(gate, advice)) is not None:
                reasons.append(_explain_crossing(gate, gap))
        except UsageError as error:
            unjudged.append(str(error))
    if reasons:
        output.write_messages(*unjudged)
        raise GateCrossed("; ".join(dict.fromkeys(reasons)))
    if unjudged:
        raise UsageError("; ".join(dict.fromkeys(unjudged)))


def _find_changes(gate: ChangeGate, advice: Advice, base: ComparisonBase | None) -> Iterator[str]:
    """Yield how the run crosses a gate on what changed; raises ``UsageError`` where that can't be told."""
    if base is None:
        unnamed = "" if advice.profile.build else "; name the builds: gapwatch stamp DIR --build NAME"
        raise UsageError(f"gate {gate.text!r} cannot be judged: no earlier run of another build is known{unnamed}")
    if gate.text == "new":
        yield from _find_new_items(advice, base)
    elif gate.text == "network":
        yield from _find_added_traffic(base)
    else:
        yield from _find_regressions(base)


def _find_new_items(advice: Advice, base: ComparisonBase) -> Iterator[str]:
    from advisor.advice.earlier_runs import find_new_recommendations
    from advisor.output import numbers

    sound = [one for one in base.runs if one.verdict != "insufficient evidence"]
    if not sound:
        raise UsageError(f"gate 'new' cannot be judged: there is no advice on build {base.change.before}")
    for item in find_new_recommendations(advice, sound):
        where = f" at {item.region or item.phase}" if item.region or item.phase else ""
        wins = numbers.format_duration(item.ceiling_s)
        yield f"{item.title} [{item.action}]{where}, at most {wins}, is new since build {base.change.before}"


def _find_regressions(base: ComparisonBase) -> Iterator[str]:
    from advisor.output import numbers

    change = base.change
    if change.actual.noise_s is None:
        raise UsageError(
            f"gate 'regression' cannot be judged: neither {change.after} nor another build was run twice, so the "
            "noise is unknown"
        )
    for grown in change.significant_increases:
        name = "the run time" if grown.name == "actual" else grown.name
        yield (
            f"{name} grew by {numbers.format_duration(grown.delta_s)} since build {change.before}; "
            f"the noise of that is "
            f"{numbers.format_duration(grown.noise_s)}"
        )


def _find_added_traffic(base: ComparisonBase) -> Iterator[str]:
    from advisor.output.wording import describe_added_traffic

    change = base.change
    if not change.network:
        raise UsageError("gate 'network' cannot be judged: not all runs of the two builds were traced on as many ranks")
    if change.network[0].noise is None:
        raise UsageError(
            f"gate 'network' cannot be judged: neither {change.after} nor another build was run twice, so it is "
            "unknown whether its messages vary"
        )
    for grown in change.added_traffic:
        yield f"{change.after} adds {describe_added_traffic(grown)} since build {change.before}"


def _find_crossing_gap(gate: Gate, advice: Advice) -> Gap | None:
    """Return the gap that crosses the gate, if any; a merged gap tells no more than that its parts are not above it."""
    exact = next((gap for gap in advice.gaps if gap.name == gate.gap), None)
    if exact is not None:
        return exact if gate.is_crossed_by(exact) else None
    merged = next((gap for gap in advice.gaps if gate.gap in gap.members), None)
    if merged is None:
        raise UsageError(f"gate {gate.text!r} cannot be evaluated: this run does not show the gap {gate.gap}")
    upwards = gate.compare.startswith(">")
    if gate.is_crossed_by(merged) == upwards:
        reason = f" ({merged.reason})" if merged.reason else ""
        raise UsageError(
            f"gate {gate.text!r} cannot be evaluated: {gate.gap} cannot be separated from the others in "
            f"{merged.name}{reason}; a gate on {merged.name} can"
        )
    return None if upwards else merged


def _explain_crossing(gate: Gate, gap: Gap) -> str:
    from advisor.output import numbers

    share = numbers.format_percentage(gap.share)
    return f"{gap.name} is {numbers.format_duration(gap.seconds)}, {share} of the run; the gate is {gate.text}"
