"""Write the manual page from the parsers of the commands.

python packaging/man_page.py > packaging/gapwatch.1
"""

from __future__ import annotations

from advisor import __version__
from advisor.cli import parsers
from advisor.cli.completion import CommandEntry, CommandOption, list_command_entries


def render_man_page() -> str:
    """Return the page as roff."""
    lines = [
        f'.TH GAPWATCH 1 "" "gapwatch {__version__}" "User Commands"',
        ".SH NAME",
        "gapwatch \\- optimization advisor for parallel programs",
        ".SH SYNOPSIS",
        ".B gapwatch",
        ".I COMMAND",
        "[\\fIargument\\fR ...]",
        ".SH DESCRIPTION",
        _escape(" ".join(parsers.DESCRIPTION.split())),
        ".SH COMMANDS",
    ]
    for entry in list_command_entries():
        lines += _render_entry(entry)
    lines += [".SH EXIT STATUS", _escape(parsers.CODES.removeprefix("Exit codes: "))]
    lines += [
        ".SH ENVIRONMENT",
        *_render_term("GAPWATCH_STATE", "History: a directory, or the postgresql:// URL of a server"),
        *_render_term("GAPWATCH_BUILD", "Build of new runs"),
        *_render_term("GAPWATCH_PLUGINS", "Directories of plugin files, separated by colons"),
        *_render_term("NO_COLOR", "No colors"),
        ".SH FILES",
        *_render_term("~/.config/gapwatch/gapwatch.toml", "Configuration of the daemon (gapwatch config show)"),
    ]
    return "\n".join(lines) + "\n"


def _render_entry(entry: CommandEntry) -> list[str]:
    lines = [f".SS gapwatch {_escape(entry.name)}", _escape(entry.help)]
    for option in entry.options:
        lines += _render_term(_describe_option(option), option.help)
    return lines


def _describe_option(option: CommandOption) -> str:
    names = ", ".join(option.names)
    return " ".join(part for part in (names, option.value) if part)


def _render_term(term: str, words: str) -> list[str]:
    return [".TP", f".B {_escape(term)}", _escape(words)]


def _escape(text: str) -> str:
    shown = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{shown}" if shown.startswith((".", "'")) else shown


if __name__ == "__main__":
    print(render_man_page(), end="")
