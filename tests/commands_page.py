"""``docs/commands.md``, made from the parsers so that it says what ``--help`` says."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from advisor.cli import parsers
from advisor.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

INTRODUCTION = """\
# Commands

This page is made from the command line's own parsers: `gapwatch COMMAND --help` says the same. Plugins add commands of
their own; `gapwatch --help` lists those too. (`pytest --rewrite-golden` writes this page and the golden screens anew.)

"""
CLOSING = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | fine, also when there is nothing to advise or not enough evidence |
| 1 | a `--fail-on` gate was crossed; the reason is the last line on standard error |
| 2 | bad usage or input, or a result that could not be written; one message on standard error |
| 2 | mistakes found by `rules check`, an example that fails in `rules test`; they are the result, on standard output |
| other | of `run`: the exit status of the program, where that is not 0 (128 + n: it was ended by signal n); this \
outranks 1, and what is said on standard error tells it from 1 to 3 of gapwatch |
| 3 | a mistake in gapwatch itself; `GAPWATCH_DEBUG=1` shows the traceback |

## Text and where it goes

On a terminal the text is as wide as the terminal; below 60 columns tables become lists. In a pipe or a file it is 120
columns wide and has no colours. Names that are too long lose their middle, never what tells them apart; the JSON
document has them in full. Control characters and signs that change the reading direction are shown as escapes such as
`\\x1b`. Where the encoding is ASCII, and in the C locale, everything is written in ASCII,
comments on pull requests aside: they are UTF-8 everywhere. Pages, JSON and SARIF are ASCII in every locale.

The JSON document of `advise` and `demo` follows the schema `advisor/render/gapwatch-advice-1.json` of the package;
that of `explain` is told in [concepts](concepts.md). That of the other commands is `{"schema": "gapwatch/report/1",
"title", "parts"}`, where each part has a `kind`: `text`, `code`, `table`, `bars`, `series` or `heatmap`, and what
[plugins](plugins.md) says of it; a table is `{"kind", "title", "columns": [{"name", "unit"}], "rows"}`.
`rules show` writes the action with the keys of the rule files, and
`machines show` the machine with the keys of the model files, each number as `{"value", "unit", "text", "source"}`.

`rules check` writes each mistake as `file:line:column: what`, the form that editors understand.

## Comments on pull requests

`gapwatch advise --as markdown PATH…` writes a comment of one screen: what changed since the base build (`--base`, by
default the newest other one), the three actions, and the evidence behind a click. Builds are those of the runs that
`gapwatch watch` has seen and of the older runs among the PATHs; only runs on as many ranks are compared. `gapwatch
compare A B --as markdown` writes the same of two builds of the history. The same advice gives the same text. Its first
line, `<!-- gapwatch: PROGRAM -->`, tells a bot which of its comments to replace. Names from the profile stand in code
spans, where no sign in them means anything.

## Pages

`gapwatch advise --as html` writes one page that holds everything: no script, no link to outside, and a policy that
forbids both (`pip install 'gapwatch[html]'` brings what draws it). A click (or Enter) on a line of the waterfall shows
the regions, processors, iterations and causes of that gap. Below the advice with its code before and after stand the
pictures, each with its numbers as a table: run time and gaps over builds, of the runs that `gapwatch watch` has seen
and of the older PATHs; the work of ranks by phase; the imbalance of iterations; and what plugins add to their findings
(curves of `scale`, couplings of `couple`). A page stays below 2 MB: a picture that has no room is a table. It follows
the light or dark theme of the reader, and is printed with everything unfolded. `--as html` of `history`, `compare` and
the commands of plugins is such a page too.

`gapwatch report DIR…` writes a page for each run below the directories, and `index.html`, which leads to them: by
program the gaps over builds, and of each run what changed since the build before. Without a DIR it takes the runs of
the history; that keeps no times of single ranks, so those pages have no pictures of ranks and iterations.

## Gates

`--fail-on "L > 3 %"` compares a gap with a share of the run or, with a unit of time, with seconds: `W >= 200 ms`.
Comparisons are `>`, `>=`, `<`, `<=`. Merged gaps are named as they are shown: `M'+D+S'+W+X > 10 %`. A gate on a gap
that the run can't show is bad input (2), not a pass.

`--fail-on new` is crossed by an item of advice that no run of the base build shows: its action at its place, told apart
by the fingerprint, which noise does not change. `--fail-on regression` is crossed by a gap (or the lowest bound, or the
run time) that grew since the base build by more than repeated runs of one build differ, and by at least 1 % of the run:
Student's t with a chance of 0.1 % that any gap of builds that are alike is called so ([builds](daemon.md)). Repeats of
any build tell the noise; where nothing was run twice, nobody knows it. A gate on changes that can't be judged (no
earlier build, no advice on it, no repeats) says so on standard error and is not crossed, so that the first build
passes. The base build is that of `--base`, A of `compare`, or the newest other build; `gapwatch.json` beside a profile,
`GAPWATCH_BUILD` or `gapwatch stamp` name builds. So in a pipeline, with the profile of the main branch kept:

    gapwatch advise main/ branch/ --fail-on new --fail-on "L > 10 %"
    gapwatch watch profiles --once --state history --fail-on regression
    gapwatch compare 4f2c1e 8ab03d --state history --fail-on regression --as markdown

## Environment

| variable | effect |
|---|---|
| `NO_COLOR` | not empty: no colours |
| `FORCE_COLOR` | `0`, `false`, `no` or empty: no colours; else colours also in a pipe |
| `TERM=dumb` | no colours, no progress line |
| `COLUMNS` | the width of the terminal |
| `GAPWATCH_DEBUG` | not empty: tracebacks with every error |
| `GAPWATCH_PLUGINS` | directories of plugin files, separated by `:` |
| `GAPWATCH_BUILD` | the build of a profile where neither it nor its `gapwatch.json` names one |
| `XDG_CONFIG_HOME` | where `gapwatch/plugins`, `gapwatch/rules`, `gapwatch/machine_models` are (else `~/.config`) |
| `XDG_CACHE_HOME` | where the list of the plugins' commands is kept (else `~/.cache`) |
"""


def page() -> str:
    """The whole page."""
    sections = [section for module in COMMANDS.values() for section in _sections(parsers.of_command(module))]
    return INTRODUCTION + "\n".join(sections) + "\n" + CLOSING


def _sections(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A section for each command that does something."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield _section(parser)
    for action in inner:
        for one in action.choices.values():
            yield _section(one)


def _section(parser: argparse.ArgumentParser) -> str:
    actions = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    usage = " ".join([parser.prog, *map(_usage, actions)])
    rows = "".join(f"| `{_cell(_name(action))}` | {_cell(_meaning(action))} |\n" for action in actions)
    table = f"\n| argument | meaning |\n|---|---|\n{rows}" if rows else ""
    return f"## {parser.prog}\n\n{parser.description}\n\n    {usage}\n{table}"


def _value(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return "|".join(map(str, action.choices)) if action.choices else metavar


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return _value(action)
    return action.option_strings[0] + ("" if action.nargs == 0 else f" {_value(action)}")


def _usage(action: argparse.Action) -> str:
    if action.option_strings:
        return f"[{_name(action)}]" + ("…" if isinstance(action.default, list) else "")
    several = {"...": f"-- {_value(action)}…", "+": f"{_value(action)}…", "*": f"[{_value(action)}…]"}
    return several.get(str(action.nargs), _value(action))


def _meaning(action: argparse.Action) -> str:
    return str(action.help).replace("%%", "%")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
