"""Load rule files: the bundled ones, then those of users and plugins."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from advisor.advice.facts.vocabulary import facts_by_name
from advisor.advice.rules import rule_cache
from advisor.advice.rules.names import RuleNames, use_names
from advisor.advice.rules.records import Action, Entry, RuleBook, StepOrder, Switch
from advisor.model.errors import DocumentError, Problem
from advisor.support import bundled, documents
from advisor.support.documents import nodes, yaml_nodes

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Fact
    from advisor.advice.rules.rule_cache import Stamped
    from advisor.support.documents.nodes import Mark, Node, Parsed

ORDER: Final = "steps.yaml"
#: The examples of an action in the bundled files, up to the next key or action.
_EXAMPLES: Final = re.compile(rb"^  examples:\n(?:(?:    .*)?\n)+", re.MULTILINE)
#: Bundled documents that hold no actions.
OTHERS: Final = (ORDER, "cases.yaml")


def load_rules(
    paths: Iterable[Path],
    facts: Iterable[Fact] = (),
    base: RuleBook | None = None,
    cases: Collection[str] | None = None,
) -> RuleBook:
    """Return the book of these files of actions on top of ``base``, later files above earlier ones.

    ``facts`` are words that plugins add; ``cases``, if given, are those that examples may name. DocumentError holds the
    mistakes of all files.
    """
    base = base or _make_book(_load_order(), ())
    return _merge_entries(base, _read_entries(paths, facts, base, cases))


def _read_entries(
    paths: Iterable[Path], facts: Iterable[Fact], base: RuleBook, cases: Collection[str] | None = None
) -> tuple[Entry, ...]:
    """Return what files hold that lie on top of ``base``; DocumentError holds the mistakes of all files."""
    parsed = list(map(yaml_nodes.read_yaml, paths))
    written = [entry for node, _ in parsed for entry in _iterate_written(node)]
    names = RuleNames(
        facts_by_name(facts),
        {step.id for step in base.steps},
        {issue.id for issue in base.issues},
        {action.id for action in (*base.actions, *base.off)} | {entry.id for entry in written if entry.whole},
        cases,
    )
    problems = list(_find_repeated(base, written))
    entries = _build_entries(parsed, names, problems)
    if problems:
        raise DocumentError(problems)
    return entries


def load_default(user_files: Iterable[Path] = (), facts: Iterable[Fact] = (), *, examples: bool = True) -> RuleBook:
    """Return the bundled rules with those of ``user_files`` on top; DocumentError holds the mistakes of all files.

    Advice needs no ``examples``: rules without those of the bundled files are kept as they were read. Files are read
    again when they changed.
    """
    words = tuple(replace(fact, compute=None, of_trace=None) for fact in facts)
    return _merge_files(tuple(map(rule_cache.read_file_stamp, user_files)), words, examples)


@lru_cache(maxsize=8)
def _merge_files(files: tuple[Stamped, ...], facts: tuple[Fact, ...], examples: bool) -> RuleBook:
    """Return the bundled rules with files on top, read again when a stamp changed."""
    base = load_bundled_book(examples=examples)
    if not files:
        return base

    def read_entries() -> tuple[Entry, ...]:
        return _read_entries([file for file, _ in files], facts, base)

    return _merge_entries(
        base,
        read_entries()
        if examples
        else rule_cache.load_or_read((*_list_bundled_files(), *files), facts, read_entries, tuple),
    )


@cache
def load_bundled_book(*, examples: bool = True) -> RuleBook:
    """Return the rules that come with the program, with or without their examples."""
    return (
        _read_bundled()
        if examples
        else rule_cache.load_or_read(_list_bundled_files(), (), lambda: _read_bundled(_strip_examples), RuleBook)
    )


def _read_bundled(shorten: Callable[[bytes], bytes] | None = None) -> RuleBook:
    order = _load_order()
    names = RuleNames(facts_by_name(), {step.id for step in order.steps}, {issue.id for issue in order.issues})
    problems: list[Problem] = []
    entries = _build_entries([yaml_nodes.read_yaml(file, shorten) for file in list_action_files()], names, problems)
    if problems:
        raise DocumentError(problems)
    return _merge_entries(_make_book(order, ()), entries)


@cache
def _list_bundled_files() -> tuple[Stamped, ...]:
    return tuple(map(rule_cache.read_file_stamp, bundled.list_documents("rules")))


def _strip_examples(text: bytes) -> bytes:
    """Return the text of a bundled file without its examples, more than half of it; lines keep their numbers."""
    return _EXAMPLES.sub(lambda found: b"  examples: []" + b"\n" * found[0].count(b"\n"), text)


def list_action_files() -> tuple[Path, ...]:
    """Return the bundled files of actions."""
    return tuple(file for file in bundled.list_documents("rules") if file.name not in OTHERS)


def remove_file(book: RuleBook, path: Path) -> RuleBook:
    """Return the book without the actions of one of its files."""
    wanted = str(path.resolve())
    kept = tuple(action for action in book.actions if str(Path(action.mark.file).resolve()) != wanted)
    return RuleBook(book.steps, book.arrows, book.issues, kept, book.off)


def _load_order() -> StepOrder:
    return documents.load_document(
        next(file for file in bundled.list_documents("rules") if file.name == ORDER), StepOrder
    )


def _make_book(order: StepOrder, actions: tuple[Action, ...]) -> RuleBook:
    return RuleBook(order.steps, order.arrows, order.issues, actions)


def _build_entries(parsed: Iterable[Parsed], names: RuleNames, problems: list[Problem]) -> tuple[Entry, ...]:
    """Return what documents hold, and add their mistakes to ``problems``."""
    with use_names(names):
        try:
            return documents.build_lists(parsed, cast("type[Entry]", Entry))
        except DocumentError as error:
            problems.extend(error.problems)
            return ()


@dataclass(frozen=True, slots=True)
class _WrittenEntry:
    """The id of an entry as it stands in a file, whatever else is wrong with it."""

    id: str
    mark: Mark
    replaces: str | None
    whole: bool


def _iterate_written(node: Node | None) -> Iterator[_WrittenEntry]:
    """Yield the ids that a document defines or switches."""
    for item in node.items if isinstance(node, nodes.Sequence) else ():
        entries = {key.text: value for key, value in item.entries} if isinstance(item, nodes.Mapping) else {}
        number, replaces = entries.get("id"), entries.get("replaces")
        if isinstance(number, nodes.Scalar):
            other = replaces.text if isinstance(replaces, nodes.Scalar) else None
            yield _WrittenEntry(number.text, number.mark, other, whole=len(entries) > 2)


def _find_repeated(base: RuleBook, written: Iterable[_WrittenEntry]) -> Iterator[Problem]:
    """Yield a problem for each action whose id is taken."""
    taken = {action.id: action.place for action in (*base.actions, *base.off)}
    for entry in written:
        if not entry.whole:
            continue
        if entry.id in taken and entry.replaces != entry.id:
            hint = f"the first stands in {taken[entry.id]}; to replace it write 'replaces: {entry.id}'"
            yield entry.mark.make_problem(f"the action {nodes.to_printable(entry.id)} a second time; {hint}")
        taken[entry.id] = f"{entry.mark.file}:{entry.mark.line}"


def _merge_entries(base: RuleBook, entries: Iterable[Entry]) -> RuleBook:
    """Return the book with entries put on top, one after the other."""
    known = {action.id: action for action in (*base.actions, *base.off)}
    enabled = {action.id: True for action in base.actions} | {action.id: False for action in base.off}
    for entry in entries:
        enabled[entry.id] = entry.enabled
        if isinstance(entry, Switch):
            continue
        if entry.replaces is not None and entry.replaces != entry.id:
            known.pop(entry.replaces, None)
        known[entry.id] = entry
    on = tuple(action for number, action in known.items() if enabled[number])
    off = tuple(action for number, action in known.items() if not enabled[number])
    return RuleBook(base.steps, base.arrows, base.issues, on, off)
