"""Cache of parsed rules (``advisor.support.disk_cache``): unchanged YAML is not parsed again.

What is kept is data alone: numbers, texts, and lists that begin with the number of a type in ``TYPES``. It fits as long
as the files, the words that plugins add and the program that reads them are the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from advisor.advice.rules.conditions import AllOf, AnyOf, FactIs, GapSeconds, GapShare, Not
from advisor.advice.rules.names import ActionName, AffectedName, CaseName, FactName, GapName, IssueName, StepNumber
from advisor.advice.rules.records import (
    Action,
    Arrow,
    Calibration,
    Changed,
    Example,
    How,
    Issue,
    RuleBook,
    Step,
    Switch,
)
from advisor.support import disk_cache
from advisor.support.documents import Mark

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Fact

    Stamped = tuple[Path, tuple[int, ...]]

T = TypeVar("T")
#: All types that rules are made of, besides numbers, texts and truth values.
TYPES: Final[tuple[type[Any], ...]] = (
    tuple, dict, RuleBook, Step, Arrow, Issue, Action, Switch, How, Example, Mark, AllOf, AnyOf, Not, FactIs, GapShare,
    GapSeconds, Calibration, Changed, ActionName, AffectedName, CaseName, FactName, GapName, IssueName, StepNumber,
)  # fmt: skip
_NUMBERS: Final = {kind: number for number, kind in enumerate(TYPES)}
_FIELDS: Final[dict[type[Any], tuple[str, ...]]] = {
    kind: tuple(one.name for one in fields(kind)) for kind in TYPES if is_dataclass(kind)
}
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


def read_file_stamp(file: Path) -> Stamped:
    """Return a file with what tells whether it is still the same; with nothing, if it can't be asked."""
    try:
        status = os.stat(file)
    except OSError:
        return file, ()
    return file, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def load_or_read(files: Sequence[Stamped], facts: Sequence[Fact], make: Callable[[], T], kind: type[T]) -> T:
    """Return what ``make`` reads from ``files``, one of ``kind``; as it is kept, where that fits."""
    sources = (*files, *_list_program_files())
    if not all(known for _, known in sources):
        return make()
    key = [[str(file) for file, _ in sources], sorted((fact.name, fact.unit, fact.scope) for fact in facts)]
    state = [known for _, known in sources]
    try:
        found = from_plain(disk_cache.load_cached("rules", key, state))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        found = None
    if isinstance(found, kind):
        return found
    made = make()
    disk_cache.store_cached("rules", key, state, to_plain(made))
    return made


@cache
def _list_program_files() -> tuple[Stamped, ...]:
    """Return the modules that say how rules are read, and in which words they may speak."""
    top = Path(__file__).parents[2]
    packages = ("advice/rules", "advice/facts", "support/documents")
    modules = (path for name in packages for path in (top / name).glob("*.py"))
    records = (top / "model" / f"{name}.py" for name in ("recommendations", "records", "units"))
    return tuple(map(read_file_stamp, sorted((*modules, *records))))


def to_plain(value: object) -> object:
    """Return what rules are made of as numbers, texts and lists; ``KeyError`` for a type that is not in ``TYPES``."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    parts: Iterable[object] = (str(value),)  # a name
    if isinstance(value, tuple):
        parts = value
    elif isinstance(value, dict):
        parts = chain.from_iterable(value.items())
    elif isinstance(value, int):
        parts = (int(value),)
    elif kind in _FIELDS:
        parts = (getattr(value, name) for name in _FIELDS[kind])
    return [_NUMBERS[kind], *map(to_plain, parts)]


def from_plain(value: object) -> object:
    """Return what ``to_plain`` was given; errors of lists and types for what it can't have returned."""
    if type(value) is not list:
        return value
    kind, parts = TYPES[value[0]], [from_plain(part) for part in value[1:]]
    if kind is tuple:
        return tuple(parts)
    if kind is dict:
        return dict(zip(parts[::2], parts[1::2], strict=True))
    return _restore_record(kind, parts) if kind in _FIELDS else kind(*parts)


def _restore_record(kind: type[object], parts: Sequence[object]) -> object:
    """Return a record without checking it again: the names that rules may use are those of the time of reading."""
    made = object.__new__(kind)
    for name, part in zip(_FIELDS[kind], parts, strict=True):
        object.__setattr__(made, name, part)
    return made
