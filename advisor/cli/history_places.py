"""Where the history is: ``--state``, ``GAPWATCH_STATE``, or where this system keeps such data of a user."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from advisor.past import Past
    from advisor.store.runs import Runs

STATE_VARIABLE = "GAPWATCH_STATE"


def add_state(parser: argparse.ArgumentParser) -> None:
    """Give a command the option that names the directory of the history."""
    parser.add_argument("--state", metavar="DIR", type=Path, help="where the history is kept (default: the user's own)")


def state(args: argparse.Namespace) -> Path:
    """Return the directory of the history."""
    return args.state.expanduser().absolute() if args.state else default()


def default() -> Path:
    """Return the directory of the history where no command says another one."""
    said = os.environ.get(STATE_VARIABLE)
    if said:
        return Path(said).expanduser().absolute()
    import platformdirs

    return platformdirs.user_state_path("gapwatch")


def past(args: argparse.Namespace) -> Past | None:
    """Return the past that the history holds; None, and nothing that reads it loaded, where there is no history yet."""
    folder = state(args)
    if not folder.is_dir():
        return None
    from advisor.store.past import StoredPast

    return StoredPast(folder)


def known(program: str | None, runs: Runs) -> None:
    """Raise ``UsageError`` where the history holds no run of ``program``, if one is named."""
    programs = runs.programs()
    if program is not None and program not in programs:
        from advisor.errors import UsageError

        raise UsageError(f"no run of {program!r} in the history; there are {', '.join(programs) or 'none'}")


def runs(args: argparse.Namespace) -> Runs:
    """Return the runs of the history, to read; raises ``StoreError``."""
    from advisor.store.database import read
    from advisor.store.runs import Runs

    return Runs(read(state(args)))
