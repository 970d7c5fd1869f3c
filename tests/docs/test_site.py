"""The site: everything has its page, all links and anchors lead somewhere, and what is shown as a command is one."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from advisor.advice.facts import VOCABULARY
from advisor.advice.rules import load_default
from advisor.cli import parsers
from advisor.cli.commands import COMMANDS
from advisor.cli.rule_pages import build_condition_document
from advisor.extension import host as hosts
from docsite import building, hooks, plugins, rules, tree

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

HOST = hosts.load_plugins(blocked=[])
FACTS = (*VOCABULARY, *HOST.collect_facts())
BOOK = load_default(HOST.rule_files(), HOST.collect_facts())
BROUGHT = {command.name: command for command in HOST.collect_commands(tuple(COMMANDS))}
#: Commands of plugins that the pages show as examples.
SAMPLE = ("core-hours", "regions")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@cache
def pages() -> dict[str, str]:
    return tree.pages()


# Everything has its page


def test_every_rule_has_its_page() -> None:
    for action in (*BOOK.actions, *BOOK.off):
        page = pages()[f"docs/rules/{action.id}.md"]
        assert f"# {action.id}: " in page
        for part in ("## When", "## Why", "## How", "## Sources", "## Examples", action.place):
            assert part in page, f"{action.id} {part}"
        for how in action.instructions:
            assert all(code.rstrip() in page for code in (how.before, how.after) if code), action.id


def test_a_condition_is_told_in_words() -> None:
    action = BOOK.find_action("A-28")
    assert action is not None
    told = "\n".join(rules.words(build_condition_document(action.when)))
    assert told.startswith("* all of these:\n  * gap `L` is at least 1.5 % of the run\n")
    assert "  * `phase.slowest_differs` is false\n" in told
    assert told.endswith(
        "  * at least one of these:\n    * `io.share` is less than 2 %\n    * `io.one_processor` is false"
    )


def test_every_fact_has_its_page_with_the_rules_that_ask_for_it() -> None:
    for fact in FACTS:
        page = pages()[f"docs/facts/{fact.name}.md"]
        asking = rules.asking_for(BOOK, fact.name)
        assert all(f"../rules/{action.id}.md" in page for action in asking), fact.name
    assert {action.id for action in rules.asking_for(BOOK, "phase.slowest_differs")} >= {"A-28"}


def test_every_hook_has_its_page_with_its_callers() -> None:
    for name in hooks.names():
        page = pages()[f"docs/hooks/{name}.md"]
        assert f"def {name}(" in page
        assert hooks.methods(name), name
        assert hooks.callers(name), name
    assert hooks.callers("advisor_expected_gain") == ("advisor/pipeline.py",)


def test_every_command_has_its_page_with_every_option() -> None:
    for name in (*COMMANDS, *BROUGHT):
        page = pages()[f"docs/commands/{name}.md"]
        for leaf in leaves(parser_of(name)):
            assert f" {leaf.prog}\n" in page
            for action in leaf._actions:
                if action.option_strings and action.dest != "help":
                    assert f"`{action.option_strings[0]}" in page, f"{leaf.prog} {action.dest}"


def test_every_reader_and_every_plugin_has_its_page() -> None:
    for plugin in (*plugins.readers(HOST.plugins), *plugins.others(HOST.plugins)):
        page = pages().get(f"docs/{plugins.page_of(plugin)}", "")
        assert f"| plugin | `{plugin.name}` |" in page, plugin.name
        assert page.count("\n") > 15, plugin.name


def test_formats_and_plugins_are_listed() -> None:
    for listing, folder in (("docs/formats.md", "docs/formats"), ("plugins/README.md", "docs/plugins")):
        inside = {path for path in tree.written() if Path(path).parent.as_posix() == folder}
        linked = {resolved(listing, target) for target in tree.links(tree.written()[listing])}
        assert inside <= linked, inside - linked


# Links


def resolved(page: str, target: str) -> str:
    parts: list[str] = []
    for part in (*PurePosixPath(page).parent.parts, *target.split("/")):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as code hosts and MyST make them."""
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("\\", "") for title in titles)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in plain}


