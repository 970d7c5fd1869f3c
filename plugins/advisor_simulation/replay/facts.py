"""Facts for the rules' conditions that need a replay of the recorded run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from advisor.advice.facts import Fact

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import TraceCompute, Unit
    from advisor.model.records import Profile
    from advisor.trace.events import Trace
    from advisor_simulation.replay.costs import PathShare
    from advisor_simulation.replay.diagnosis import ReplayDiagnosis

_COMMAND: Final = "gapwatch run -- {launch}./PROGRAM"
_NEEDS: Final = ("wait_s", "causes")


def build_facts() -> tuple[Fact, ...]:
    """Return the facts that the replay adds to the vocabulary."""
    return (
        _make_run_fact(
            "network.transfer_efficiency", "run time replayed on an ideal network / recorded run time",
            lambda told: told.costs.transfer_efficiency,
        ),
        _make_run_fact(
            "network.serialization_efficiency", "longest computation / run time replayed on an ideal network",
            lambda told: told.costs.serialization_efficiency,
        ),
        _make_run_fact(
            "network.eager_share", "what the replayed run is shorter if all messages are sent at once / run time",
            lambda told: None if told.network is None else told.network.eager_s / told.costs.recorded_s,
        ),
        _make_phase_fact(
            "network.latency_share", "latencies on the replayed critical path / run time",
            lambda share: share.latency_s,
        ),
        _make_phase_fact(
            "network.bandwidth_share", "bytes / bandwidth on the replayed critical path / run time",
            lambda share: share.transfer_s,
        ),
        Fact(
            "network.message_B", "B", "phase", _NEEDS, _COMMAND,
            "size of the messages that take most of the replayed critical path, to a power of two",
            of_trace=_dominant_size,
        ),
    )  # fmt: skip


def _make_run_fact(name: str, formula: str, value: Callable[[ReplayDiagnosis], float | None]) -> Fact:
    def compute_value(profile: Profile, trace: Trace, phase: int | None) -> float | None:
        found = _find_diagnosis(trace)
        return None if found is None else value(found)

    return _make_fact(name, "share", "run", formula, compute_value)


def _make_phase_fact(name: str, formula: str, seconds: Callable[[PathShare], float]) -> Fact:
    def compute_share(profile: Profile, trace: Trace, phase: int | None) -> float | None:
        found = _find_diagnosis(trace)
        if found is None or found.network is None or phase is None:
            return None
        here = _phase_weights(profile, phase, found.network.shares)
        total = sum(weight * seconds(share) for weight, share in zip(here, found.network.shares, strict=True))
        return float(total) / found.costs.recorded_s

    return _make_fact(name, "share", "phase", formula, compute_share)


def _make_fact(name: str, unit: Unit, scope: str, formula: str, compute: TraceCompute) -> Fact:
    return Fact(name, unit, "run" if scope == "run" else "phase", _NEEDS, _COMMAND, formula, of_trace=compute)


def _dominant_size(profile: Profile, trace: Trace, phase: int | None) -> float | None:
    """Return the size of the messages that take most of the critical path in a phase; None without any."""
    found = _find_diagnosis(trace)
    if found is None or found.network is None or phase is None:
        return None
    by_size: dict[int, float] = {}
    shares = found.network.shares
    for weight, share in zip(_phase_weights(profile, phase, shares), shares, strict=True):
        if share.size:
            by_size[share.size] = by_size.get(share.size, 0.0) + weight * (share.latency_s + share.transfer_s)
    known = {size: seconds for size, seconds in by_size.items() if seconds > 0}
    return float(max(known, key=known.__getitem__)) if known else None


def _find_diagnosis(trace: Trace) -> ReplayDiagnosis | None:
    from advisor_simulation.replay import diagnosis

    return diagnosis.diagnose_replay(trace)


def _phase_weights(profile: Profile, phase: int, shares: tuple[PathShare, ...]) -> list[float]:
    """Return of each share which part of it belongs to a phase: by the seconds of its call in the phases.

    Where phases hold the region as well, only those count.
    """
    names = [{profile.regions[region].name for region in each.regions.tolist()} for each in profile.phases]
    seconds: dict[str, list[float]] = {share.call: _call_seconds(profile, share.call) for share in shares}
    result = []
    for share in shares:
        among = [{share.call, share.region} <= held for held in names]
        if not any(among):
            among = [share.call in held for held in names]
        parts = [part if counts else 0.0 for part, counts in zip(seconds[share.call], among, strict=True)]
        result.append(parts[phase] / sum(parts) if sum(parts) > 0 else 0.0)
    return result


def _call_seconds(profile: Profile, call: str) -> list[float]:
    """Return the wall time of a call in each phase."""
    found = []
    for phase in profile.phases:
        wall = phase.arrays.get("wall_s")
        rows = [at for at, region in enumerate(phase.regions.tolist()) if profile.regions[region].name == call]
        found.append(0.0 if wall is None else float(wall[rows].sum()))
    return found
