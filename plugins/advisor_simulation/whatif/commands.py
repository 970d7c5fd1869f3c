"""``gapwatch whatif``: light code; what is heavy is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.commands import Argument

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.commands import Registry, Services
    from advisor.reports import Report


def register(registry: Registry) -> None:
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
            Argument("--network", "with a network so many times as fast", float, 1.0),
            Argument("--processor", "with processors so many times as fast", float, 1.0),
            Argument("--plan", "search the best sequence of actions", bool, False),
            Argument("--ranks-per-node", "map the ranks of a trace to nodes of so many, in several ways", int),
            Argument("--latency", "of a message between nodes, such as '2 us'"),
            Argument("--bandwidth", "between nodes, such as '10 GB/s'"),
            Argument("--machine", "machine model of an application model, or of the network between nodes"),
            Argument("--processors", "processors of an application model", int, 4),
            Argument("--finite", "models with caches of the size that the machine has", bool, False),
        ),
        run,
    )


def run(args: Namespace, services: Services) -> Report:
    """Return expected gains with intervals, side effects, conflicts, and the plan that was asked for."""
    if args.path.suffix in (".yaml", ".yml"):
        from advisor_simulation.whatif.models import report as of_model

        return of_model(args, services)
    if args.ranks_per_node is not None:
        from advisor_simulation.whatif.mapping import report as mapped

        return mapped(args, services)
    from advisor_simulation.whatif.report import report

    return report(args, services)
