"""``gapwatch rules``: what the rules say, whether a file of one's own is right, whether the examples come true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import output, progress, report_output, subcommands, user_folders
from advisor.model.errors import AdvisorError, UsageError

if TYPE_CHECKING:
    import argparse

    from advisor.advice.rules import RuleBook
    from advisor.extension.host import PluginHost

NAME = "rules"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    commands = subcommands.add_command_group(parser)
    one = subcommands.add_command(commands, "list", "list actions with their target gaps and tuning steps")
    user_folders.add_rules_argument(one)
    output.add_output_arguments(one)
    one = subcommands.add_command(commands, "show", "show one action: conditions, reason, code, sources")
    one.add_argument("action", metavar="ID", help="Action such as A-29")
    user_folders.add_rules_argument(one)
    output.add_output_arguments(one)
    one = subcommands.add_command(commands, "check", "validate rule files; errors are given as file:line:column")
    one.add_argument("files", metavar="FILE", nargs="+", type=Path, help="YAML file of actions")
    output.add_output_arguments(one)
    one = subcommands.add_command(commands, "test", "run the examples of the rules")
    user_folders.add_rules_argument(one)
    output.add_output_arguments(one)


def run_command(args: argparse.Namespace) -> int:
    """Do what the arguments name; returns the exit code."""
    return {"list": _list_rules, "show": _show_rule, "check": _check_files, "test": _test_rules}[args.what](args)


def _load_rules(args: argparse.Namespace, host: PluginHost) -> RuleBook:
    from advisor.advice import rules

    return rules.load_default((*host.rule_files(), *user_folders.rule_files(), *args.rules), host.collect_facts())


def _list_rules(args: argparse.Namespace) -> int:
    from advisor.cli import rule_pages

    return report_output.show_report(rule_pages.build_rule_list(_load_rules(args, user_folders.load_host())), args)


def _show_rule(args: argparse.Namespace) -> int:
    from advisor.cli import rule_pages
    from advisor.support.documents import scalars

    book = _load_rules(args, user_folders.load_host())
    action = book.find_action(args.action)
    if action is None:
        known = [action.id for action in (*book.actions, *book.off)]
        near = scalars.find_nearest(args.action, known)
        hint = f"; did you mean {near}?" if near else ""
        raise UsageError(f"no action {args.action!r}{hint} (see gapwatch rules list)")
    return report_output.show_document(
        rule_pages.build_action_document(action, book), rule_pages.build_action_report(action, book), args
    )


def _check_files(args: argparse.Namespace) -> int:
    """Write every mistake as ``file:line:column: what``, the form that editors understand; exit code 2 if there are."""
    from advisor.advice.rules import lint
    from advisor.cli import rule_pages

    facts = user_folders.load_host().collect_facts()
    problems = [problem for file in args.files for problem in lint.check_rule_file(file, facts)]
    if args.form == "json" or not problems:
        report_output.show_report(rule_pages.build_problem_report(problems), args)
    else:
        page = output.build_page(args)
        output.write_output("".join(f"{page.clean_remark(str(problem))}\n" for problem in problems), args.output)
    return AdvisorError.exit_code if problems else 0


def _test_rules(args: argparse.Namespace) -> int:
    """Write the examples that did not come true; exit code 2 if there are."""
    from advisor.advice.rules import cases
    from advisor.cli import rule_pages

    host = user_folders.load_host()
    with progress.show_progress("running the examples"):
        results = cases.run_examples(_load_rules(args, host), host.collect_facts())
    report_output.show_report(rule_pages.build_test_report(results), args)
    return 0 if all(result.has_passed for result in results) else AdvisorError.exit_code
