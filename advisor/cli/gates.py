"""Gates for ``--fail-on``: a gap against a share of the run or a time, ``L > 3 %`` or ``W >= 200 ms``."""

from __future__ import annotations

import argparse
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from advisor.errors import GateCrossed, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model import Advice, Gap

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

    def crossed_by(self, gap: Gap) -> bool:
        """Return whether the gap meets the condition."""
        return bool(_COMPARE[self.compare](gap.share if self.dimension == "share" else gap.seconds, self.threshold))


def parse(text: str) -> Gate:
    """Return the gate that ``text`` describes; the type of the argument ``--fail-on``."""
    from advisor import units
    from advisor.model import GAP_NAMES

    parts = _GATE.fullmatch(text)
    if parts is None:
        raise argparse.ArgumentTypeError(f"expected a condition such as 'L > 3 %' or 'W >= 200 ms', found {text!r}")
    gap, compare, quantity = parts.groups()
    unknown = [name for name in gap.split("+") if name not in GAP_NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no gap {unknown[0]!r}; the gaps are {', '.join(GAP_NAMES)}")
    dimension: Literal["share", "time"] = "share" if quantity[-1] in "%.0123456789" else "time"
    try:
        return Gate(text.strip(), gap, compare, units.parse(quantity, dimension), dimension)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def judge(gates: Sequence[Gate], advice: Advice) -> None:
    """Raise ``GateCrossed`` with every gate that the run crosses, ``UsageError`` where that can't be told."""
    crossed = [(gate, gap) for gate in gates if (gap := _crossing(gate, advice)) is not None]
    if crossed:
        raise GateCrossed("; ".join(_reason(gate, gap) for gate, gap in crossed))


def _crossing(gate: Gate, advice: Advice) -> Gap | None:
    """Return the gap that crosses the gate, if any; a merged gap tells no more than that its parts are not above it."""
    exact = next((gap for gap in advice.gaps if gap.name == gate.gap), None)
    if exact is not None:
        return exact if gate.crossed_by(exact) else None
    merged = next((gap for gap in advice.gaps if gate.gap in gap.members), None)
    if merged is None:
        raise UsageError(f"the gate {gate.text!r} can't be judged: this run does not show the gap {gate.gap}")
    upwards = gate.compare.startswith(">")
    if gate.crossed_by(merged) == upwards:
        reason = f" ({merged.reason})" if merged.reason else ""
        raise UsageError(
            f"the gate {gate.text!r} can't be judged: {gate.gap} can't be told apart from the others in "
            f"{merged.name}{reason}; a gate on {merged.name} can"
        )
    return None if upwards else merged


def _reason(gate: Gate, gap: Gap) -> str:
    from advisor.render import numbers

    return (
        f"{gap.name} is {numbers.seconds(gap.seconds)}, {numbers.share(gap.share)} of the run; the gate is {gate.text}"
    )
