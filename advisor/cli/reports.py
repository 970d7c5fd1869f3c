"""Reports of commands, written as the arguments ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.cli import output

#: The forms in which a report is written.
FORMS = ("text", "json", "html")

if TYPE_CHECKING:
    import argparse

    from advisor.model.reports import Report


def show(report: Report, args: argparse.Namespace) -> int:
    """Write the report as text, as JSON or as a page; returns the exit code 0."""
    from advisor.output.report import document

    return show_document(document(report), report, args)


def show_document(document: object, report: Report, args: argparse.Namespace) -> int:
    """Write a report that has a JSON document of its own; returns the exit code 0."""
    form = getattr(args, "form", "text")
    if form == "html":
        from advisor.output.html import reports

        text = reports.page(report)
    elif form == "json":
        from advisor.output.document import to_json

        text = to_json(document)
    else:
        from advisor.output import report as drawn

        text = drawn.text(report, output.page(args))
    output.emit(text, getattr(args, "output", None))
    return 0
