"""Parsers that write through ``output`` and raise instead of ending the process."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from advisor.cli import output, report_output
from advisor.cli.commands import HELP, BuiltInCommand
from advisor.model.errors import UsageError
from advisor.output.clean import clean_text

if TYPE_CHECKING:
    from advisor.extension.commands import Argument, Command

DESCRIPTION = (
    "Lower bounds on the run time of a parallel program, the gaps between them in seconds,\n"
    "and tuning actions ranked by gain."
)
#: What stands for the value of an option in help.
_METAVARS: Final[dict[type, str]] = {int: "N", float: "X", Path: "FILE"}
CODES = "Exit codes: 0 success, 1 gate crossed, 2 usage or input error, 3 internal error."


class CommandParser(argparse.ArgumentParser):
    """A parser whose help goes the way of all output, and whose complaints are ``UsageError``."""

    def __init__(self, *, add_help: bool = True, **settings: Any) -> None:  # noqa: ANN401 - what argparse takes
        shape = settings.pop("formatter_class", argparse.HelpFormatter)
        width = output.terminal_columns() - 2  # argparse would import shutil to know
        super().__init__(add_help=False, formatter_class=partial(shape, width=width), **settings)
        if add_help:
            self.add_argument("-h", "--help", action="help", help="Show this help and exit")

    @property
    def color(self) -> bool:
        """Never: newer Pythons would colour help by their own rules."""
        return False

    @color.setter
    def color(self, value: bool) -> None:
        pass

    def print_help(self, file: object = None) -> None:
        """Write the help to standard output."""
        output.write_output("".join(f"{clean_text(row)}\n" for row in self.format_help().splitlines()))

    def error(self, message: str) -> NoReturn:
        """Raise the ``UsageError`` that ends the command."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def build_top_parser(plugin_commands: Iterable[tuple[str, str]]) -> CommandParser:
    """Return the parser of the command line without a command; its help lists them all."""
    commands = [*HELP.items(), *plugin_commands]
    widest = max(len(name) for name, _ in commands)
    listed = _escape_percent("\n".join(f"  {name:{widest}}  {_capitalize(words)}" for name, words in commands))
    parser = CommandParser(
        prog="gapwatch",
        usage="gapwatch COMMAND [...]",
        description=DESCRIPTION,
        epilog=f"commands:\n{listed}\n\nRun 'gapwatch COMMAND --help' for details.\n{CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="Show the version and exit")
    return parser


def build_command_parser(module: BuiltInCommand) -> CommandParser:
    """Return the parser of one of gapwatch's own commands."""
    words = f"{_capitalize(HELP[module.NAME])}."
    parser = CommandParser(prog=f"gapwatch {module.NAME}", description=words, allow_abbrev=False)
    module.add_arguments(parser)
    return parser


def build_plugin_parser(command: Command) -> CommandParser:
    """Return the parser of a plugin's command; an option of its own hides ours of the same name."""
    words = _escape_percent(f"{_capitalize(command.help)} (plugin {command.plugin}).")
    parser = CommandParser(
        prog=f"gapwatch {command.name}", description=words, conflict_handler="resolve", allow_abbrev=False
    )
    output.add_output_arguments(parser, report_output.FORMS)
    for argument in command.arguments:
        if not argument.remainder:
            _add_plugin_argument(parser, argument)
    rest = _find_remainder(command)
    if rest is not None:
        shown = f"-- {rest.name.upper()} ..."
        parser.usage = _escape_percent(parser.format_usage().removeprefix("usage: ").rstrip() + f" {shown}").replace(
            "%", "%%"
        )
        parser.epilog = _escape_percent(f"{shown}: {_capitalize(rest.help)}")
    return parser


def parse_plugin_arguments(command: Command, arguments: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of a plugin's command; a remainder is what stands behind the first ``--``."""
    parser = build_plugin_parser(command)
    rest = _find_remainder(command)
    if rest is None:
        return parser.parse_args(arguments)
    at = arguments.index("--") if "--" in arguments else len(arguments)
    args = parser.parse_args(arguments[:at])
    behind = list(arguments[at + 1 :])
    if rest.required and not behind:
        parser.error(f"the following argument is required: -- {rest.name.upper()}")
    setattr(args, rest.name.replace("-", "_"), behind)
    return args


def _find_remainder(command: Command) -> Argument | None:
    return next((argument for argument in command.arguments if argument.remainder), None)


def _capitalize(words: str) -> str:
    """Return words in sentence case: only the first letter changes."""
    return words[:1].upper() + words[1:]


def _escape_percent(words: str) -> str:
    """Return words in which argparse finds nothing to fill in."""
    return words.replace("%(", "% (")


def _add_plugin_argument(parser: CommandParser, argument: Argument) -> None:
    words = _capitalize(argument.help).replace("%", "%%")
    bare = argument.name.removeprefix("--")
    name = argument.name if argument.is_option else bare.replace("-", "_")
    if argument.is_option and argument.type is bool:
        parser.add_argument(name, action="store_true", default=bool(argument.default), help=words)
        return
    settings: dict[str, Any] = {"help": words, "type": _argument_type(argument), "default": argument.default}
    if argument.choices:
        settings["choices"] = argument.choices
    else:
        by_type = _METAVARS.get(argument.type) if argument.is_option else None
        settings["metavar"] = argument.metavar or by_type or bare.upper().replace("-", "_")
    if argument.is_option:
        several = {"nargs": "+", "action": "extend"} if argument.several else {"nargs": None}
        settings |= {"required": argument.required} | several
    else:
        settings["nargs"] = _positional_nargs(argument)
    parser.add_argument(name, **settings)


def _positional_nargs(argument: Argument) -> str | None:
    """Return argparse's ``nargs`` of a positional: it may be left out only if it has a default and is not required."""
    optional = argument.default is not None and not argument.required
    if argument.several:
        return "*" if optional else "+"
    return "?" if optional else None


def _argument_type(argument: Argument) -> Callable[[str], object]:
    return _parse_bool if argument.type is bool else argument.type


def _parse_bool(text: str) -> bool:
    if text.lower() not in ("yes", "no", "true", "false"):
        raise argparse.ArgumentTypeError(f"expected yes or no, found {text!r}")
    return text.lower() in ("yes", "true")
