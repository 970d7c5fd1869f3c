"""Simulation of programs: models executed on machine models, and what a change would win."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.advice.counterfactuals import Candidate, Counterfactual
    from advisor.advice.facts import Fact
    from advisor.analysis.machines import Machine
    from advisor.extension.commands import CommandRegistry
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Advice, Finding, KnownDocument, Profile
    from advisor.trace.events import Trace


@hookimpl
def advisor_commands(register: CommandRegistry) -> None:
    """Register the commands of all parts."""
    from advisor_simulation.mds import commands as mds
    from advisor_simulation.model import commands as model
    from advisor_simulation.replay import commands as replay
    from advisor_simulation.whatif import commands as whatif

    mds.register_command(register)
    model.register_command(register)
    replay.register_command(register)
    whatif.register_command(register)


@hookimpl
def advisor_document(path: Path) -> KnownDocument | None:
    """Return that a YAML file is a model of a machine, or of an application."""
    from advisor_simulation.model.documents import identify_model

    return identify_model(path)


@hookimpl
def advisor_findings(
    profile: Profile, machine: Machine | None, trace: Trace | None, history: Sequence[Advice]
) -> Sequence[Finding]:
    """Return the findings of a replay on network and machine: efficiencies and disturbances.

    Of the history those runs count that were traced on other numbers of ranks.
    """
    if trace is None:
        return ()
    from advisor_simulation.replay.findings import build_findings
    from advisor_simulation.whatif import disturbances

    return (*build_findings(trace, machine, profile, history), *disturbances.build_findings(profile, trace))


@hookimpl
def advisor_facts() -> Sequence[Fact]:
    """Return facts on the network's part in a run, from a replay."""
    from advisor_simulation.replay.facts import build_facts

    return build_facts()


@hookimpl
def advisor_rules() -> Sequence[Path]:
    """Return the rules that ask a replay."""
    return [Path(__file__).parent / "replay" / "rules.yaml"]


@hookimpl
def advisor_expected_gain(
    profile: Profile, recommendation: Recommendation, machine: Machine | None, trace: Trace | None
) -> tuple[float, float, float] | None:
    """Return expected, lowest and highest gain in seconds of a recommended change, simulated on the run itself."""
    from advisor_simulation.whatif.expected_gain import estimate_gain

    return estimate_gain(profile, recommendation, machine, trace)


@hookimpl
def advisor_counterfactuals(
    profile: Profile, candidates: Sequence[Candidate], trace: Trace | None
) -> Sequence[Counterfactual | None] | None:
    """Return what each change would have won, replayed on the events of the run; None for a run without events."""
    if trace is None:
        return None
    from advisor_simulation.whatif.judging import simulate_candidates

    return simulate_candidates(profile, candidates, trace)
