"""Kernel coupling: which kernels of a loop hurt or help each other, and what the program takes because of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.commands import Argument, CommandRegistry, DeferredFunction
from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.advice.facts import Fact
    from advisor.model.records import Bound, Finding, KnownDocument, Profile
    from advisor.trace.events import Trace

advisor_api = 1

_ARGUMENTS = (
    Argument("manifest", "experiment (YAML), or its results (JSON)", Path),
    Argument("--results", "results file (default: NAME.coupling.json beside the manifest)", Path),
    Argument("--predict", "additional points to predict, such as 'N=64 P=4'", several=True, metavar="POINT"),
    Argument("--machine", "machine model with the caches (default: the machine measured on)", metavar="MODEL"),
    Argument("--dry-run", "list the remaining runs without running them", bool),
)


@hookimpl
def advisor_commands(register: CommandRegistry) -> None:
    """Register ``gapwatch couple``."""
    register(
        "couple",
        "measure which kernels slow each other down or help each other, and predict from it",
        _ARGUMENTS,
        DeferredFunction("advisor_coupling.command", "run_couple"),
    )


@hookimpl
def advisor_document(path: Path) -> KnownDocument | None:
    """Recognize a file of measured couplings, which are kept for advice on their program."""
    with path.open("rb") as stream:
        if b"gapwatch/coupling/" not in stream.read(4096):
            return None
    from advisor_coupling import newest

    return newest.keep_results(path)


@hookimpl
def advisor_findings(profile: Profile, bounds: Sequence[Bound], trace: Trace | None) -> list[Finding]:
    """Return the results of an experiment with this program's kernels, else what their order in the trace shows."""
    from advisor_coupling import coupling_facts

    known = coupling_facts.find_known_losses(profile)
    if known is not None:
        from advisor_coupling import advice

        return advice.build_findings(profile, bounds, known)
    if trace is not None:
        from advisor_coupling import orders

        return orders.build_findings(trace)
    return []


@hookimpl
def advisor_facts() -> list[Fact]:
    """Return the facts about coupling."""
    from advisor_coupling import coupling_facts

    return coupling_facts.build_facts()


@hookimpl
def advisor_rules() -> list[Path]:
    """Return the rules about coupling."""
    return [Path(__file__).with_name("rules.yaml")]
