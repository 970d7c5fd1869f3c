"""What the events of a run show of the machine: disturbances, ranks that share cores, a slow core.

And of how much of a long run that, and simulated gains, are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.places import is_significant
from advisor.model import units
from advisor.model.records import Finding, FloatArray, Profile
from advisor_simulation.whatif.trial import Trial, find_trial

if TYPE_CHECKING:
    from advisor.trace.events import Trace
    from advisor_simulation.whatif.excerpt import Excerpt
    from advisor_simulation.whatif.traced.operations import TracedOperations

_PLUGIN: Final = "simulation"
#: A rank that takes so many times as long as the others, in all regions, sits on a slow core.
SLOW: Final = 1.05
#: How alike that is in all regions, and how much of the computation they have to be.
ALIKE: Final = 0.02
COVERED_SHARE: Final = 0.8


def build_findings(profile: Profile, trace: Trace) -> tuple[Finding, ...]:
    """Return the disturbances of a run in seconds; nothing if its operations can't be replayed."""
    trial = find_trial(profile, trace)
    if trial is None or trial.traced is None:
        return ()
    told = () if trial.excerpt is None else (_describe_excerpt(trial.excerpt, trace),)
    if trial.traced.shared_cores:
        return (*told, _shared_cores(trial.traced))
    return (*told, *_report_disturbance(trial, trial.traced, profile), *_slow_core(trial.traced, profile))


def _describe_excerpt(excerpt: Excerpt, trace: Trace) -> Finding:
    events, all_events = len(excerpt.trace.kind), len(trace.kind)
    share = float(excerpt.seconds[1].sum() / excerpt.seconds[0].sum())
    text = (
        f"gains are simulated on an excerpt: {events:,} of {all_events:,} events, {units.format_share(share)} of the "
        "time of the phases that come often, spread over the run"
    )
    return Finding(_PLUGIN, "excerpt", "run", text, {"events": events, "share": share})


def _shared_cores(traced: TracedOperations) -> Finding:
    turns = traced.turns
    if turns is not None:
        length = f" of {units.format_seconds(turns.slice_s)}" if np.isfinite(turns.slice_s) else ""
        text = (
            f"computations of the {turns.ranks} ranks of a host end as they do where ranks take turns{length} on "
            f"{turns.cores} cores: how long they compute does not tell how much they do"
        )
        return Finding(_PLUGIN, "shared cores", "ranks", text, {"cores": turns.cores, "ranks": turns.ranks})
    limit = traced.limit
    if limit is not None:
        text = (
            f"never more than {limit.cores} of the {limit.ranks} ranks of a host make progress at a time: the more of "
            "them compute, the longer equal computations take, as on too few cores (or with a memory that so many "
            "fill); how long they compute does not tell how much they do"
        )
        return Finding(_PLUGIN, "shared cores", "ranks", text, {"cores": limit.cores, "ranks": limit.ranks})
    text = (
        "equal computations last one turn longer, or two, now on this rank and now on that: ranks take turns on too "
        "few cores, so that how long they compute does not tell how much they do; --cores says how many there were"
    )
    return Finding(_PLUGIN, "shared cores", "ranks", text)


def _report_disturbance(trial: Trial, traced: TracedOperations, profile: Profile) -> tuple[Finding, ...]:
    times, about = trial.scale_gain(set()), "" if trial.excerpt is None else "about "
    seconds = times * traced.disturbed_seconds()
    if not is_significant(seconds, profile.actual_s, simulated=profile.is_simulated):
        return ()
    hits = round(times * sum(int((unit.disturbed > 0).sum()) for unit in traced.find_units()))
    share = seconds / profile.actual_s
    text = (
        f"the run is {about}{units.format_seconds(seconds)} ({units.format_share(share)}) longer for disturbances: "
        f"{about}{hits} computation{'s' * (hits != 1)} took far longer than all others of the kind, which no change of "
        "the program removes"
    )
    return (Finding(_PLUGIN, "disturbance", "computation", text, {"seconds": seconds, "share": share, "hits": hits}),)


def _slow_core(traced: TracedOperations, profile: Profile) -> tuple[Finding, ...]:
    """Return a finding where one rank is slower than the others by one factor in several regions that differ."""
    known = [unit for unit in traced.find_units() if unit.region in traced.noise.shares]
    shares = {unit.region: traced.noise.shares[unit.region] for unit in known}
    total = sum(float(unit.seconds.sum()) for unit in traced.find_units())
    if len(shares) < 2 or sum(float(unit.seconds.sum()) for unit in known) < COVERED_SHARE * total:
        return ()
    table: FloatArray = np.stack(list(shares.values()))
    rank = int(table.mean(axis=0).argmax())
    factor = float(table[:, rank].mean())
    others = np.delete(table, rank, axis=1)
    if factor < SLOW or np.ptp(table[:, rank]) > ALIKE * factor or (np.abs(others - 1.0) > ALIKE).any():
        return ()
    name = profile.processors[rank].name
    text = (
        f"{name} takes {factor:.2f} times as long as each of the others in all of {len(shares)} regions: its core is "
        "slow (frequency, another process, memory), which a new cut of the domain only hides"
    )
    return (Finding(_PLUGIN, "slow core", name, text, {"factor": factor}),)
