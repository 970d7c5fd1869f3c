"""The forms in which advice is written: for a terminal, for programs, for code hosts and for browsers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import history_places, output

if TYPE_CHECKING:
    import argparse

    from advisor.comparison import Comparison
    from advisor.model import Advice

FORMS = ("text", "json", "markdown", "sarif", "html")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a command that writes advice the options that say how."""
    output.add_options(parser, FORMS)
    parser.add_argument(
        "--base", metavar="BUILD", help="for markdown: the build to compare with (default: the last one in the history)"
    )
    parser.add_argument(
        "--source-root", metavar="DIR", type=Path, help="for sarif: the sources' root, to which places are relative"
    )


def written(advice: Advice, args: argparse.Namespace) -> str:
    """Return the advice in the form that the arguments ask for."""
    if args.form == "json":
        from advisor.render.document import document, to_json

        return to_json(document(advice))
    if args.form == "markdown":
        from advisor.render.markdown import comment

        return comment(advice, _since(advice, args))
    if args.form == "sarif":
        from advisor.render.sarif import sarif

        return sarif(advice, os.path.abspath(args.source_root) if args.source_root else None)
    if args.form == "html":
        from advisor import pictures
        from advisor.render.html.page import page

        drawn = (pictures.balance(advice.profile), pictures.imbalance(advice.profile))
        return page(advice, [part for part in drawn if part is not None])
    from advisor.render.terminal import screen

    return screen(advice, output.page(args, verbose=args.verbose))


def _since(advice: Advice, args: argparse.Namespace) -> Comparison | None:
    """Return what changed since an earlier build of the history; None where that knows none."""
    from advisor.past import Earlier, since
    from advisor.store.past import StoredPast

    earlier = Earlier(advice.profile, (), StoredPast(history_places.state(args)))
    found = since(advice, earlier.advice(), args.base)
    output.complain(*(problem for problem in earlier.problems if problem not in advice.problems))
    return found
