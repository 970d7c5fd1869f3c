"""``gapwatch stamp DIR``: say which build the profiles in a directory are of, or run a command that writes them."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from pathlib import Path

from advisor.cli import output

NAME = "stamp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="Directory of the profiles, existing or planned")
    _add_stamp_options(parser)
    parser.add_argument(
        "command", metavar="CMD", nargs=argparse.REMAINDER,
        help="Command to run with GAPWATCH_BUILD set, preferably after --; its exit status is passed on",
    )  # fmt: skip


def _add_stamp_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--build", metavar="NAME", help="Build name (default: commit of --source plus a hash of its changes)"
    )
    parser.add_argument(
        "--source", metavar="DIR", type=Path, default=Path(), help="Source tree (default: current directory)"
    )
    parser.add_argument(
        "--parameter", metavar="NAME=VALUE", type=_parse_parameter, action="append", default=[],
        help="Run parameter such as N=4096; repeatable",
    )  # fmt: skip


def _split_arguments(args: argparse.Namespace) -> list[str]:
    """Return the command, after taking in the options between the directory and ``--``, which argparse leaves to it."""
    words: list[str] = args.command
    end = words.index("--") if "--" in words else len(words) if words[:1] and words[0].startswith("--") else 0
    from advisor.cli.parsers import CommandParser

    parser = CommandParser(prog=f"gapwatch {NAME}", add_help=False, allow_abbrev=False)
    _add_stamp_options(parser)
    defaults = {name: getattr(args, name) for name in ("build", "source", "parameter")}
    parser.set_defaults(**defaults)
    parser.parse_args(words[:end], namespace=args)
    return words[end + 1 :] if "--" in words else words[end:]


def _parse_parameter(text: str) -> tuple[str, str | float]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {text!r}")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    return name.strip(), number if math.isfinite(number) else value.strip()


def run_command(args: argparse.Namespace) -> int:
    """Write the sidecar, then run the command if there is one; returns its exit status, else 0."""
    from advisor.collect import builds, sidecar
    from advisor.model.errors import UsageError

    command = _split_arguments(args)
    build = args.build or os.environ.get(sidecar.BUILD_VARIABLE) or builds.identify_build(args.source)
    if build is None:
        raise UsageError(f"{args.source.absolute()} is not in a git repository; name the build with --build")
    args.folder.mkdir(parents=True, exist_ok=True)
    file = sidecar.write_sidecar(args.folder, {"build": build}, dict(args.parameter))
    if command:
        return _run_process(command, {**os.environ, sidecar.BUILD_VARIABLE: build})
    from advisor.output.clean import clean_text

    output.write_output(clean_text(f"{file}: build {build}") + "\n")
    return 0


def _run_process(command: Sequence[str], environment: dict[str, str]) -> int:
    import subprocess

    from advisor.model.errors import UsageError

    try:
        code = subprocess.run(command, env=environment, check=False).returncode
    except OSError as error:
        raise UsageError(f"{command[0]}: {error.strerror}") from error
    return code if code >= 0 else 128 - code
