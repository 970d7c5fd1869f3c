"""A page for each fact: its formula, what it needs, the rules that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsite import markdown, rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.advice.facts import Fact
    from advisor.advice.rules import RuleBook

_SCOPES = {"run": "the run", "phase": "a phase, or small phases of a kind"}


def pages(facts: Sequence[Fact], origins: Mapping[str, str], book: RuleBook) -> dict[str, str]:
    """Return the pages by their paths below ``docs/``; ``origins`` names the plugins of facts that are not built in."""
    rows = [
        (markdown.link(markdown.code(fact.name), f"{fact.name}.md"), fact.unit, markdown.plain(fact.formula))
        for fact in facts
    ]
    index = markdown.page(
        "All facts",
        "What conditions of rules may ask about. What the words mean: [facts](../facts.md).\n",
        markdown.table(("fact", "unit", "formula"), rows),
    )
    return {"facts/index.md": index} | {
        f"facts/{fact.name}.md": markdown.aside(_page(fact, origins, book)) for fact in facts
    }


def _page(fact: Fact, origins: Mapping[str, str], book: RuleBook) -> str:
    said = [
        ("unit", fact.unit),
        ("of", _SCOPES[fact.scope]),
        ("formula", markdown.plain(fact.formula)),
        ("needs", ", ".join(map(markdown.code, fact.needs))),
        ("recorded by", markdown.code(fact.command) if fact.command else ""),
        ("plugin", origins.get(fact.name, "")),
    ]
    asking = [
        (markdown.link(action.id, f"../rules/{action.id}.md"), markdown.plain(action.title))
        for action in rules.asking_for(book, fact.name)
    ]
    return markdown.page(
        markdown.code(fact.name),
        markdown.table(("", ""), [row for row in said if row[1]]),
        "## Rules that ask for it\n",
        markdown.table(("rule", "action"), asking) or "None of those that come along.\n",
    )
