"""Many runs in order: by program, each with the build before it, and what changed since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.advice.past import base_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.analysis.comparison import Comparison
    from advisor.model.records import Advice


@dataclass(frozen=True, slots=True)
class Seen:
    """One run, the ``file`` of its page, and what changed since the build before; None where there is none."""

    advice: Advice
    file: str
    change: Comparison | None


@dataclass(frozen=True, slots=True)
class Program:
    """The runs of one program, the oldest first."""

    name: str
    runs: tuple[Seen, ...]


def seen(advice: Advice, earlier: Sequence[Advice], file: str) -> Seen:
    """Return a run beside what is known of ``earlier`` ones, the oldest first."""
    base = base_of(advice, earlier)
    return Seen(advice, file, base.change if base else None)


def by_program(runs: Sequence[Seen]) -> tuple[Program, ...]:
    """Return the runs by program, in the order in which the programs first appear."""
    found: dict[str, list[Seen]] = {}
    for one in runs:
        found.setdefault(one.advice.profile.program, []).append(one)
    return tuple(Program(name, tuple(each)) for name, each in found.items())
