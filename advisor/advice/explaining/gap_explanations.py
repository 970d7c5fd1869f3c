"""Gaps, efficiencies and the grade explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.advice.explaining import expressions
from advisor.advice.explaining.expressions import ACTUAL, BoundExpressions, Expression
from advisor.advice.explaining.records import ExplainedNumber, NumberInput
from advisor.model.gap_parts import describe_cause
from advisor.model.records import ALL_LEVELS, Advice, Bound, Efficiency, Gap, Grade, Profile

if TYPE_CHECKING:
    from advisor.analysis.loads import ProfileLoads

_COSTS: Final = {level.gap: level.adds for level in ALL_LEVELS if level.gap}
_OF_EFFICIENCY: Final = {
    "load_balance": "mean / largest computation of a processor",
    "communication": "largest computation of a processor / elapsed time",
    "parallel": "mean computation of the processors / elapsed time",
    "serialization": "time of a replay without latency and of infinite bandwidth decides, by a plugin",
    "transfer": "time of a replay without latency and of infinite bandwidth / elapsed time, by a plugin",
}
_DIFFERENCE: Final[Expression] = ["-", ["input", 0], ["input", 1]]
#: Of the inputs: mean, largest, elapsed time.
_EFFICIENCIES: Final[dict[str, Expression]] = {
    "load_balance": ["/", ["input", 0], ["input", 1]],
    "communication": ["/", ["input", 1], ["input", 2]],
    "parallel": ["/", ["input", 0], ["input", 2]],
}
_POP: Final = "POP Centre of Excellence"


def explain_gap(found: Gap, advice: Advice, terms: BoundExpressions) -> ExplainedNumber:
    """Return how a gap came about, and the regions that its seconds come from."""
    known = {bound.name: bound for bound in advice.bounds}
    inputs = [_bound_input(known[found.upper], terms), _bound_input(known[found.lower], terms)]
    inputs.append(NumberInput("run", advice.profile.actual_s, "s", "actual_s; the share is seconds / run", ACTUAL))
    inputs.append(NumberInput("share", found.share, "share", "seconds / run", ["/", _DIFFERENCE, ["input", 2]]))
    inputs += [
        NumberInput(describe_cause(part), part.seconds, "s", f"explained of it, {part.basis}: {part.source}")
        for account in advice.accounts
        if account.gap == found.name
        for part in account.parts
    ]
    parts = tuple(
        NumberInput(
            share.name,
            share.seconds,
            "s",
            ", ".join(filter(None, (share.phase and f"phase {share.phase}", _format_place(share.file, share.line)))),
        )
        for share in found.regions
    )
    words = ", ".join(_COSTS.get(member, member) for member in found.members)
    return ExplainedNumber(
        "gap", found.name, words, found.seconds, "s", found.status, f"{found.upper} - {found.lower}", tuple(inputs),
        parts, notes=(found.reason,) if found.reason else (), expression=_DIFFERENCE,
    )  # fmt: skip


def _bound_input(bound: Bound, terms: BoundExpressions) -> NumberInput:
    return NumberInput(bound.name, bound.seconds, "s", f"bound, {bound.status}", terms.bound_expression(bound.name))


def _format_place(file: str | None, line: int | None) -> str:
    return "" if file is None else file if line is None else f"{file}:{line}"


def explain_efficiency(
    found: Efficiency, profile: Profile, loads: ProfileLoads, advice: Advice, terms: BoundExpressions
) -> ExplainedNumber:
    """Return how an efficiency came about."""
    inputs: tuple[NumberInput, ...] = ()
    formula: Expression | None = None
    if found.value is not None and found.status != "modelled":
        known = loads.quantities.computation.is_known
        each = loads.spreads["I"].processors * loads.processors if known else loads.parallel_work
        what = "computation" if known else "work in parallel phases"
        computing = expressions.sum_expression(loads.quantities.computation, own=True) if known else terms.work
        made = expressions.processor_seconds(computing, range(len(profile.phases)) if known else terms.parallel)
        inputs = (
            NumberInput(f"mean {what}", float(each.mean()), "s", "over the processors", ["mean", made]),
            NumberInput(
                f"largest {what}", float(each.max()), "s", profile.processors[int(each.argmax())].name, ["max", made]
            ),
        )
        if found.name != "load_balance":
            inputs += (_elapsed_input(advice, terms),)
        formula = _EFFICIENCIES.get(found.name)
    return ExplainedNumber(
        "efficiency", found.name, "a share that other tools speak of", found.value, "share", found.status,
        f"{_OF_EFFICIENCY.get(found.name, '')} ({_POP})", inputs, notes=(found.reason,) if found.reason else (),
        expression=formula,
    )  # fmt: skip


def _elapsed_input(advice: Advice, terms: BoundExpressions) -> NumberInput:
    phases = next((bound.seconds for bound in advice.bounds if bound.name == "IPCOLMDSW"), None)
    name, value = ("actual", advice.profile.actual_s) if phases is None else ("IPCOLMDSW", phases)
    return NumberInput("elapsed time", value, "s", "IPCOLMDSW where known, else the run", terms.bound_expression(name))


def explain_grade(found: Grade) -> ExplainedNumber:
    """Return how the grade came about."""
    inputs = tuple(NumberInput(note.name, note.penalty, "", note.text) for note in found.notes)
    return ExplainedNumber(
        "quality", "score", f"grade {found.letter}", found.score, "", "measured",
        "1 less all penalties, and never below 0 (docs/quality.md)", inputs,
        expression=["most", 0.0, ["-", 1.0, *(["input", at] for at in range(len(inputs)))]],
    )  # fmt: skip
