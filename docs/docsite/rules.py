"""A page for each rule, and a list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.cli import rule_pages
from advisor.output.numbers import format_percentage
from advisor.output.wording import EFFORTS, describe_how
from docsite import markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from advisor.advice.rules import RuleBook
    from advisor.advice.rules.records import Action
    from advisor.model.recommendations import HowTo

_OPERATORS = {">=": "is at least", ">": "is more than", "<=": "is at most", "<": "is less than", "!=": "is not"}


def pages(book: RuleBook) -> dict[str, str]:
    """Return the pages by their paths below ``docs/``."""
    actions = sorted((*book.actions, *book.off), key=lambda action: action.step)
    return {"rules/index.md": _index(book, actions)} | {
        f"rules/{action.id}.md": markdown.aside(_page(action, book)) for action in actions
    }


def asking_for(book: RuleBook, fact: str) -> tuple[Action, ...]:
    """Return the actions whose conditions name a fact."""
    return tuple(
        action
        for action in (*book.actions, *book.off)
        if fact in _names(rule_pages.build_condition_document(action.when))
    )


def words(when: dict[str, Any]) -> Iterator[str]:
    """Yield a condition as the lines of a list, in words."""
    groups = {"all": "all of these:", "any": "at least one of these:", "not": "not this:"}
    for depth, kind, name, compared in rule_pages.iterate_condition_lines(when):
        said = groups.get(kind) or f"{'gap ' if kind == 'gap' else ''}`{name}` {_compared(compared)}"
        yield f"{'  ' * depth}* {said}"


def _names(when: dict[str, Any]) -> set[str]:
    return {name for _, kind, name, _ in rule_pages.iterate_condition_lines(when) if kind == "fact"}


def _compared(text: str) -> str:
    operator = next((sign for sign in _OPERATORS if text.startswith(sign)), "")
    return f"{_OPERATORS.get(operator, 'is')} {text.removeprefix(operator).removeprefix('==').strip()}"


def _index(book: RuleBook, actions: list[Action]) -> str:
    steps = []
    for step in book.steps:
        rows = [
            (markdown.link(action.id, f"{action.id}.md"), markdown.plain(action.title), _gaps(action.targets))
            for action in actions
            if action.step == step.id
        ]
        steps.append(f"## Step {step.id}: {step.name}\n\n{markdown.table(('rule', 'action', 'gaps'), rows)}")
    introduction = (
        "What can be advised, in the order of the tuning steps. How rules are written, and how advice is ranked:\n"
        "[rules](../rules.md).\n"
    )
    return markdown.page("All rules", introduction, *steps)


def _page(action: Action, book: RuleBook) -> str:
    condition = "\n".join(words(rule_pages.build_condition_document(action.when)))
    rows = [(name, text) for name, text in _facts(action, book) if text]
    return markdown.page(
        f"{action.id}: {markdown.plain(action.title)}",
        markdown.table(("", ""), rows),
        f"## When\n\nThe rule fires where this holds:\n\n{condition}\n",
        f"## Why\n\n{markdown.plain(action.why)}\n",
        "## How\n",
        *(part for how in action.instructions for part in _instruction(how)),
        "## Sources\n\n" + "".join(f"* {markdown.plain(source)}\n" for source in action.sources),
        "## Examples\n\nThe rule is tried on these runs (`gapwatch rules test`).\n",
        _examples(action),
    )


def _facts(action: Action, book: RuleBook) -> Iterator[tuple[str, str]]:
    step = next(step.name for step in book.steps if step.id == action.step)
    yield "step", f"{int(action.step)}, {step}"
    yield "issue", _issues([action.issue], book)
    yield "target gaps", _gaps(action.targets)
    yield "affected gaps", _gaps(action.affects)
    yield "also improves", _issues(action.helps, book)
    yield "may worsen", _issues(action.hurts, book)
    yield "may improve or worsen", _issues(action.other, book)
    yield "applies to", ", ".join(action.applies_to)
    yield "effort", f"{action.effort} of 5, {EFFORTS[action.effort]}"
    yield "typical gain", f"{format_percentage(action.typical_fraction)} of the ceiling"
    yield "simulated as", ", ".join(markdown.code(f"{name}: {value}") for name, value in action.change.items())
    yield "not together with", ", ".join(action.conflicts)
    yield "source file", markdown.code(action.place)


def _issues(ids: Iterable[str], book: RuleBook) -> str:
    names = {issue.id: issue.name for issue in book.issues}
    return "; ".join(f"{one} {markdown.plain(names[one])}" for one in ids)


def _gaps(names: Iterable[str]) -> str:
    return ", ".join(map(markdown.code, names))


def _instruction(how: HowTo) -> Iterator[str]:
    yield f"### {describe_how(how) or 'Anywhere'}\n\n{markdown.plain(how.text)}\n"
    language = {"cxx": "c++"}.get(how.language or "", how.language or "")
    for title, text in (("Before", how.before), ("After", how.after)):
        if text:
            yield f"{title}:\n\n{markdown.block(text, language)}"


def _examples(action: Action) -> str:
    rows = [
        (
            markdown.code(example.case),
            ", ".join(markdown.code(f"{name} = {text}") for name, text in example.override.items()),
            example.expect,
        )
        for example in action.examples
    ]
    return markdown.table(("run", "with", "the rule"), rows)
