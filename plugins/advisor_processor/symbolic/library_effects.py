"""What functions and names of libraries mean to a walk of a program: what is allocated, changed, a constant, and set.

Calls set the rank, its neighbours, communicators and numbers of the command line; else a value is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import sympy

from advisor_processor.symbolic.integer_functions import IntegerFunction, Quotient, Remainder, make_integer
from advisor_processor.symbolic.walk_records import RANK, RANKS

if TYPE_CHECKING:
    from advisor_processor.source.records import CallSite

#: Names with a value.
CONSTANTS: Final = {"MPI_PROC_NULL": -2, "mpi_proc_null": -2, "NULL": 0, "true": 1, "false": 0, "nullptr": 0}
#: Functions that make a number of a text.
NUMBERS: Final = frozenset({"atoi", "atol", "atoll", "strtol", "strtoll", "strtoul", "strtoull", "stoi", "stol"})
#: Functions that allocate, with the places of what is multiplied.
ALLOCATING: Final[Mapping[str, tuple[int, ...]]] = {
    "malloc": (0,), "calloc": (0, 1), "realloc": (1,), "aligned_alloc": (1,), "gapwatch_vector": (0, 1),
}  # fmt: skip
#: Arguments of calls of MPI that these only read, in Fortran, where any argument might be changed; else the second.
UNCHANGED: Final[Mapping[str, tuple[int, ...]]] = {
    "send": (0, 1, 3, 4), "isend": (0, 1, 3, 4), "recv": (1, 3, 4), "irecv": (1, 3, 4), "reduce": (0, 2, 5),
    "allreduce": (0, 2), "sendrecv": (0, 1, 3, 4, 6, 8, 9), "sendrecv_replace": (1, 3, 4, 5, 6),
    "alltoall": (0, 1, 4), "allgather": (0, 1, 4), "gather": (0, 1, 4, 6), "scatter": (0, 1, 4, 6),
}  # fmt: skip
#: Functions that change none of their arguments.
HARMLESS: Final = frozenset({"mpi_init", "free", "printf", "fprintf", "mpi_barrier", "mpi_finalize"})


class Ranks(IntegerFunction):
    """A communicator of all ranks in their order: extents of a grid, then 1 or 0 for each that goes round or ends."""


_WORLD: Final = make_integer("MPI_COMM_WORLD")
COMMUNICATORS: Final = {"MPI_COMM_WORLD": _WORLD}
#: What begins the name of a variable that holds an argument of the command as text.
TEXT: Final = "text of "
_ONE_NUMBER: Final = re.compile(r'"%(?:l{0,2}|h|z)[diu]"')
#: Grids of ranks with more dimensions are not followed.
_MOST_DIMENSIONS: Final = 4
_NOWHERE: Final = CONSTANTS["MPI_PROC_NULL"]


class Walk(Protocol):
    """What is asked of the walk of a program."""

    def argument_value(self, written: str) -> Any:  # noqa: ANN401
        """Return the number that an argument of the command is."""

    def element_value(self, name: str, subscripts: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the value of an element of an array."""

    def name_value(self, name: str) -> Any:  # noqa: ANN401
        """Return the value of a variable."""

    def is_nonnegative(self, value: Any) -> Any:  # noqa: ANN401
        """Return 1 where a value is zero or more, else 0."""


