"""What ``gapwatch replay`` was asked for: traces are read, replayed and reported on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.errors import UsageError
from advisor.reports import Report
from advisor_simulation.replay import conversion, outcome, sections, setup

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from advisor.commands import Services
    from advisor_simulation.replay.program import Program


def report(args: Namespace, services: Services) -> Report:
    """Return the report on the traces; raises ``UsageError`` for options that do not go together."""
    if len(args.paths) != 1:
        raise UsageError("name one trace")
    return single(args, services, args.paths[0])


def program(path: Path, services: Services) -> Program:
    """Return the program recorded at ``path``; raises ``InputError``."""
    return conversion.program(services.trace(path))


def single(args: Namespace, services: Services, path: Path) -> Report:
    """Return the report on one trace at one point."""
    with services.working("reading the trace"):
        recorded = program(path, services)
    network = setup.network(args, services)
    with services.working("replaying"):
        if network is None:
            found = outcome.recorded(recorded, setup.computation(args))
        else:
            found = outcome.replay(recorded, network)
    parts = sections.run(found, as_recorded=network is None)
    if args.export:
        parts.append(sections.exported(found, args.export))
    return Report(f"Replay of {recorded.title or path.name} on {recorded.ranks} ranks", tuple(parts))
