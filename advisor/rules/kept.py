"""Rules as they were read, kept in the user's cache directory: advice does not read YAML that has not changed.

What is kept is data alone: numbers, texts, and lists that begin with the number of a type in ``TYPES``. It fits as long
as the files, the words that plugins add and the program that reads them are the same; what does not fit, or is damaged,
is made anew. Where the directory can't be written, rules are read each time.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from zlib import crc32

from advisor.documents import Mark
from advisor.rules.conditions import AllOf, AnyOf, FactIs, GapSeconds, GapShare, Not
from advisor.rules.names import ActionName, AffectedName, CaseName, FactName, GapName, IssueName, StepNumber
from advisor.rules.records import Action, Arrow, Changed, Example, How, Issue, RuleBook, Step, Switch
from advisor.whole_files import replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from advisor.facts.vocabulary import Fact

    Stamped = tuple[Path, tuple[int, ...]]

T = TypeVar("T")
#: All types that rules are made of, besides numbers, texts and truth values.
TYPES: Final[tuple[type[Any], ...]] = (
    tuple, dict, RuleBook, Step, Arrow, Issue, Action, Switch, How, Example, Mark, AllOf, AnyOf, Not, FactIs, GapShare,
    GapSeconds, Changed, ActionName, AffectedName, CaseName, FactName, GapName, IssueName, StepNumber,
)  # fmt: skip
_NUMBERS: Final = {kind: number for number, kind in enumerate(TYPES)}
_FIELDS: Final[dict[type[Any], tuple[str, ...]]] = {
    kind: tuple(one.name for one in fields(kind)) for kind in TYPES if is_dataclass(kind)
}
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


def stamped(file: Path) -> Stamped:
    """Return a file with what tells whether it is still the same; with nothing, if it can't be asked."""
    try:
        status = os.stat(file)
    except OSError:
        return file, ()
    return file, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def kept(files: Sequence[Stamped], facts: Sequence[Fact], make: Callable[[], T], kind: type[T]) -> T:
    """Return what ``make`` reads from ``files``, one of ``kind``; as it is kept, where that fits."""
    sources = (*files, *map(stamped, _program()))
    if not all(known for _, known in sources):
        return make()
    names = [str(file) for file, _ in sources]
    words = sorted((fact.name, fact.unit, fact.scope) for fact in facts)
    head = json.dumps([names, [known for _, known in sources], words]).encode()
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = Path(folder, "gapwatch", f"rules-{crc32(repr((names, words)).encode()):08x}.json")
    found = _read(place, head)
    return found if isinstance(found, kind) else _keep(place, head, make())


def _program() -> list[Path]:
    """Return the modules that say how rules are read, and in which words they may speak."""
    top = Path(__file__).parents[1]
    packages = (path for name in ("rules", "documents", "facts") for path in (top / name).glob("*.py"))
    return sorted((*packages, top / "model.py", top / "units.py"))


def _read(place: Path, head: bytes) -> object:
    """Return what is kept at a place; None if there is nothing, or if its head is another."""
    try:
        first, check, body = place.read_bytes().split(b"\n", 2)
        if first != head or int(check) != crc32(body):
            return None
        return restored(json.loads(body))
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _keep(place: Path, head: bytes, made: T) -> T:
    body = json.dumps(plain(made)).encode()
    with suppress(OSError):  # a home that can't be written: the rules are read anew each time
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(place) as partial:
            partial.write_bytes(b"%b\n%d\n%b" % (head, crc32(body), body))
    return made


def plain(value: object) -> object:
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
    return [_NUMBERS[kind], *map(plain, parts)]


def restored(value: object) -> object:
    """Return what ``plain`` was given; errors of lists and types for what it can't have returned."""
    if type(value) is not list:
        return value
    kind, parts = TYPES[value[0]], [restored(part) for part in value[1:]]
    if kind is tuple:
        return tuple(parts)
    if kind is dict:
        return dict(zip(parts[::2], parts[1::2], strict=True))
    return _record(kind, parts) if kind in _FIELDS else kind(*parts)


def _record(kind: type[object], parts: Sequence[object]) -> object:
    """Return a record without checking it again: the names that rules may use are those of the time of reading."""
    made = object.__new__(kind)
    for name, part in zip(_FIELDS[kind], parts, strict=True):
        object.__setattr__(made, name, part)
    return made
