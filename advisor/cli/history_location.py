"""Where the history is: ``--state``, ``GAPWATCH_STATE``, or where this system keeps such data of a user."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import user_folders
from advisor.model.errors import UsageError
from advisor.model.lists import join_names
from advisor.output.clean import clean_text
from advisor.support.disk_cache import system_folder

if TYPE_CHECKING:
    from advisor.advice.earlier_runs import RunHistory
    from advisor.history.location import HistoryLocation
    from advisor.history.runs import RunStore

STATE_VARIABLE = "GAPWATCH_STATE"
#: Programs that a line names.
_NAMED_PROGRAMS: Final = 12


def add_state_argument(parser: argparse.ArgumentParser) -> None:
    """Give a command the option that says where the history is."""
    parser.add_argument(
        "--state", metavar="DIR|URL", type=_parse_argument,
        help="History: a directory, or the postgresql:// URL of a server (default: the user's state directory)",
    )  # fmt: skip


def _parse_argument(text: str) -> HistoryLocation:
    try:
        return resolve_location(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def resolve_location(text: str) -> HistoryLocation:
    """Return the directory, absolute, or the server that a text names; raises ``UsageError``."""
    if "://" not in text:
        return Path(text).expanduser().absolute()
    from advisor.history.location import parse_location

    return parse_location(text)


def locate_history(args: argparse.Namespace, configured: HistoryLocation | None = None) -> HistoryLocation:
    """Return where the history is; ``configured`` is what the configuration of this command says."""
    return args.state or locate_default_history(configured)


def history_folder(args: argparse.Namespace) -> Path:
    """Return the directory for what belongs to the history and is kept on this machine."""
    from advisor.history.location import working_folder

    return working_folder(locate_history(args))


def locate_default_history(configured: HistoryLocation | None = None) -> HistoryLocation:
    """Return where the history is if no option says so; raises ``UsageError``.

    That of the environment, else the ``configured`` one, else that of the user's configuration, else the system's.
    """
    said = os.environ.get(STATE_VARIABLE)
    if said:
        return resolve_location(said)
    found = configured or _find_configured()
    if found is not None:
        return found.absolute() if isinstance(found, Path) else found
    return system_folder("state")


def _find_configured() -> HistoryLocation | None:
    """Return what the user's configuration says, which the daemon goes by."""
    own = user_folders.config_folder() / "gapwatch.toml"
    if not own.is_file():
        return None
    from advisor.daemon import config

    user_folders.refuse_foreign_config(own)
    return config.read_config(own).state


def connect_history_early(args: argparse.Namespace) -> None:
    """Connect to the server of the history while the network can be reached; those in a directory need nothing."""
    if hasattr(args, "state") and not isinstance(place := locate_history(args), Path):
        from advisor.history import access

        access.connect_early(place)


def open_history(args: argparse.Namespace) -> RunHistory | None:
    """Return the past that the history holds; None, and nothing that reads it loaded, where there is no history yet."""
    place = locate_history(args)
    if isinstance(place, Path) and not place.is_dir():
        return None
    from advisor.history.history_queries import StoredHistory

    return StoredHistory(place)


def require_program(program: str | None, runs: RunStore) -> None:
    """Raise ``UsageError`` where the history holds no run of ``program``, if one is named."""
    if program is not None and not runs.has_program(program):
        from advisor.support.documents.scalars import suggest_word

        known = runs.list_programs()
        near = suggest_word(program, known)
        raise UsageError(f"no run of {program!r} in the history{near}; there are {format_programs(known) or 'none'}")


def format_programs(names: Sequence[str]) -> str:
    """Return the first names and how many there are more, on one line; '' without names."""
    return join_names([*map(clean_text, names)], _NAMED_PROGRAMS)


@contextmanager
def open_runs(args: argparse.Namespace) -> Iterator[RunStore]:
    """Give the runs of the history, to read; the connection is closed afterwards. Raises ``StoreError``."""
    from advisor.history.access import read_history
    from advisor.history.runs import RunStore

    with read_history(locate_history(args)) as connection:
        yield RunStore(connection)
