"""``gapwatch completion``: what a shell runs to complete commands, options and their values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from advisor.cli import output, parsers
from advisor.cli.commands import COMMANDS

#: Actions of argparse whose option takes no value.
_FLAGS: Final = (argparse._StoreTrueAction, argparse._StoreFalseAction, argparse._HelpAction, argparse._CountAction)


@dataclass(frozen=True, slots=True)
class CommandOption:
    """An option or a positional argument (no ``names``): its value's name ('' for none), its choices, its help."""

    names: tuple[str, ...]
    value: str
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command or subcommand: the words that call it, one line on what it does, its arguments."""

    words: tuple[str, ...]
    help: str
    options: tuple[CommandOption, ...]

    @property
    def name(self) -> str:
        """The words as they are typed."""
        return " ".join(self.words)


NAME = "completion"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument("shell", choices=tuple(_WRITERS), help="Shell that the script is for")


def run_command(args: argparse.Namespace) -> int:
    """Print the script; returns the exit code."""
    from advisor.cli.plugin_commands import list_plugin_commands

    output.write_output(_WRITERS[args.shell](list_command_entries(list_plugin_commands())))
    return 0


def write_bash_script(entries: Sequence[CommandEntry]) -> str:
    """Return the script for bash."""
    inner = _group_subcommands(entries)
    cases = []
    for entry in entries:
        for option in (option for option in entry.options if option.names and option.choices):
            pattern = " | ".join(f'"{entry.name} {name}"' for name in option.names)
            cases.append(f"    {pattern}) words='{' '.join(option.choices)}' ;;")
    options = [f"    '{entry.name}') words='{' '.join(_option_names(entry))}' ;;" for entry in entries]
    commands = [f"    '{name}') words='{' '.join(names)}' ;;" for name, names in inner.items()]
    return "\n".join(
        (
            "# bash: gapwatch completion bash > ~/.local/share/bash-completion/completions/gapwatch",
            "_gapwatch() {",
            "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
            "  local path=${COMP_WORDS[1]} words=''",
            f'  case "$path" in {" | ".join(inner) or "-"}) ((COMP_CWORD > 2)) && path+=" ${{COMP_WORDS[2]}}" ;; esac',
            "  if ((COMP_CWORD == 1)); then",
            f"    words='{' '.join(_top_names(entries))} --help --version'",
            '  elif [[ $current == -* ]]; then case "$path" in',
            *options,
            "  esac; else",
            '    case "$path $before" in',
            *cases,
            "    esac",
            '    [[ -z $words ]] && ((COMP_CWORD == 2)) && case "$path" in',
            *commands,
            "    esac",
            "  fi",
            '  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")',
            '  [[ -z $words ]] && mapfile -t COMPREPLY < <(compgen -f -- "$current")',
            "}",
            "complete -o filenames -F _gapwatch gapwatch",
            "",
        )
    )


def write_zsh_script(entries: Sequence[CommandEntry]) -> str:
    """Return the script for zsh."""
    inner = _group_subcommands(entries)
    listed = [
        f"    {_quote(f'{_escape_colon(entry.name)}:{entry.help}')}" for entry in entries if len(entry.words) == 1
    ]
    cases = []
    for entry in entries:
        specs = [spec for option in entry.options if option.names for spec in _zsh_specs(option)]
        rest = [f"'1:command:({' '.join(inner[entry.name])})'"] if entry.name in inner else ["'*:file:_files'"]
        cases.append(f"    {_quote(entry.name)}) _arguments {' '.join((*specs, *rest))} ;;")
    return "\n".join(
        (
            "#compdef gapwatch",
            "# zsh: gapwatch completion zsh > DIR-OF-FPATH/_gapwatch",
            "_gapwatch() {",
            "  local -a commands=(",
            *listed,
            "  )",
            "  if (( CURRENT == 2 )); then _describe command commands; return; fi",
            "  local path_words=$words[2]",
            f'  case $words[2] in {"|".join(inner) or "-"}) if (( CURRENT > 3 )); then path_words+=" $words[3]"; '
            "shift words; (( CURRENT-- )); fi ;; esac",
            "  shift words; (( CURRENT-- ))",
            "  case $path_words in",
            *cases,
            "    *) _files ;;",
            "  esac",
            "}",
            'if [[ $funcstack[1] == _gapwatch ]]; then _gapwatch "$@"; else compdef _gapwatch gapwatch; fi',
            "",
        )
    )


def write_fish_script(entries: Sequence[CommandEntry]) -> str:
    """Return the script for fish."""
    lines = ["# fish: gapwatch completion fish > ~/.config/fish/completions/gapwatch.fish"]
    inner = _group_subcommands(entries)
    for entry in entries:
        head, *below = entry.words
        if below:
            names = " ".join(inner[head])
            lines.append(
                f"complete -c gapwatch -f -n '__fish_seen_subcommand_from {head}; and not __fish_seen_subcommand_from "
                f"{names}' -a {below[0]} -d {_quote_fish(entry.help)}"
            )
        else:
            lines.append(f"complete -c gapwatch -f -n __fish_use_subcommand -a {head} -d {_quote_fish(entry.help)}")
        condition = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in entry.words)
        for option in (option for option in entry.options if option.names):
            flags = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = (
                f" -x -a {_quote_fish(' '.join(option.choices))}" if option.choices else " -r" if option.value else ""
            )
            lines.append(f"complete -c gapwatch -n '{condition}' {flags}{value} -d {_quote_fish(option.help)}")
    return "\n".join((*lines, ""))


def _top_names(entries: Sequence[CommandEntry]) -> list[str]:
    return [entry.name for entry in entries if len(entry.words) == 1]


def _group_subcommands(entries: Sequence[CommandEntry]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in entries:
        if len(entry.words) == 2:
            found.setdefault(entry.words[0], []).append(entry.words[1])
    return found


def _option_names(entry: CommandEntry) -> list[str]:
    return [name for option in entry.options for name in option.names]


def _zsh_specs(option: CommandOption) -> list[str]:
    words = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    value = ""
    if option.choices:
        value = f":value:({' '.join(option.choices)})"
    elif option.value:
        value = f":{re.sub(r'[^A-Za-z0-9|_-]', ' ', option.value)}:_files"
    return [_quote(f"{name}[{words}]{value}") for name in option.names]


def _escape_colon(text: str) -> str:
    return text.replace(":", "\\:")


def _quote(text: str) -> str:
    """Return a text between single quotes, for bash and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _quote_fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_WRITERS: Final[dict[str, Callable[[Sequence[CommandEntry]], str]]] = {
    "bash": write_bash_script, "zsh": write_zsh_script, "fish": write_fish_script,
}  # fmt: skip


def list_command_entries(plugin_commands: Iterable[tuple[str, str]] = ()) -> tuple[CommandEntry, ...]:
    """Return gapwatch's commands with their options, subcommands after their command, then those of plugins."""
    found = [entry for name, module in COMMANDS.items()
             for entry in _list_entries((name,), parsers.build_command_parser(module))]  # fmt: skip
    return (*found, *(CommandEntry((name,), words, ()) for name, words in plugin_commands))


def _list_entries(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[CommandEntry]:
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    options = tuple(_build_option(action) for action in parser._actions if action not in inner)
    yield CommandEntry(words, " ".join((parser.description or "").split()), options)
    for action in inner:
        for name, one in action.choices.items():
            yield from _list_entries((*words, name), one)


def _build_option(action: argparse.Action) -> CommandOption:
    choices = tuple(map(str, action.choices)) if isinstance(action.choices, Collection) else ()
    takes_value = not isinstance(action, _FLAGS) and action.nargs != 0
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if choices and action.option_strings:
        value = "|".join(choices)
    words = " ".join((action.help or "").replace("%%", "%").split())
    return CommandOption(tuple(action.option_strings), value if takes_value else "", choices, words)
