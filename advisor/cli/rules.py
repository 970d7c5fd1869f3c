"""``gapwatch rules``: what the rules say, whether a file of one's own is right, whether the examples come true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import output, places, progress, reports, subcommands
from advisor.model.errors import AdvisorError, UsageError

if TYPE_CHECKING:
    import argparse

    from advisor.advice.rules import RuleBook
    from advisor.extension.host import Host

NAME = "rules"
HELP = "list the rules, show one, check a file of one's own, run the examples"


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    commands = subcommands.group(parser)
    one = subcommands.add(commands, "list", "list all actions with the gaps they aim at, and the steps")
    places.add_rules(one)
    output.add_options(one)
    one = subcommands.add(commands, "show", "show all about one action: when it fires, why, how with code, sources")
    one.add_argument("action", metavar="ID", help="the action, such as A-29")
    places.add_rules(one)
    output.add_options(one)
    one = subcommands.add(commands, "check", "check files of rules: every mistake in them with file, line and column")
    one.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a YAML file of actions")
    output.add_options(one)
    one = subcommands.add(commands, "test", "run the examples that stand with the rules")
    places.add_rules(one)
    output.add_options(one)


def run(args: argparse.Namespace) -> int:
    """Do what the arguments name; returns the exit code."""
    return {"list": _list, "show": _show, "check": _check, "test": _test}[args.what](args)


def _book(args: argparse.Namespace, host: Host) -> RuleBook:
    from advisor.advice import rules

    return rules.load_default((*host.rules(), *places.rule_files(), *args.rules), host.facts())


def _list(args: argparse.Namespace) -> int:
    from advisor.cli import rule_pages

    return reports.show(rule_pages.listed(_book(args, places.load_host())), args)


def _show(args: argparse.Namespace) -> int:
    from advisor.cli import rule_pages
    from advisor.support.documents import scalars

    book = _book(args, places.load_host())
    action = book.action(args.action)
    if action is None:
        known = [action.id for action in (*book.actions, *book.off)]
        near = scalars.nearest(args.action, known)
        hint = f"; did you mean {near}?" if near else ""
        raise UsageError(f"there is no action {args.action!r}{hint} (gapwatch rules list shows all)")
    return reports.show_document(rule_pages.document(action, book), rule_pages.shown(action, book), args)


def _check(args: argparse.Namespace) -> int:
    """Write every mistake as ``file:line:column: what``, the form that editors understand; exit code 2 if there are."""
    from advisor.advice.rules import lint
    from advisor.cli import rule_pages

    facts = places.load_host().facts()
    problems = [problem for file in args.files for problem in lint.check(file, facts)]
    if args.form == "json" or not problems:
        reports.show(rule_pages.checked(problems), args)
    else:
        page = output.page(args)
        output.emit("".join(f"{page.remark(str(problem))}\n" for problem in problems), args.output)
    return AdvisorError.exit_code if problems else 0


def _test(args: argparse.Namespace) -> int:
    """Write the examples that did not come true; exit code 2 if there are."""
    from advisor.advice.rules import cases
    from advisor.cli import rule_pages

    host = places.load_host()
    with progress.working("running the examples"):
        results = cases.run_examples(_book(args, host), host.facts())
    reports.show(rule_pages.tested(results), args)
    return 0 if all(result.passed for result in results) else AdvisorError.exit_code
