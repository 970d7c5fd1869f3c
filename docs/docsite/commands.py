"""A page for each command, made from the parsers so that it says what ``--help`` says, and the table of all."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from advisor.cli import parsers
from advisor.cli.commands import COMMANDS
from docsite import markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from advisor.extension.commands import Command

_WIDTH = 76
_TABLE = re.compile(r"(<!-- commands: .*? -->\n).*?(<!-- end of commands -->\n)", re.DOTALL)


def with_table(text: str) -> str:
    """Return the page ``docs/commands.md`` with a table of gapwatch's own commands as they are now."""
    leaves = [leaf for module in COMMANDS.values() for leaf in _leaves(parsers.build_command_parser(module))]
    rows = [(f"`{leaf.prog}`", markdown.plain(str(leaf.description))) for leaf in leaves]
    return _TABLE.sub(lambda found: found[1] + markdown.table(("command", "what it does"), rows) + found[2], text)


def names(plugin_commands: Iterable[Command]) -> tuple[str, ...]:
    """Return the names of all commands, gapwatch's own first."""
    return (*COMMANDS, *(command.name for command in plugin_commands))


def pages(plugin_commands: Iterable[Command], written: Mapping[str, str]) -> dict[str, str]:
    """Return the pages by their paths below ``docs/``; ``written`` are the hand-written ones, which are linked to."""
    own = {name: _page(parsers.build_command_parser(module)) for name, module in COMMANDS.items()}
    theirs = {command.name: _page(parsers.build_plugin_parser(command), command) for command in plugin_commands}
    found = own | theirs
    index = markdown.page(
        "All commands",
        "Exit codes, gates, environment and what all commands share: [commands](../commands.md).\n",
        markdown.table(("command", "what it does"), ((f"`gapwatch {name}`", _first(found[name])) for name in found)),
    )
    told = {name: _told(name, written) for name in found}
    return {"commands/index.md": index} | {
        f"commands/{name}.md": markdown.aside(found[name] + told[name]) for name in found
    }


def _first(page: str) -> str:
    return page.split("\n\n")[1].strip()


def _told(name: str, written: Mapping[str, str]) -> str:
    """Return links to the pages that speak of a command, those that do so most often first."""
    called = re.compile(rf"\bgapwatch {re.escape(name)}(?![\w-])")
    counts = {path: len(called.findall(text)) for path, text in written.items() if path != "commands.md"}
    pages = sorted((path for path in counts if counts[path]), key=lambda path: (-counts[path], path))[:6]
    links = ", ".join(markdown.link(_title(written[path]), f"../{path}") for path in pages)
    return f"\n## Pages that speak of it\n\n{links}\n" if links else ""


def _title(page: str) -> str:
    return page.split("\n", 1)[0].removeprefix("# ")


def _leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers that do something."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield parser
    for action in inner:
        yield from action.choices.values()


def _page(parser: argparse.ArgumentParser, command: Command | None = None) -> str:
    leaves = list(_leaves(parser))
    if leaves == [parser]:
        return markdown.page(parser.prog, *_said(parser, command))
    sections = ["\n".join((f"## {leaf.prog}\n", *_said(leaf, None))) for leaf in leaves]
    return markdown.page(parser.prog, f"{markdown.plain(str(parser.description))}\n", *sections)


def _said(parser: argparse.ArgumentParser, command: Command | None) -> Iterator[str]:
    actions = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    rest = [argument for argument in command.arguments if argument.remainder] if command else []
    usage = [parser.prog, *map(_usage, actions), *(f"-- {one.name.upper()}…" for one in rest)]
    rows = [(markdown.code(_name(action)), markdown.plain(_meaning(action))) for action in actions]
    rows += [(markdown.code(one.name.upper()), markdown.plain(one.help)) for one in rest]
    yield f"{markdown.plain(str(parser.description))}\n"
    yield markdown.block(_lines(usage), "text")
    yield markdown.table(("argument", "meaning"), rows)


def _lines(words: list[str]) -> str:
    """Return the words on lines that fit beside the navigation; what belongs together stays on one line."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > _WIDTH:
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def _value(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return "|".join(map(str, action.choices)) if action.choices else metavar


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return _value(action)
    return action.option_strings[0] + ("" if action.nargs == 0 else f" {_value(action)}")


def _usage(action: argparse.Action) -> str:
    if action.option_strings:
        again = "…" if isinstance(action.default, list) or action.nargs == "+" else ""
        return (_name(action) if action.required else f"[{_name(action)}]") + again
    several = {"...": f"-- {_value(action)}…", "+": f"{_value(action)}…", "*": f"[{_value(action)}…]"}
    return several.get(str(action.nargs), f"[{_value(action)}]" if action.nargs == "?" else _value(action))


def _meaning(action: argparse.Action) -> str:
    return str(action.help).replace("%%", "%")
