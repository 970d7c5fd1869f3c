"""``gapwatch whatif``: light code; what is heavy is imported when the command runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.commands import Argument, CommandRegistry, CommandServices
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace

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
        "simulate what changes would gain, alone and together",
        (
            Argument("path", "recorded run, or application model (.yaml)", Path),
            Argument(
                "--action", "actions such as A-29 G-4; for several also their joint gain", several=True, metavar="ID"
            ),
            Argument("--region", "only in phases where this region works", metavar="NAME"),
            Argument("--network", "scale the speed of the network by this factor", float),
            Argument("--processor", "scale the speed of the processors by this factor", float),
            Argument("--plan", "search for the best sequence of actions", bool, False),
            Argument("--ranks-per-node", "try mappings of the ranks of a trace to nodes with N ranks each", int),
            Argument("--latency", "latency between nodes, such as '2 us'", metavar="TIME"),
            Argument("--bandwidth", "bandwidth between nodes, such as '10 GB/s'", metavar="RATE"),
            Argument(
                "--machine", "machine model, for an application model or for the network between nodes", metavar="MODEL"
            ),
            Argument("--processors", "processors of an application model (default: those it states, else 4)", int),
            Argument("--finite", "application models: finite caches, of the machine's size", bool, False),
        ),
        run_whatif,
    )


def run_whatif(args: Namespace, services: CommandServices) -> Report:
    """Return expected gains with intervals, side effects, conflicts, and the requested plan.

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
