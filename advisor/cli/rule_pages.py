"""Rules as a user looks at them: the list of all, and everything about one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from advisor.advice.rules.conditions import AllOf, AnyOf, FactIs, GapShare, Not, When
from advisor.model.reports import Column, Report, Table, Text
from advisor.output import numbers
from advisor.output.wording import EFFORTS, describe_how

if TYPE_CHECKING:
    from advisor.advice.rules import RuleBook
    from advisor.advice.rules.cases import ExampleResult
    from advisor.advice.rules.records import Action
    from advisor.model.errors import Problem
    from advisor.model.recommendations import HowTo


def build_rule_list(book: RuleBook) -> Report:
    """Return a table of the actions, in the order of the steps, and one of the steps."""
    off = {action.id for action in book.off}
    actions = sorted((*book.actions, *book.off), key=lambda action: action.step)
    rows = tuple(
        (action.id, action.title, int(action.step), action.issue, ", ".join(action.targets), action.effort,
         "off" if action.id in off else "on")
        for action in actions
    )  # fmt: skip
    steps = tuple((step.id, step.name, ", ".join(step.gaps)) for step in book.steps)
    return Report(
        "",
        (
            Table("Actions", tuple(map(Column, ("id", "action", "step", "issue", "gaps", "effort", "state"))), rows),
            Table("Steps", tuple(map(Column, ("step", "name", "gaps"))), steps),
        ),
    )


def build_action_document(action: Action, book: RuleBook) -> dict[str, Any]:
    """Return everything about an action as plain data, with the keys of the rule files."""
    return {
        "id": action.id, "title": action.title, "step": int(action.step), "issue": action.issue,
        "targets": list(action.targets), "affects": list(action.affects), "helps": list(action.helps),
        "hurts": list(action.hurts), "other": list(action.other), "when": build_condition_document(action.when),
        "applies_to": list(action.applies_to), "effort": action.effort, "typical_fraction": action.typical_fraction,
        "change": dict(action.change), "conflicts": list(action.conflicts), "enabled": action not in book.off,
        "why": _normalize_spaces(action.why),
        "how": [
            {"model": how.model, "text": _normalize_spaces(how.text), "language": how.language, "before": how.before,
             "after": how.after}
            for how in action.instructions
        ],
        "sources": list(action.sources),
        "examples": [
            {"case": example.case, "override": {**example.override}, "expect": example.expect}
            for example in action.examples
        ],
        "place": action.place,
    }  # fmt: skip


def build_condition_document(when: When) -> dict[str, Any]:
    """Return a condition as it is written in a rule file."""
    if isinstance(when, AllOf):
        return {"all": [build_condition_document(part) for part in when.all]}
    if isinstance(when, AnyOf):
        return {"any": [build_condition_document(part) for part in when.any]}
    if isinstance(when, Not):
        return {"not": build_condition_document(when.not_)}
    if isinstance(when, FactIs):
        return {"fact": str(when.fact), "is": when.is_}
    if isinstance(when, GapShare):
        return {"gap": str(when.gap), "share": when.share}
    return {"gap": str(when.gap), "seconds": when.seconds}


def build_action_report(action: Action, book: RuleBook) -> Report:
    """Return everything about an action: what it is for, when it fires, why, how, and where that comes from."""
    examples = tuple(
        (example.case, ", ".join(f"{name} = {text}" for name, text in example.override.items()), example.expect)
        for example in action.examples
    )
    return Report(
        f"{action.id}: {action.title}",
        (
            Table(
                "",
                (Column(""), Column("")),
                tuple((name, text) for name, text in _iterate_properties(action, book) if text),
            ),
            Text("\n".join(["Fires when", *_render_condition(action.when)])),
            Text(f"Why: {_normalize_spaces(action.why)}"),
            *(Text(_render_instruction(how)) for how in action.instructions),
            Table("Sources", (Column("source"),), tuple((source,) for source in action.sources)),
            Table("Examples", tuple(map(Column, ("case", "override", "expected"))), examples),
        ),
    )


def build_problem_report(problems: Sequence[Problem]) -> Report:
    """Return a table of mistakes, or the sentence that there are none."""
    rows = tuple((problem.path, problem.line, problem.column, problem.message) for problem in problems)
    columns = tuple(map(Column, ("file", "line", "column", "mistake")))
    return Report("", (Table("", columns, rows) if rows else Text("No errors."),))


def build_test_report(results: Sequence[ExampleResult]) -> Report:
    """Return the examples that failed, and how many there are."""
    failed = [result for result in results if not result.has_passed]
    rows = tuple(
        (
            result.action.id,
            result.example.case,
            result.example.expect,
            result.outcome,
            f"{result.example.mark.file}:{result.example.mark.line}",
        )
        for result in failed
    )
    columns = tuple(map(Column, ("action", "case", "expected", "actual", "rule file")))
    summary = Text(
        f"{len(results)} examples of {len({result.action.id for result in results})} actions, {len(failed)} failed."
    )
    return Report("", (Table("Failed", columns, rows), summary) if rows else (summary,))


def _iterate_properties(action: Action, book: RuleBook) -> Iterator[tuple[str, str]]:
    issues = {issue.id: issue.name for issue in book.issues}
    step = next((step.name for step in book.steps if step.id == action.step), "")
    yield "step", f"{int(action.step)} {step}"
    yield "issue", _join_names([action.issue], issues)
    yield "target gaps", ", ".join(action.targets)
    yield "affected gaps", ", ".join(action.affects)
    yield "also improves", _join_names(action.helps, issues)
    yield "may worsen", _join_names(action.hurts, issues)
    yield "may change", _join_names(action.other, issues)
    yield "applies to", ", ".join(action.applies_to)
    yield "effort", f"{action.effort} of 5, {EFFORTS[action.effort]}"
    yield "typical gain", f"{numbers.format_percentage(action.typical_fraction)} of the ceiling"
    yield "change", ", ".join(f"{name}: {value}" for name, value in action.change.items())
    yield "not with", ", ".join(action.conflicts)
    yield "state", "off" if action in book.off else ""
    yield "source file", action.place


def _join_names(ids: Iterable[str], names: dict[str, str]) -> str:
    return "; ".join(f"{one} {names.get(one, '')}".rstrip() for one in ids)


def iterate_condition_lines(written: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, str, str, str]]:
    """Yield the lines of a condition: their depth, then ``all``, ``any`` or ``not``, or what is compared with what.

    That is the kind (``fact`` or ``gap``), the name, and the comparison as it is written.
    """
    for word in ("all", "any", "not"):
        if word in written:
            yield depth, word, "", ""
            for part in written[word] if isinstance(written[word], list) else [written[word]]:
                yield from iterate_condition_lines(part, depth + 1)
            return
    if "fact" in written:
        yield depth, "fact", written["fact"], str(written["is"])
    else:
        share = written.get("share")
        yield depth, "gap", written["gap"], f"{share} of the run" if share else written["seconds"]


def _render_condition(when: When) -> Iterator[str]:
    """Yield a condition as lines; what belongs together is indented alike."""
    groups = {"all": "all of", "any": "any of", "not": "not"}
    for depth, kind, name, compared in iterate_condition_lines(build_condition_document(when), 1):
        text = compared if compared[:1] in "<>=!" else f"is {compared}"
        yield "  " * depth + (groups.get(kind) or f"{'gap ' if kind == 'gap' else ''}{name} {text}")


def _render_instruction(how: HowTo) -> str:
    names = describe_how(how)
    lines = [f"How{f' ({names})' if names else ''}: {_normalize_spaces(how.text)}"]
    for title, code in (("before:", how.before), ("after:", how.after)):
        if code:
            lines += ["", title, *(f"    {row}" for row in code.expandtabs(4).strip("\n").split("\n"))]
    return "\n".join(lines)


def _normalize_spaces(text: str) -> str:
    return " ".join(text.split())
