from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.cli import parsers
from advisor.cli.commands import COMMANDS
from docsite import commands

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.cli.commands import BuiltInCommand

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_page_says_what_the_help_says(same_as: Callable[[str, Path], None]) -> None:
    same_as(commands.with_table(PAGE.read_text(encoding="utf-8")), PAGE)


@pytest.mark.parametrize("module", COMMANDS.values(), ids=COMMANDS)
def test_everything_has_help(module: BuiltInCommand) -> None:
    def check(parser: argparse.ArgumentParser) -> None:
        assert parser.description
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for one in action.choices.values():
                    check(one)
            else:
                assert action.help, f"{parser.prog} {action.dest}"

    check(parsers.build_command_parser(module))
