"""Models of applications in YAML: how often each operation happens, and which arrays each loop runs over."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from advisor.support import documents
from advisor.support.documents import FieldErrors
from advisor_scaling.linear import expressions

if TYPE_CHECKING:
    import sympy

    from advisor.analysis.machines import Machine

#: The columns of X: arithmetic, loops that are started, lines that miss in a cache, pages, messages, bytes sent.
Column = Literal["operations", "loops", "misses", "page_faults", "messages", "bytes"]
COLUMNS: Final[tuple[Column, ...]] = get_args(Column)


@dataclass(frozen=True, slots=True)
class ArrayUse:
    """A loop that runs over ``bytes`` of data on one processor, ``passes`` times."""

    name: str
    bytes: str
    passes: str = "1"


@dataclass(frozen=True, slots=True)
class ApplicationModel:
    """Counts on one processor as formulas of ``parameters``; ``costs`` in seconds of what no machine model states.

    ``data`` are the bytes of all data on a processor, where no ``arrays`` tell them.
    """

    name: str
    parameters: tuple[str, ...]
    counts: dict[Column, str]
    arrays: tuple[ArrayUse, ...] = ()
    costs: dict[Column, float] = field(default_factory=dict)
    description: str = ""
    data: str = ""

    def __post_init__(self) -> None:
        """Check every formula; all mistakes at once."""
        problems: list[tuple[tuple[str, ...], str]] = [
            (("parameters",), f"{name!r} is not a valid parameter name")
            for name in self.parameters
            if not (name.isidentifier() and name.isascii())
        ]
        formulas: list[tuple[tuple[str, ...], str]] = [
            (("counts", column), text) for column, text in self.counts.items()
        ]
        formulas += [(("arrays",), text) for array in self.arrays for text in (array.bytes, array.passes)]
        formulas += [(("data",), self.data)] if self.data else []
        problems += [(place, wrong) for place, text in formulas if (wrong := _find_mistake(text, self.parameters))]
        doubled = [column for column in ("misses", "page_faults") if column in self.counts and self.arrays]
        problems += [(("counts", column), f"{column} follow from arrays; state either") for column in doubled]
        if problems:
            raise FieldErrors(problems)


def _find_mistake(text: str, parameters: tuple[str, ...]) -> str | None:
    """Return what is wrong with a formula."""
    try:
        expressions.parse_formula(text, parameters)
    except ValueError as error:
        return str(error)
    return None


def read_application(path: Path) -> ApplicationModel:
    """Return the model in the file; ``DocumentError`` with every mistake in it."""
    return documents.load_document(path, ApplicationModel)


@dataclass(frozen=True, slots=True)
class MemorySizes:
    """Bytes of cache and memory of one processor, of a line and of a page."""

    cache: float | None = None
    memory: float | None = None
    line: float = 64.0
    page: float = 4096.0


def machine_sizes(machine: Machine) -> MemorySizes:
    """Return the sizes of a machine model: the largest cache that one core has to itself, memory of one core."""
    own = [cache for cache in machine.caches.values() if cache.size and (cache.shared_by or 1) == 1]
    largest = max(own, key=lambda cache: float(cache.size or 0.0), default=None)
    memory = machine.memory
    cores = (machine.sockets or 1) * (machine.cores_per_socket or 1)
    return MemorySizes(
        cache=float(largest.size) if largest and largest.size else None,
        memory=float(memory.size) / cores if memory and memory.size else None,
        line=float(largest.line) if largest and largest.line else 64.0,
        page=float(memory.page) if memory and memory.page else 4096.0,
    )


def build_counts(application: ApplicationModel, sizes: MemorySizes) -> dict[Column, sympy.Expr]:
    """Return the columns of X as expressions of the parameters.

    Misses by the rule of the source, section 2.2: a loop over more bytes than the cache holds misses on all of its
    lines in every pass, otherwise on none. Pages of memory likewise. Where a size is unknown the column is absent.
    """
    found = {
        column: expressions.parse_formula(text, application.parameters) for column, text in application.counts.items()
    }
    rules: tuple[tuple[Column, float | None, float], ...] = (
        ("misses", sizes.cache, sizes.line), ("page_faults", sizes.memory, sizes.page)
    )  # fmt: skip
    for column, capacity, unit in rules:
        if application.arrays and capacity is not None:
            found[column] = _count_missed_lines(application, capacity, unit)
    return {column: found[column] for column in COLUMNS if column in found}


def _count_missed_lines(application: ApplicationModel, capacity: float, unit: float) -> sympy.Expr:
    sympy = expressions.require_sympy()
    total = sympy.Integer(0)
    for each in application.arrays:
        size = expressions.parse_formula(each.bytes, application.parameters)
        passes = expressions.parse_formula(each.passes, application.parameters)
        lines = size / round(unit)
        total += sympy.Piecewise((passes * lines, size > round(capacity)), (0, True))
    return total
