"""The forms in which advice is written: for a terminal, for programs, for code hosts and for browsers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import output

if TYPE_CHECKING:
    import argparse

    from advisor.advice.earlier_runs import EarlierRuns
    from advisor.model.records import Advice
    from advisor.output.source_tree import SourceTree

FORMS = ("text", "json", "markdown", "sarif", "codequality", "openmetrics", "html")


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a command that writes advice the options that say how."""
    output.add_output_arguments(parser, FORMS)
    parser.add_argument(
        "--base", metavar="BUILD",
        help="Base build for Markdown and for gates on changes (default: the newest other build)",
    )  # fmt: skip
    parser.add_argument(
        "--source-root", metavar="DIR", type=Path, help="Checkout that SARIF and code quality locations are relative to"
    )
    parser.add_argument(
        "--fallback-location", metavar="FILE[:LINE]",
        help="Place in the checkout of advice without a source file (default: its build file or README)",
    )  # fmt: skip


def render_advice(advice: Advice, earlier: EarlierRuns, args: argparse.Namespace) -> str:
    """Return the advice in the form that the arguments ask for; ``earlier`` is the past of its program."""
    if args.form == "json":
        from advisor.output.advice_document import build_advice_document, to_json

        return to_json(build_advice_document(advice))
    if args.form == "markdown":
        from advisor.advice.earlier_runs import find_base
        from advisor.output.markdown import render_comment

        base = find_base(advice, earlier.earlier_summaries(), args.base)
        return render_comment(advice, base.change if base else None)
    if args.form == "sarif":
        from advisor.output.sarif import render_sarif

        return render_sarif(advice, _open_tree(args))
    if args.form == "codequality":
        from advisor.output.code_quality import render_code_quality

        return render_code_quality(advice, _open_tree(args))
    if args.form == "openmetrics":
        from advisor.output.open_metrics import render_open_metrics

        return render_open_metrics([advice])
    if args.form == "html":
        from advisor.output.html.advice_page import render_advice_page

        return render_advice_page(advice, earlier.earlier_summaries())
    from advisor.output.terminal import render_screen

    return render_screen(advice, output.build_page(args, verbose=args.verbose))


def _open_tree(args: argparse.Namespace) -> SourceTree:
    """Return the checkout that the arguments name."""
    from advisor.output.source_tree import open_source_tree

    return open_source_tree(args.source_root, args.fallback_location)
