"""Reports of commands, written as the arguments ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.cli import output

#: The forms in which a report is written.
FORMS = ("text", "json", "html")

if TYPE_CHECKING:
    import argparse

    from advisor.model.reports import Report


def show_report(report: Report, args: argparse.Namespace) -> int:
    """Write the report as text, as JSON or as a page; returns the exit code 0."""
    from advisor.output.report_text import build_report_document

    return show_document(build_report_document(report), report, args)


def show_document(document: object, report: Report, args: argparse.Namespace) -> int:
    """Write a report that has a JSON document of its own; returns the exit code 0."""
    form = getattr(args, "form", "text")
    if form == "html":
        from advisor.output.html import report_page

        text = report_page.render_report_page(report)
    elif form == "json":
        from advisor.output.advice_document import to_json

        text = to_json(document)
    else:
        from advisor.output import report_text as drawn

        text = drawn.render_report(report, output.build_page(args))
    output.write_output(text, getattr(args, "output", None))
    return 0
