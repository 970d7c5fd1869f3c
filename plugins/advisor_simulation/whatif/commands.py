"""``gapwatch whatif``: light code; what is heavy is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.commands import Argument
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from advisor.extension.commands import CommandRegistry, CommandServices
    from advisor.model.reports import Report


#: What only a run is asked, what only a model, and what only a mapping to nodes needs.
_OF_RUNS = ("region", "network", "processor", "ranks_per_node", "latency", "bandwidth")
_OF_MODELS = ("processors", "finite")
_OF_NODES = ("latency", "bandwidth", "machine")
_OF_CHANGES = ("action", "region", "plan")


def register_command(registry: CommandRegistry) -> None:
    """Register the command."""
    registry(
        "whatif",
        "simulate what changes would win, alone and together",
        (
            Argument("path", "a recorded run, or an application model (.yaml)", Path),
            Argument(
                "--action", "actions of the rules, such as A-29 G-4; of several also their joint gain", several=True
            ),
            Argument("--region", "only in the phases where this region works"),
            Argument("--network", "with a network so many times as fast", float),
            Argument("--processor", "with processors so many times as fast", float),
            Argument("--plan", "search the best sequence of actions", bool, False),
            Argument("--ranks-per-node", "map the ranks of a trace to nodes of so many, in several ways", int),
            Argument("--latency", "of a message between nodes, such as '2 us'"),
            Argument("--bandwidth", "between nodes, such as '10 GB/s'"),
            Argument("--machine", "machine model of an application model, or of the network between nodes"),
            Argument("--processors", "processors of an application model (default: those it states, else 4)", int),
            Argument("--finite", "models with caches of the size that the machine has", bool, False),
        ),
        run_whatif,
    )


def run_whatif(args: Namespace, services: CommandServices) -> Report:
    """Return expected gains with intervals, side effects, conflicts, and the plan that was asked for.

    Raises UsageError for options that would be ignored.
    """
    if args.path.suffix in (".yaml", ".yml"):
        from advisor_simulation.whatif.model_report import build_report as of_model

        _check_refused(args, _OF_RUNS, "is asked of recorded runs, not of application models")
        return of_model(args, services)
    _check_refused(args, _OF_MODELS, "is asked of application models (.yaml), not of recorded runs")
    machine = [name for name in ("network", "processor") if getattr(args, name) is not None]
    if args.ranks_per_node is None:
        _check_refused(args, _OF_NODES, "belongs to --ranks-per-node; --network 2 makes all messages twice as fast")
    else:
        _check_refused(args, (*_OF_CHANGES, *machine), "can't be combined with --ranks-per-node")
    if machine:
        _check_refused(args, _OF_CHANGES, f"can't be combined with --{machine[0]}")
    if args.ranks_per_node is not None:
        from advisor_simulation.whatif.mapping import build_report as mapped

        return mapped(args, services)
    from advisor_simulation.whatif.run_report import build_report

    return build_report(args, services)


def _check_refused(args: Namespace, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(args, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} {why}")
