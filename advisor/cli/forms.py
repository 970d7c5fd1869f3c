"""The forms in which advice is written: for a terminal, for programs, for code hosts and for browsers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import output

if TYPE_CHECKING:
    import argparse

    from advisor.advice.past import Earlier
    from advisor.model.records import Advice

FORMS = ("text", "json", "markdown", "sarif", "html")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a command that writes advice the options that say how."""
    output.add_options(parser, FORMS)
    parser.add_argument(
        "--base", metavar="BUILD",
        help="for markdown and gates on changes: the build to compare with (default: the last other one)",
    )  # fmt: skip
    parser.add_argument(
        "--source-root", metavar="DIR", type=Path, help="for sarif: the sources' root, to which places are relative"
    )


def written(advice: Advice, earlier: Earlier, args: argparse.Namespace) -> str:
    """Return the advice in the form that the arguments ask for; ``earlier`` is the past of its program."""
    if args.form == "json":
        from advisor.output.document import document, to_json

        return to_json(document(advice))
    if args.form == "markdown":
        from advisor.advice.past import base_of
        from advisor.output.markdown import comment

        base = base_of(advice, earlier.advice(), args.base)
        return comment(advice, base.change if base else None)
    if args.form == "sarif":
        from advisor.output.sarif import sarif

        return sarif(advice, os.path.abspath(args.source_root) if args.source_root else None)
    if args.form == "html":
        from advisor.output import pictures
        from advisor.output.html.page import page

        return page(advice, pictures.of_run(advice, earlier.advice()))
    from advisor.output.terminal import screen

    return screen(advice, output.page(args, verbose=args.verbose))
