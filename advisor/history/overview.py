"""Many runs in order: by program, each with the build before it, and what changed since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.advice.earlier_runs import find_base

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.analysis.comparison import Comparison
    from advisor.model.records import Advice


@dataclass(frozen=True, slots=True)
class RunOverview:
    """One run, the ``file`` of its page, and what changed since the build before; None where there is none."""

    advice: Advice
    file: str
    change: Comparison | None


@dataclass(frozen=True, slots=True)
class ProgramRuns:
    """The runs of one program, the oldest first."""

    name: str
    runs: tuple[RunOverview, ...]


def build_run_overview(advice: Advice, earlier: Sequence[Advice], file: str) -> RunOverview:
    """Return a run beside what is known of ``earlier`` ones, the oldest first."""
    base = find_base(advice, earlier)
    return RunOverview(advice, file, base.change if base else None)


def group_by_program(runs: Sequence[RunOverview]) -> tuple[ProgramRuns, ...]:
    """Return the runs by program, in the order in which the programs first appear."""
    found: dict[str, list[RunOverview]] = {}
    for one in runs:
        found.setdefault(one.advice.profile.program, []).append(one)
    return tuple(ProgramRuns(name, tuple(each)) for name, each in found.items())
