"""What calls of libraries set: the rank, its neighbours, communicators, numbers of the command line, else unknown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Protocol

from advisor_processor.symbolic.integer_functions import Remainder, make_integer
from advisor_processor.symbolic.library_names import CONSTANTS, HARMLESS, UNCHANGED
from advisor_processor.symbolic.walk_records import RANK, RANKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor_processor.source.records import CallSite

#: Communicators that hold all ranks in their order: all of them, a line or ring of them, a grid.
_WORLD: Final = make_integer("MPI_COMM_WORLD")
_LINES: Final = {0: make_integer("MPI_COMM_LINE"), 1: make_integer("MPI_COMM_RING")}
_GRID: Final = make_integer("MPI_COMM_GRID")
_WHOLE: Final = frozenset({_WORLD, _GRID, *_LINES.values()})
COMMUNICATORS: Final = {"MPI_COMM_WORLD": _WORLD}
#: What begins the name of a variable that holds an argument of the command as text.
TEXT: Final = "text of "
_ONE_NUMBER: Final = re.compile(r'"%(?:l{0,2}|h|z)[diu]"')
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
        yield _plain_name(given[1]), value if values[0] in _WHOLE else None
    elif name == "mpi_comm_dup" and len(given) > 1:
        yield _plain_name(given[1]), values[0]
    elif name == "mpi_cart_create" and len(given) > 5:
        yield _plain_name(given[5]), _make_grid(given, values, walk, fortran)
    elif name == "mpi_cart_shift" and len(given) > 4:
        yield from zip(map(_plain_name, given[3:5]), _find_neighbours(values, walk), strict=True)
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
    """Return a communicator of all ranks, in one dimension as a line or a ring."""
    if values[0] != _WORLD:
        return None
    if values[1] != 1:
        return _GRID
    around = walk.name_value(given[3]) if fortran else walk.element_value(given[3].lstrip("&"), [RANKS * 0])
    return _GRID if around is None or not around.is_Integer else _LINES[int(bool(around))]


def _find_neighbours(values: Sequence[Any], walk: Walk) -> tuple[Any, Any]:
    """Return the ranks that ``MPI_Cart_shift`` gives: where data come from, and where they go."""
    communicator, distance = values[0], values[2]
    if distance is None or communicator not in _LINES.values():
        return None, None
    below, above = RANK - distance, RANK + distance
    if communicator == _LINES[1]:
        return Remainder(below, RANKS), Remainder(above, RANKS)

    def find_rank(place: Any) -> Any:  # noqa: ANN401
        within = walk.is_nonnegative(place) * walk.is_nonnegative(RANKS - 1 - place)
        return within * (place - _NOWHERE) + _NOWHERE

    return find_rank(below), find_rank(above)
