"""The published plugin contract, and nothing else: every hook a plugin may implement.

Data in, data out. A plugin is a module (or object) with functions of these names, marked with ``hookimpl``
and found through the entry-point group ``advisor``, or as a file in a site's plugin directory. A function names
only the arguments that it needs. A plugin says which version of this contract it was written for by an attribute
``advisor_api``; without one it is 1. What it returns is checked; docs/hooks/ shows each hook at work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from advisor.advice.counterfactuals import Candidate, Counterfactual
    from advisor.advice.earlier_runs import AppliedAction
    from advisor.advice.facts import Fact
    from advisor.analysis.machines import Machine
    from advisor.extension.commands import CommandRegistry
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Advice, Bound, Finding, Gap, KnownDocument, Profile
    from advisor.trace.events import Trace

GROUP = "advisor"
API_VERSION = 1

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def advisor_sniff(path: Path) -> float | None:
    """Return how sure the reader is (0 to 1) that it can read ``path``; None when it is not its format.

    Looks at content, not at names, and reads no more than a few kilobytes.
    """


@hookspec
def advisor_read(path: Path) -> Profile:
    """Return the run recorded at ``path``; called only for the reader that was surest of it.

    Raises ``InputError`` with file and place where the data are damaged.
    """


@hookspec
def advisor_trace(path: Path) -> Trace:
    """Return the events recorded at ``path``; only of readers whose format holds events, and that read it.

    Raises ``InputError`` with file and place where the data are damaged.
    """


@hookspec
def advisor_document(path: Path) -> KnownDocument | None:
    """Return what a file in a watched directory is that no reader takes; None where the plugin does not know it.

    Results of experiments, studies and models are such files. The plugin keeps of it what later advice needs; advice on
    the newest run of the program that it names is then made again. Looks at content, and at no more of it than it must.
    """


@hookspec
def advisor_findings(
    profile: Profile,
    bounds: Sequence[Bound],
    gaps: Sequence[Gap],
    machine: Machine | None,
    history: Sequence[Advice],
    trace: Trace | None,
    applied: Sequence[AppliedAction],
) -> Sequence[Finding]:
    """Return what the plugin noticed in this run; ``history`` holds earlier runs, oldest first.

    ``applied`` holds what was applied to other programs and what it won there; it is read only if a plugin names it.
    ``trace`` holds the events of the run, None where it was not read from one trace, or that is too large to be read
    again; it is read only if a plugin names it.
    """


@hookspec
def advisor_expected_gain(
    profile: Profile, recommendation: Recommendation, machine: Machine | None, trace: Trace | None
) -> tuple[float, float, float] | None:
    """Return expected, lowest and highest gain in seconds from simulating the recommended change.

    None where the change can't be simulated; then the next plugin is asked.
    """


@hookspec
def advisor_counterfactuals(
    profile: Profile, candidates: Sequence[Candidate], machine: Machine | None, trace: Trace | None
) -> Sequence[Counterfactual | None] | None:
    """Return what each of the candidate changes would have won on the recorded run, alone and behind better ones.

    None in the place of a change that can't be simulated; None for all where the run can't be simulated: then rules'
    thresholds decide, and ``advisor_expected_gain`` is asked.
    """


@hookspec
def advisor_facts() -> Sequence[Fact]:
    """Return facts that extend the vocabulary of the rules' conditions.

    Each is computed from the profile (``compute``) or from the profile and the events of the run (``of_trace``).
    """


@hookspec
def advisor_rules() -> Sequence[Path]:
    """Return files of rules that the plugin brings along."""


@hookspec
def advisor_machines() -> Sequence[Path]:
    """Return files of machine models that the plugin brings along."""


@hookspec
def advisor_commands(register: CommandRegistry) -> None:
    """Register commands by ``register(name, help, arguments, run)``; ``run(args, services)`` returns a Report."""


@hookspec
def advisor_services() -> Mapping[str, Callable[..., object]]:
    """Return functions for the commands of other plugins, by names such as ``scaling.models``."""
