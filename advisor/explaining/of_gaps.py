"""Gaps, efficiencies and the grade explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.explaining.records import Input, Number
from advisor.model import LEVELS

if TYPE_CHECKING:
    from advisor.loads import Loads
    from advisor.model import Advice, Bound, Efficiency, Gap, Grade, Profile

_COSTS: Final = {level.gap: level.adds for level in LEVELS if level.gap}
_OF_EFFICIENCY: Final = {
    "load_balance": "mean / largest computation of a processor",
    "communication": "largest computation of a processor / elapsed time",
    "parallel": "mean computation of the processors / elapsed time",
    "serialization": "time of a replay without latency and of infinite bandwidth decides, by a plugin",
    "transfer": "time of a replay without latency and of infinite bandwidth / elapsed time, by a plugin",
}
_POP: Final = "POP Centre of Excellence"


def gap(found: Gap, advice: Advice) -> Number:
    """Return how a gap came about, and the regions that its seconds come from."""
    known = {bound.name: bound for bound in advice.bounds}
    inputs = [_bound(known[found.upper]), _bound(known[found.lower])]
    inputs.append(Input("run", advice.profile.actual_s, "s", "actual_s; the share is seconds / run"))
    inputs.append(Input("share", found.share, "share", "seconds / run"))
    parts = tuple(
        Input(
            share.name,
            share.seconds,
            "s",
            ", ".join(filter(None, (share.phase and f"phase {share.phase}", _line(share.file, share.line)))),
        )
        for share in found.regions
    )
    words = ", ".join(_COSTS.get(member, member) for member in found.members)
    return Number(
        "gap", found.name, words, found.seconds, "s", found.status, f"{found.upper} - {found.lower}", tuple(inputs),
        parts, notes=(found.reason,) if found.reason else (),
    )  # fmt: skip


def _bound(bound: Bound) -> Input:
    return Input(bound.name, bound.seconds, "s", f"bound, {bound.status}")


def _line(file: str | None, line: int | None) -> str:
    return "" if file is None else file if line is None else f"{file}:{line}"


def efficiency(found: Efficiency, profile: Profile, loads: Loads, advice: Advice) -> Number:
    """Return how an efficiency came about."""
    inputs: tuple[Input, ...] = ()
    if found.value is not None and found.status != "modelled":
        known = loads.quantities.computation.known
        each = loads.spreads["I"].processors * loads.processors if known else loads.parallel_work
        what = "computation" if known else "work in parallel phases"
        inputs = (
            Input(f"mean {what}", float(each.mean()), "s", "over the processors"),
            Input(f"largest {what}", float(each.max()), "s", profile.processors[int(each.argmax())].name),
        )
        if found.name != "load_balance":
            inputs += (Input("elapsed time", _elapsed(advice), "s", "IPCOLMDSW where known, else the run"),)
    return Number(
        "efficiency", found.name, "a share that other tools speak of", found.value, "share", found.status,
        f"{_OF_EFFICIENCY.get(found.name, '')} ({_POP})", inputs, notes=(found.reason,) if found.reason else (),
    )  # fmt: skip


def _elapsed(advice: Advice) -> float:
    phases = next((bound.seconds for bound in advice.bounds if bound.name == "IPCOLMDSW"), None)
    return advice.profile.actual_s if phases is None else phases


def grade(found: Grade) -> Number:
    """Return how the grade came about."""
    inputs = tuple(Input(note.name, note.penalty, "", note.text) for note in found.notes)
    return Number(
        "quality", "score", f"grade {found.letter}", found.score, "", "measured",
        "1 less all penalties, and never below 0 (docs/quality.md)", inputs,
    )  # fmt: skip
