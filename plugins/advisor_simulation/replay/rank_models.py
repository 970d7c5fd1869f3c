"""How what a program asks of the network grows with its ranks: the paper's model T(P, L, BW) over the history."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from advisor.analysis.network_demands import KIND, RUN
from advisor.model.errors import UsageError
from advisor.model.records import Advice, Finding, Profile
from advisor_simulation.replay import fitting
from advisor_simulation.replay.fitting import Coefficient, CoefficientLine, Plane

#: The subject of the finding, and from how many numbers of ranks on there is one.
RANKS: Final = "ranks"
FEWEST: Final = 3


def build_rank_finding(profile: Profile, found: Finding, history: Sequence[Advice]) -> tuple[Finding, ...]:
    """Return the model over ranks, fitted to the network demand ``found`` of this run and those of earlier ones.

    Those of other inputs and sizes, and on other networks, are left out; nothing below three numbers of ranks.
    """
    by_ranks = _select_network_demands(profile, found.measures, history)
    if len(by_ranks) < FEWEST:
        return ()
    try:
        factors = fitting.compute_locality({ranks: each["cpu_s"] for ranks, each in by_ranks.items()})
    except UsageError:
        return ()
    planes = {ranks: _make_plane(each, factors[ranks]) for ranks, each in by_ranks.items()}
    model = fitting.fit_model(planes, factors)
    lines = {"beta": model.beta, "gamma": model.gamma}
    most = max(by_ranks)
    text = (
        f"Over {', '.join(map(str, sorted(by_ranks)))} ranks the latencies that nothing hides are "
        f"{_describe_line(model.beta)}, the bytes {_describe_line(model.gamma)}; the locality factor is "
        f"{factors[most]:.3g} at {most} ranks"
    )
    measures = {"locality factor": factors[most], "ranks": float(most)}
    for name, line in lines.items():
        for part, coefficient in (("constant", line.constant), ("slope", line.slope)):
            if coefficient.is_significant:
                measures[f"{name} {part}"] = coefficient.value
    return (Finding("simulation", KIND, RANKS, text, measures),)


def _select_network_demands(
    profile: Profile, mine: Mapping[str, float], history: Sequence[Advice]
) -> dict[int, Mapping[str, float]]:
    """Return the newest network demand at each number of ranks of runs like this one."""
    found: dict[int, Mapping[str, float]] = {}
    stated = _stated_parameters(profile)
    for run in history:
        if run.profile.program != profile.program or _stated_parameters(run.profile) != stated:
            continue
        for one in run.findings:
            same = all(one.measures.get(name) == mine[name] for name in ("latency_s", "bandwidth_Bps"))
            if (one.kind, one.subject) == (KIND, RUN) and same:
                found[int(one.measures["ranks"])] = one.measures
    return {**found, int(mine["ranks"]): mine}


def _stated_parameters(profile: Profile) -> dict[str, str | float]:
    return {name: value for name, value in profile.parameters.items() if name != "target"}


def _make_plane(found: Mapping[str, float], factor: float) -> Plane:
    """Return T of one number of ranks, its computation divided by the locality factor (section 2.2)."""
    values = found["alpha_s"] / factor, found["beta"], found["gamma_B"]
    return Plane(*(Coefficient(value, math.nan, math.nan) for value in values))


def _describe_line(line: CoefficientLine) -> str:
    """Return a line over P in words, N.S. for what does not differ from 0."""
    constant = f"{line.constant.value:.4g}" if line.constant.is_significant else "N.S."
    slope = f"{line.slope.value:.4g} P" if line.slope.is_significant else "N.S. in P"
    return f"{constant} + {slope}" if line.slope.is_significant else f"{constant}, {slope}"
