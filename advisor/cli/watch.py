"""``gapwatch watch``: the daemon beside the builds, on a screen, as lines, or as documents."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import config as config_command
from advisor.cli import gates, history_location, option_types, output, user_folders
from advisor.model.errors import AdvisorError, UsageError
from advisor.model.units import format_count
from advisor.support.extras import install_line

if TYPE_CHECKING:
    import argparse

    from advisor.advice.earlier_runs import ComparisonBase
    from advisor.daemon.config import DaemonConfig
    from advisor.daemon.events import Event
    from advisor.history.location import HistoryLocation
    from advisor.model.records import Advice

NAME = "watch"
#: Columns and lines that the screen to work with needs.
_LEAST_SCREEN = (60, 20)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "roots", metavar="DIR", nargs="*", type=Path, help="Directory that profilers write to (default: from --config)"
    )
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="Configuration file (default: the user's gapwatch.toml)"
    )
    history_location.add_state_argument(parser)
    parser.add_argument("--once", action="store_true", help="Process existing files, then exit")
    parser.add_argument(
        "--format", dest="form", choices=("screen", "live", "lines", "json"),
        help="Interactive screen, live screen, one line per event, or one JSON document per run (default: "
        "screen on a terminal of at least 60 x 20 with the extra 'screen', live on others, else lines)",
    )  # fmt: skip
    gates.add_gate_argument(parser, "With --once: exit with status 1 if GATE holds for the newest run of a program")
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=option_types.whole_number("a number of jobs", most=1024),
        help="Profiles to read in parallel (default: 1)",
    )
    parser.add_argument("--machine", metavar="NAME|FILE", help="Machine model (see gapwatch machines list)")


def run_command(args: argparse.Namespace) -> int:
    """Watch until a signal ends it; returns the exit code."""
    from advisor.cli.watchers import make_watcher
    from advisor.daemon import throttling
    from advisor.daemon.daemon import Daemon
    from advisor.daemon.events import FileSettled, RunIngested

    if args.fail_on and not args.once:
        raise UsageError("--fail-on requires --once: a daemon that keeps watching has no exit status")
    settings = _load_settings(args)
    state = history_location.locate_history(args, settings.state)
    form = _choose_form(args)
    if form == "screen":
        from advisor.cli.screen.session import build_daemon_command, run_screen

        return run_screen(build_daemon_command(args, state), settings.roots, state, output.build_page(args))
    shown = make_watcher(form, settings, state, output.build_page(args))
    newest: dict[str, Advice] = {}
    unread: list[str] = []

    def handle_event(event: Event) -> None:
        if isinstance(event, RunIngested):
            newest[event.advice.profile.program] = event.advice
        elif args.fail_on and isinstance(event, FileSettled) and event.state in ("quarantined", "waiting"):
            unread.append(f"{event.path} could not be read ({event.reason})")
        try:
            shown.handle_event(event)
        except AdvisorError as error:  # a log that is full; the history has all that it would say
            if args.once:
                raise
            output.write_messages(f"{error}; continuing without it")

    daemon = Daemon(settings, state, handle_event)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: daemon.stop())
    had_terminal = _is_terminal()

    def handle_hangup(*_: object) -> None:
        if had_terminal and not _is_terminal():  # it was closed: nobody sees or ends this process any more
            daemon.stop()
        else:
            daemon.reload_config(lambda: _load_settings(args))

    signal.signal(signal.SIGHUP, handle_hangup)
    throttling.lower_priority(settings.nice)
    with shown:
        daemon.run_daemon(once=args.once)
    if args.once and not (newest or args.fail_on) and form != "live":
        output.write_messages(_describe_nothing(state))
    for advice in newest.values() if args.fail_on else ():
        gates.check_gates(args.fail_on, advice, partial(_find_base, advice, state))
    if args.fail_on and (unread or not newest):
        raise AdvisorError(f"--fail-on has no verdict: {'; '.join(unread) or _describe_nothing(state)}")
    return 0


def _describe_nothing(state: HistoryLocation) -> str:
    """Return what became of the files where no run came of any."""
    from advisor.history.access import read_history
    from advisor.history.file_states import FileStates

    with read_history(state) as connection:
        files = FileStates(connection)
        counts, ignored = files.count_states(), files.count_ignored()
    known = ", ".join(f"{format_count(count, 'file')} {name}" for name, count in counts.items() if count)
    why = f" ({ignored[0][0]}: {ignored[0][2]} …)" if ignored else ""
    where = f"; 'gapwatch status --state {shlex.quote(str(state))}' lists them" if known else ""
    return f"no new run was read: {known}{why}{where}" if known else "no new run was read: no file was found"


def _find_base(advice: Advice, state: HistoryLocation) -> ComparisonBase | None:
    """Return the build before that of a run in the history; raises ``UsageError`` where that was run otherwise."""
    from advisor.advice.earlier_runs import recall_summaries, require_base
    from advisor.history.history_queries import StoredHistory

    return require_base(advice, recall_summaries(StoredHistory(state), advice))


def _load_settings(args: argparse.Namespace) -> DaemonConfig:
    """Return what the file and the command line say; raises ``UsageError``."""
    from advisor.daemon import config

    flags = {
        "roots": tuple(path.absolute() for path in args.roots) or None,
        "state": args.state,
        "jobs": args.jobs,
        "machine": user_folders.resolve_machine(args.machine),
        "rules": user_folders.rule_files() or None,
        "plugins": user_folders.plugin_folders() or None,
    }
    found = config.with_flags(config_command.read_config(args), flags)
    if not found.roots:
        raise UsageError("no directories given; run 'gapwatch watch DIR' or set roots in gapwatch.toml")
    missing = [str(root) for root in found.roots if not root.is_dir()]
    if len(missing) == len(found.roots):
        raise UsageError(f"no such directory: {', '.join(missing)}")
    return found


def _choose_form(args: argparse.Namespace) -> str:
    """Return how events are shown: as asked for, as far as the terminal can do it; raises ``UsageError``."""
    form: str = args.form or ("live" if args.once or not _can_hold_screen() else "screen")
    if form == "screen":
        if args.once:
            raise UsageError("--once exits when done: use it with --format live, lines or json")
        if importlib.util.find_spec("textual") is None:
            raise AdvisorError(f"--format screen needs Textual: {install_line('screen')}")
        if not _is_interactive():
            raise UsageError("--format screen needs a terminal for input, output and errors")
    return "lines" if form == "live" and not _is_terminal() else form


def _can_hold_screen() -> bool:
    """Return whether there is a terminal to work with that is large enough, has the signs, and what draws it."""
    if not _is_interactive():
        return False
    size = shutil.get_terminal_size((0, 0))
    encoding = output.stream_encoding(sys.stdout, os.environ).lower().replace("-", "")
    large = size.columns >= _LEAST_SCREEN[0] and size.lines >= _LEAST_SCREEN[1]
    return large and encoding == "utf8" and importlib.util.find_spec("textual") is not None


def _is_interactive() -> bool:
    """Return whether a terminal is at all three standard streams: keys come from one, and the screen goes to one."""
    return _is_terminal() and all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
