"""What functions of a program call, assign and leave, found before it is walked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor_processor.source.records import Assignment, Branch, CallSite, Leave, LoopEntry, Rest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from advisor_processor.source.records import Block, Loop, Source, Statement


class CallGraph:
    """Functions by name with their ``places`` (file, first block), and those that call themselves."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self.places = {name: (at, entry) for at, source in enumerate(sources) for name, entry in source.entries.items()}
        self._assigned: dict[tuple[int, str], frozenset[str]] = {}
        self._changed: dict[str, frozenset[int]] = {}
        self._called = {
            name: frozenset(
                each.name
                for each in iterate_statements(entry)
                if isinstance(each, CallSite) and each.name in self.places
            )
            for name, (_, entry) in self.places.items()
        }
        self.recursive = frozenset(name for name in self.places if name in self._reach(self._called[name]))

    def _reach(self, names: frozenset[str]) -> frozenset[str]:
        found: set[str] = set()
        new = set(names)
        while new:
            found |= new
            new = {each for name in new for each in self._called[name]} - found
        return frozenset(found)

    def assigned_names(self, source: int, function: str) -> frozenset[str]:
        """Return the names that a function assigns itself."""
        key = (source, function)
        if key not in self._assigned:
            _, entry = self.places[function]
            self._assigned[key] = frozenset(_list_assigned(iterate_statements(entry)))
        return self._assigned[key]

    def changed_names(self, source: int, loop: Loop) -> set[str]:
        """Return the names that one turn of a loop may change for the next, by calls as well."""
        statements = list(iterate_statements(loop.body)) if loop.body is not None else []
        found = {name for name in loop.changed if "[" not in name} | set(_list_assigned(iter(statements)))
        found |= {each.loop.variable for each in statements if isinstance(each, LoopEntry) and each.loop.variable}
        fortran = self._sources[source].language == "fortran"
        called: set[str] = set()
        for each in statements:
            if isinstance(each, CallSite):
                called.add(each.name)
                found |= {name.lstrip("&").replace("->", ".") for name in each.arguments if name.startswith("&")}
                if fortran and each.name in self.places and not each.is_function:
                    changed = self._changed_places(each.name)
                    given = {name for at, name in enumerate(each.arguments) if at in changed}
                    found |= {name for name in given if re.fullmatch(r"[a-z_]\w*", name)}
        for name in self._reach(frozenset(called & set(self.places))):
            place, _ = self.places[name]
            declared = self._sources[place].declared.get(name, frozenset())
            names = self.assigned_names(place, name)
            found |= {each for each in names if re.split(r"[.\[]", each)[0].lstrip("*") not in declared}
        return {name for name in found if re.fullmatch(r"\*?[A-Za-z_][\w.]*(\[\d+\])?", name)}

    def _changed_places(self, function: str, around: frozenset[str] = frozenset()) -> frozenset[int]:
        """Return the places of the parameters of a procedure of Fortran that it, or what it calls, may change."""
        if function not in self._changed:
            place, entry = self.places[function]
            statements = list(iterate_statements(entry))
            names = set(self.assigned_names(place, function))
            names |= {each.loop.variable for each in statements if isinstance(each, LoopEntry)}
            for each in statements:
                if not isinstance(each, CallSite) or each.is_function or each.name in around:
                    continue
                known = each.name in self.places
                inner = self._changed_places(each.name, around | {function}) if known else range(len(each.arguments))
                names |= {name for at, name in enumerate(each.arguments) if at in inner}
            given = self._sources[place].parameters.get(function, ())
            found = frozenset(at for at, name in enumerate(given) if name in names)
            if around:
                return found
            self._changed[function] = found
        return self._changed[function]

    def may_leave(self, body: Block, never: Callable[[Block], bool]) -> frozenset[str]:
        """Return how a loop may be left before its end: ``break`` and ``return``; blocks that ``never`` ran do not."""
        return frozenset(_find_leaves(body, never, inside=False))


def _find_leaves(block: Block, never: Callable[[Block], bool], inside: bool) -> Iterator[str]:
    for each in block.statements:
        if isinstance(each, Leave) and (each.kind == "return" or (each.kind == "break" and not inside)):
            yield each.kind
        elif isinstance(each, Rest):
            yield from _find_leaves(each.block, never, inside)
        elif isinstance(each, Branch):
            for _, inner in each.clauses:
                if not never(inner):
                    yield from _find_leaves(inner, never, inside)
        elif isinstance(each, LoopEntry) and each.loop.body is not None:
            yield from _find_leaves(each.loop.body, never, inside=True)


def _list_assigned(statements: Iterator[Statement]) -> Iterator[str]:
    for each in statements:
        if isinstance(each, Assignment):
            yield each.name


def iterate_statements(block: Block) -> Iterator[Statement]:
    """Yield all statements of a block and of those inside it."""
    for each in block.statements:
        yield each
        if isinstance(each, Rest):
            yield from iterate_statements(each.block)
        elif isinstance(each, Branch):
            for _, inner in each.clauses:
                yield from iterate_statements(inner)
        elif isinstance(each, LoopEntry) and each.loop.body is not None:
            yield from iterate_statements(each.loop.body)