def find_effects(call: CallSite, values: Sequence[Any], walk: Walk, fortran: bool) -> Iterator[tuple[str, Any]]:
    """Yield the names that a call of a library sets, with their values, None where these are not known."""
    name, given = call.name.lower(), call.arguments
    if name in ("get_command_argument", "getarg") and len(given) > 1 and given[0].isdigit():
        yield TEXT + given[1], make_integer(f"argv{given[0]}")
    elif name in ("mpi_comm_rank", "mpi_comm_size") and len(given) > 1:
        value = RANK if name == "mpi_comm_rank" else RANKS
        yield _plain_name(given[1]), value if values[0] == _WORLD or isinstance(values[0], Ranks) else None
    elif name == "mpi_comm_dup" and len(given) > 1:
        yield _plain_name(given[1]), values[0]
    elif name == "mpi_dims_create" and len(given) > 2 and given[1].isdigit():
        known = RANKS if given[1] == "1" and values[0] == RANKS else None
        yield from ((f"{given[2]}[{at}]", known) for at in range(int(given[1])))
    elif name == "mpi_cart_create" and len(given) > 5:
        yield _plain_name(given[5]), _make_grid(given, values, walk, fortran)
    elif name == "mpi_cart_shift" and len(given) > 4:
        yield from zip(map(_plain_name, given[3:5]), _find_neighbours(values, walk), strict=True)
    elif name == "mpi_cart_coords" and len(given) > 3:
        places = _find_coordinates(values[0], values[1])
        yield from ((f"{given[3]}[{at}]", each) for at, each in enumerate(places))
    elif name == "sscanf" and len(given) == 3 and _ONE_NUMBER.fullmatch(given[1]):
        yield _plain_name(given[2]), walk.argument_value(given[0])
    elif name != "mpi_bcast" and name not in HARMLESS and not call.is_function:
        yield from _find_changed(name, given, fortran)


def _find_changed(name: str, given: Sequence[str], fortran: bool) -> Iterator[tuple[str, None]]:
    if name.startswith("mpi_"):
        given = tuple(each for at, each in enumerate(given) if at not in UNCHANGED.get(name[4:], (1,)))
    for each in given:
        plain = _plain_name(each)
        named = re.fullmatch(r"[A-Za-z_][\w.]*", plain) and not plain.lower().startswith("mpi_")
        if named and (each.startswith("&") or fortran):
            yield plain, None


def _plain_name(written: str) -> str:
    return written.lstrip("&").replace("->", ".")


def _make_grid(given: Sequence[str], values: Sequence[Any], walk: Walk, fortran: bool) -> Any:  # noqa: ANN401
    """Return a communicator of all ranks as a grid, None where its extents or ends are not known."""
    if values[0] != _WORLD or values[1] is None or not values[1].is_Integer or not 1 <= values[1] <= _MOST_DIMENSIONS:
        return None
    first = sympy.Integer(int(fortran))

    def list_elements(name: str) -> list[Any]:
        return [walk.element_value(name.lstrip("&"), [first + at]) for at in range(int(values[1]))]

    extents = [RANKS] if values[1] == 1 else list_elements(given[2])
    around = [walk.name_value(given[3])] if fortran and values[1] == 1 else list_elements(given[3])
    return None if None in (*extents, *around) else Ranks(*extents, *around)


def _find_coordinates(communicator: Any, rank: Any) -> list[Any]:  # noqa: ANN401
    """Return where a rank is in a grid: its last extent is run through first."""
    if not isinstance(communicator, Ranks) or rank is None:
        return []
    extents = communicator.args[: len(communicator.args) // 2]
    found = []
    for at, extent in enumerate(extents):
        place = Quotient(rank, sympy.prod(extents[at + 1 :]))
        found.append(place if at == 0 else Remainder(place, extent))
    return found


def _find_neighbours(values: Sequence[Any], walk: Walk) -> tuple[Any, Any]:
    """Return the ranks that ``MPI_Cart_shift`` gives: where data come from, and where they go."""
    communicator, along, distance = values[:3]
    places = _find_coordinates(communicator, RANK)
    if distance is None or along is None or not along.is_Integer or not 0 <= along < len(places):
        return None, None
    extents, around = communicator.args[: len(places)], communicator.args[len(places) + int(along)]
    extent, stride, place = extents[along], sympy.prod(extents[along + 1 :]), places[int(along)]

    def find_rank(moved: Any) -> Any:  # noqa: ANN401
        if around != 0:
            return RANK + stride * (Remainder(moved, extent) - place)
        within = walk.is_nonnegative(moved) * walk.is_nonnegative(extent - 1 - moved)
        return within * (RANK + stride * (moved - place) - _NOWHERE) + _NOWHERE

    return find_rank(place - distance), find_rank(place + distance)
