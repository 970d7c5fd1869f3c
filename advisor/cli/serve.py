"""``gapwatch serve``: the history as read-only pages and JSON documents over HTTP."""

from __future__ import annotations

import importlib.util
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import history_location, option_types, output
from advisor.model.errors import AdvisorError, UsageError
from advisor.support.extras import install_line
from advisor.support.private_files import read_secret

if TYPE_CHECKING:
    import argparse

NAME = "serve"
_PORT: Final = 8750
_SHORTEST_TOKEN: Final = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1",
        help="Address to listen on; others than loopback require --token-file (default: 127.0.0.1)",
    )  # fmt: skip
    parser.add_argument(
        "--port", metavar="N", type=option_types.whole_number("a port", most=65_535), default=_PORT,
        help=f"Port to listen on (default: {_PORT})",
    )  # fmt: skip
    parser.add_argument(
        "--token-file", metavar="FILE", type=Path,
        help="File, readable by its owner only, with the token that clients must send",
    )  # fmt: skip
    parser.add_argument(
        "--name", metavar="HOST", action="append", default=[],
        help="Name that clients call the server by, such as that of a proxy; repeatable",
    )  # fmt: skip
    history_location.add_state_argument(parser)


def run_command(args: argparse.Namespace) -> int:
    """Serve until a signal ends it; returns the exit code."""
    if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise AdvisorError(f"gapwatch serve needs Starlette and uvicorn: {install_line('serve')}")
    import uvicorn

    from advisor.cli.site.application import HistoryAnswers, build_application
    from advisor.history.program_views import HistoryViews

    token = read_token(args.token_file) if args.token_file else None
    if token is None and not _is_loopback(args.host):
        raise UsageError(f"--host {args.host} is not loopback: others could read the history; give a --token-file")
    place = history_location.locate_history(args)
    answers = HistoryAnswers(place, HistoryViews(place))
    hosts = ("localhost", "127.0.0.1", "[::1]", args.host, *args.name)
    output.write_messages(f"serving {place} on http://{args.host}:{args.port}/ (Ctrl+C ends it)")
    uvicorn.run(
        build_application(answers, token, hosts), host=args.host, port=args.port, log_level="warning",
        server_header=False, access_log=False, proxy_headers=False, limit_concurrency=64,
    )  # fmt: skip
    return 0


def read_token(file: Path) -> str:
    """Return the token in a file; raises ``UsageError`` for one that others may read, or that can be guessed."""
    text = read_secret(file)
    if len(text) < _SHORTEST_TOKEN or not text.isascii() or not text.isprintable():
        raise UsageError(f"{file}: a token has at least {_SHORTEST_TOKEN} printable ASCII characters")
    return text


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
