"""What is true of a program: the gain of each remedy, by running the changed program; and what an item would win."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from lab.remedies import REMEDIES, RUN_REMEDIES, apply
from lab.world import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.world import Code

HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Gain:
    """Seconds that a remedy wins in a phase (None: in the whole run)."""

    remedy: str
    phase: str | None
    seconds: float


@cache
def meanings() -> dict[str, list[str]]:
    """Return the remedies that each action of the rules means."""
    known: dict[str, list[str]] = yaml.safe_load((HERE / "actions.yaml").read_text())
    return known


def gains(code: Code, wall_s: float) -> list[Gain]:
    """Return the gain of each remedy in each phase that an action means, the largest first."""
    meant = {remedy for remedies in meanings().values() for remedy in remedies}
    found = []
    for remedy in REMEDIES:
        for phase in code.phases if remedy in meant else ():
            changed = apply(code, remedy, (phase.name,))
            if changed is not None:
                found.append(Gain(remedy, phase.name, wall_s - run(changed).wall_s))
    for remedy in RUN_REMEDIES:
        changed = apply(code, remedy)
        if changed is not None:
            found.append(Gain(remedy, None, wall_s - run(changed).wall_s))
    return sorted(found, key=lambda gain: -gain.seconds)


def places(code: Code, region: str | None, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the phases that the regions of an item of advice belong to; none is all of them."""
    regions = [name for name in (region, *more) if name]
    return tuple(
        phase.name
        for number, phase in enumerate(code.phases)
        if any(name in phase.regions() or f"@{code.shape}.c:{4 + number}" in name for name in regions)
    )


def gain_of(code: Code, wall_s: float, action: str, region: str | None, more: Sequence[str] = ()) -> float:
    """Return the seconds that an action wins at its regions: what the changed program needs less."""
    changed: Code | None = code
    scope = places(code, region, more)
    for remedy in meanings().get(action, []):
        changed = apply(changed or code, remedy, scope) or changed
    return 0.0 if changed is code or changed is None else wall_s - run(changed).wall_s
