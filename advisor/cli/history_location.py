"""Where the history is: ``--state``, ``GAPWATCH_STATE``, or where this system keeps such data of a user."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import user_folders
from advisor.support.disk_cache import system_folder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from advisor.advice.earlier_runs import RunHistory
    from advisor.history.runs import RunStore

STATE_VARIABLE = "GAPWATCH_STATE"


def add_state_argument(parser: argparse.ArgumentParser) -> None:
    """Give a command the option that names the directory of the history."""
    parser.add_argument(
        "--state", metavar="DIR", type=Path, help="History directory (default: the user's state directory)"
    )


def history_folder(args: argparse.Namespace, configured: Path | None = None) -> Path:
    """Return the directory of the history; ``configured`` is what the configuration of this command says."""
    return args.state.expanduser().absolute() if args.state else default_history_folder(configured)


def default_history_folder(configured: Path | None = None) -> Path:
    """Return the directory of the history where no option says another one; raises ``UsageError``.

    That of the environment, else the ``configured`` one, else that of the user's configuration, else the system's.
    """
    said = os.environ.get(STATE_VARIABLE)
    if said:
        return Path(said).expanduser().absolute()
    found = configured or _configured_folder()
    if found is not None:
        return found.absolute()
    return system_folder("state")


def _configured_folder() -> Path | None:
    """Return what the user's configuration says, which the daemon goes by."""
    own = user_folders.config_folder() / "gapwatch.toml"
    if not own.is_file():
        return None
    from advisor.daemon import config

    user_folders.refuse_foreign_config(own)
    return config.read_config(own).state


def open_history(args: argparse.Namespace) -> RunHistory | None:
    """Return the past that the history holds; None, and nothing that reads it loaded, where there is no history yet."""
    folder = history_folder(args)
    if not folder.is_dir():
        return None
    from advisor.history.history_queries import StoredHistory

    return StoredHistory(folder)


def require_program(program: str | None, runs: RunStore) -> None:
    """Raise ``UsageError`` where the history holds no run of ``program``, if one is named."""
    programs = runs.list_programs()
    if program is not None and program not in programs:
        from advisor.model.errors import UsageError

        raise UsageError(f"no run of {program!r} in the history; there are {', '.join(programs) or 'none'}")


@contextmanager
def open_runs(args: argparse.Namespace) -> Iterator[RunStore]:
    """Give the runs of the history, to read; the connection is closed afterwards. Raises ``StoreError``."""
    from advisor.history.database import read_history
    from advisor.history.runs import RunStore

    with read_history(history_folder(args)) as connection:
        yield RunStore(connection)
