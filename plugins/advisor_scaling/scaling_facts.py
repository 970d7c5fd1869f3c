"""Facts on growth for the rules, from the findings on the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.advice.facts import Fact
from advisor_scaling.targets import KIND, MACHINE_GAPS, TARGET

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Compute, Unit
    from advisor.model.records import Profile

_STATE: Final = "gapwatch stamp DIR --parameter 'target=P=1024'"
_ADVISE: Final = "gapwatch advise --target 'P=1024' RUN-1 RUN-2 RUN-3, of one program at three numbers of ranks or more"
_COUNT: Final = "gapwatch run --deep -- {launch}./PROGRAM, at three numbers of ranks or more, with a machine model"
#: Gaps of which rules ask, by the word for what costs there.
GAPS: Final = {
    "communication": "C'", "imbalance": "L", "serial": "P", "synchronization": "S'", "waiting": "W", "io": "O",
    "multiphase": "M'", "dynamic": "D", "startup": "X", "mix": "A", "compiler": "C", "schedule": "S", "cache": "$",
}  # fmt: skip


def build_facts() -> tuple[Fact, ...]:
    """Return all facts: how far the target is, how the run grows there, and of some gaps share and growth."""
    return (
        _make_fact("run.target_processors_factor", "ratio",
        "processors of the parameter target / processors of the run",
              command=_STATE, compute=_compute_target_factor),
        _make_fact("run.scaling_points", "count",
        "points of N, P … at which this program ran; 0 where they give no model",
              ("run", "points"), compute=_count_no_points),
        _make_fact("run.speedup_exponent", "ratio",
              "-d log T / d log P at the target (else eight times the ranks)",
              ("run", "speedup exponent")),
        _make_fact("run.target_startup_s", "s", "gap X predicted at the target", ("gaps", "seconds of X")),
        *(_make_fact(f"run.target_{word}_share", "share", f"gap {gap} / run time, both predicted at the target",
                ("gaps", f"share of {gap}"), _find_command(gap)) for word, gap in GAPS.items()),
        *(_make_fact(f"run.target_{word}_growth", "ratio", f"share of gap {gap} at the target / its share in this run",
                ("gaps", f"growth of {gap}"), _find_command(gap)) for word, gap in GAPS.items()),
    )  # fmt: skip


def _find_command(gap: str) -> str:
    """Return what makes a gap known at the sizes that a model needs."""
    return _COUNT if gap in MACHINE_GAPS else _ADVISE


def _make_fact(
    name: str, unit: Unit, formula: str, told: tuple[str, str] | None = None, command: str = _ADVISE,
    compute: Compute | None = None,
) -> Fact:  # fmt: skip
    finding = (KIND, *told) if told else None
    return Fact(name, unit, "run", ("processors",), command, formula, compute, finding=finding)


def _count_no_points(profile: Profile, phase: int | None) -> float:
    return 0.0


def _compute_target_factor(profile: Profile, phase: int | None) -> float | None:
    """Return the factor to the target number of processors (parameter ``target``); None if not stated."""
    stated = profile.parameters.get(TARGET)
    if not isinstance(stated, str):
        return None  # and nothing that models growth is loaded
    from advisor_scaling import target_findings

    return target_findings.processors_factor(profile, stated)