def test_links_lead_somewhere() -> None:
    everything = pages()
    missing = []
    for page, text in everything.items():
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", tree.CODE.sub("", text)):
            path = resolved(page, target) if target else page
            if path not in everything and not (tree.ROOT / path).is_file():
                missing.append(f"{page}: {target}")
            elif anchor and anchor not in anchors(everything[path]):
                missing.append(f"{page}: {target}#{anchor}")
    assert missing == []


def test_every_hand_written_page_is_in_the_navigation() -> None:
    entries = set()
    for page, text in pages().items():
        for block in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
            lines = [line.split("<")[-1].rstrip(">") for line in block.splitlines() if line and line[0] != ":"]
            entries |= {f"{resolved(page, line)}.md" for line in lines}
    assert set(tree.written()) - entries == set()


# What is shown as a command


def parser_of(name: str) -> argparse.ArgumentParser:
    return (
        parsers.build_command_parser(COMMANDS[name]) if name in COMMANDS else parsers.build_plugin_parser(BROUGHT[name])
    )


def leaves(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    inner = [choice for action in parser._actions if isinstance(action.choices, dict) for choice in
             action.choices.values()]  # fmt: skip
    return inner or [parser]


def shown(text: str) -> Iterator[str]:
    """Every line that begins with ``gapwatch`` in a code block, fenced or indented."""
    for language, inside in BLOCK.findall(text):
        if language in ("", "text", "sh", "console"):
            prompts = "$ " in inside
            lines = inside.replace("\\\n", " ").splitlines()
            yield from (line.removeprefix("$ ") for line in lines if not prompts or line.startswith("$ "))
    yield from re.findall(r"^    (gapwatch .*)$", BLOCK.sub("", text), re.MULTILINE)


def options(command: str) -> tuple[str, list[str]]:
    """The command's name (with that of the subcommand) and its options, as somebody would type them."""
    words = re.split(r"\s{2,}|\s#", command)[0].split(" -- ")[0]
    try:
        parts = shlex.split(words)[1:]
    except ValueError:
        parts = words.split()[1:]
    return parts[0] if parts else "", [part.strip("[]…") for part in parts if part.lstrip("[").startswith("-")]


@pytest.mark.parametrize("page", sorted(tree.written()))
def test_commands_and_options_on_the_page_exist(page: str) -> None:
    text = tree.written()[page]
    for command in (line for line in shown(text) if line.startswith("gapwatch ")):
        name, given = options(command)
        if name.isupper() or name.startswith("--") or name in SAMPLE:
            continue
        assert name in COMMANDS or name in BROUGHT, command
        known = {option for leaf in leaves(parser_of(name)) for one in leaf._actions for option in one.option_strings}
        assert {option.split("=")[0] for option in given} <= known, command
    for name in re.findall(r"`gapwatch ([a-z]+)\b", BLOCK.sub("", text)):
        assert name in COMMANDS or name in BROUGHT, name


# Sphinx


def source(folder: Path, index: str) -> Path:
    for path, text in (("index.md", index), ("docs/rules/A-28.md", "# A-28: a rule\n"),
                       ("docs/hooks/advisor_read.md", "# advisor_read(path)\n")):  # fmt: skip
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text if path == "index.md" else f"---\norphan: true\n---\n\n{text}", "utf-8")
    return folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_names_lead_to_their_pages_and_nothing_comes_from_the_network(tmp_path: Path) -> None:
    text = "# Home\n\nDo A-28 or A-29, in `advisor_read(path)`.\n\n    A-28 in code\n"
    assert building.build(source(tmp_path / "in", text), tmp_path / "out") == 0
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert len(re.findall(r'<a class="reference internal" href="docs/rules/A-28.html"', page)) == 1
    assert 'href="docs/hooks/advisor_read.html"' in page
    assert "A-29.html" not in page
    assert list(building.from_elsewhere(tmp_path / "out")) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_a_link_that_leads_nowhere_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "# Home\n\n[there](docs/rules/A-28.md#nothing)\n"
    assert building.build(source(tmp_path / "in", text), tmp_path / "out") == 1
    assert "nothing" in capsys.readouterr().err


def test_what_would_be_fetched_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://x.org"><script defer src="//cdn.org/x.js"></script>', "utf-8")
    (tmp_path / "a.css").write_text("@import 'https://fonts.org/a'; p { background: url(data:x) }", "utf-8")
    assert [line.split(":")[0] for line in building.from_elsewhere(tmp_path)] == ["a.html", "a.css"]
