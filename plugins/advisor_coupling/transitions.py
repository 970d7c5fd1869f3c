"""Where the coupling changes as the problem or the number of processors grows, and which cache is behind it.

The source finds (sections 4.1.2, 4.1.3) that couplings go through a finite number of changes that depend on the memory
subsystem, and stay about the same in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from advisor_coupling.model import TOLERANCE, CaseModel, Coupling

if TYPE_CHECKING:
    from advisor_coupling.cases import Chain, CouplingCase
    from advisor_coupling.results import CacheRecord

#: The name of the axis of processors; the others are parameters of the program.
PROCESSORS: Final = "P"
MEMORY: Final = "memory"
#: Of a cache so much is there for the arrays: code, stack, tables of pages and imperfect replacement want their part.
USABLE: Final = 0.85


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """A cache: its name, and the bytes that one processor has of it."""

    name: str
    bytes: float


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of one chain's coupling beyond noise, from one value of the axis to another.

    ``crossed`` says whose data leave or enter which cache in between, such as ``y_solve,z_solve: L2 to L3``; it is
    empty where none does, or where the working sets are not known.
    """

    chain: Chain
    axis: str
    start: float
    end: float
    before: float
    after: float
    crossed: tuple[str, ...]


def build_cache_levels(caches: Mapping[str, CacheRecord], processors: int) -> tuple[CacheLevel, ...]:
    """Return the caches, the smallest first, with what one of ``processors`` has of each.

    Of a cache that cores share, each of those that compute has its part.
    """
    found = [CacheLevel(name, one.bytes / min(one.shared_by, max(processors, 1))) for name, one in caches.items()]
    return tuple(sorted(found, key=lambda level: level.bytes))


def find_home(size: float, caches: Sequence[CacheLevel]) -> str:
    """Return the smallest cache that holds so many bytes in its usable part."""
    return next((level.name for level in caches if size <= USABLE * level.bytes), MEMORY)


def find_homes(case: CouplingCase, chain: Chain, caches: Sequence[CacheLevel]) -> tuple[str, ...] | None:
    """Return where the chain's data and those of each of its kernels live; None if that is not known."""
    sizes = [case.working_set(part) for part in (chain, *((index,) for index in chain))]
    known = [size for size in sizes if size is not None]
    return tuple(find_home(size, caches) for size in known) if caches and len(known) == len(sizes) else None


def find_axes(cases: Iterable[CouplingCase]) -> tuple[str, ...]:
    """Return the parameters, and P, that take more than one value."""
    tables = [_case_coordinates(case) for case in cases]
    names = dict.fromkeys(name for table in tables for name in table)
    return tuple(name for name in names if len({table.get(name) for table in tables}) > 1)


def _case_coordinates(case: CouplingCase) -> dict[str, float]:
    return {**case.parameters, PROCESSORS: float(case.processors)}


def find_transitions(models: Sequence[CaseModel], caches: Mapping[int, Sequence[CacheLevel]]) -> tuple[Transition, ...]:
    """Return every transition along every axis; ``caches`` are those of one processor by number of processors."""
    found: list[Transition] = []
    for axis in find_axes(one.case for one in models):
        for line in _group_lines(models, axis):
            chains = dict.fromkeys(coupling.chain for model in line for coupling in model.couplings)
            found += [change for chain in chains for change in _find_along_line(line, axis, chain, caches)]
    return tuple(found)


def _group_lines(models: Sequence[CaseModel], axis: str) -> list[list[CaseModel]]:
    """Return the models that differ in nothing but ``axis``, sorted along it."""
    lines: dict[tuple[tuple[str, float], ...], list[CaseModel]] = {}
    for one in models:
        rest = tuple(sorted((key, value) for key, value in _case_coordinates(one.case).items() if key != axis))
        lines.setdefault(rest, []).append(one)
    return [sorted(line, key=lambda one: _case_coordinates(one.case)[axis]) for line in lines.values()]


def _find_along_line(
    line: Sequence[CaseModel], axis: str, chain: Chain, caches: Mapping[int, Sequence[CacheLevel]]
) -> list[Transition]:
    """Return the transitions of a chain; neighbouring changes in one direction are one."""
    points = [(one, _find_coupling(one, chain)) for one in line]
    known = [(one, coupling) for one, coupling in points if coupling and coupling.verdict != "too noisy to tell"]
    runs: list[list[tuple[CaseModel, Coupling]]] = []
    for here, there in pairwise(known):
        way = _coupling_direction(here[1], there[1])
        if way == 0:
            continue
        if runs and runs[-1][-1] is here and way == _coupling_direction(runs[-1][0][1], runs[-1][-1][1]):
            runs[-1].append(there)
        else:
            runs.append([here, there])
    return [_build_transition(run, axis, chain, caches) for run in runs]


def _find_coupling(model: CaseModel, chain: Chain) -> Coupling | None:
    return next((coupling for coupling in model.couplings if coupling.chain == chain), None)


def _coupling_direction(here: Coupling, there: Coupling) -> int:
    """Return whether the coupling rises (1) or falls (-1) beyond both intervals and the tolerance, else 0."""
    if there.value.low > here.value.high and there.value.value - here.value.value > TOLERANCE:
        return 1
    return -1 if there.value.high < here.value.low and here.value.value - there.value.value > TOLERANCE else 0


def _build_transition(
    run: Sequence[tuple[CaseModel, Coupling]], axis: str, chain: Chain, caches: Mapping[int, Sequence[CacheLevel]]
) -> Transition:
    (first, before), (last, after) = run[0], run[-1]
    start, end = (_case_coordinates(one.case)[axis] for one in (first, last))
    crossed = _describe_crossings(first.case, last.case, chain, caches)
    return Transition(chain, axis, start, end, before.value.value, after.value.value, crossed)


def _describe_crossings(
    first: CouplingCase, last: CouplingCase, chain: Chain, caches: Mapping[int, Sequence[CacheLevel]]
) -> tuple[str, ...]:
    """Return whose data change their cache between two cases: each kernel, and the chain as a whole."""
    found = []
    for part in (*((index,) for index in chain), chain):
        small, large = first.working_set(part), last.working_set(part)
        if small is None or large is None:
            continue
        before, after = find_home(small, caches[first.processors]), find_home(large, caches[last.processors])
        who = "all kernels" if len(part) == first.size else first.chain_label(part)
        if before != after:
            found.append(f"{who}: {before} to {after}")
    return tuple(found)
