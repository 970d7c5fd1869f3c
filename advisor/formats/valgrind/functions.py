"""Functions of several outputs of valgrind as one list, and what kind of code each is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.soundness import REGION_LIMIT
from advisor.support.runtime_libraries import (
    is_communication_function,
    is_communication_library,
    is_linking_function,
    is_loader,
)
from advisor.trace.callpaths.records import CallPathNode
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.valgrind.dump import CodePlace, ValgrindDump
    from advisor.model.records import FloatArray, IntArray

UNKNOWN: Final = "???"
#: How deep a function called itself when it was counted, which callgrind appends to the name.
_DEPTH: Final = re.compile(r"'\d{1,9}$")
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]+")
_LINKING_FILE: Final = re.compile(r"(.*/)?(elf/|sysdeps/.*)dl-[-\w]+\.[chS]")
OTHERS: Final = "other functions"


@dataclass(frozen=True, slots=True)
class FunctionList:
    """Functions of all files: ``nodes``, and which of them are ``library`` code, that is communication and linking.

    ``of_places`` gives for each file the function of each of its places; ``folded`` is how many functions were put
    together as they are too many.
    """

    nodes: tuple[CallPathNode, ...]
    library: npt.NDArray[np.bool_]
    of_places: tuple[IntArray, ...]
    folded: int


def build_functions(dumps: Sequence[ValgrindDump]) -> FunctionList:
    """Return the functions of ``dumps``; beyond the limit of regions the least counted are one."""
    known: dict[tuple[str, str, str], int] = {}
    of_places = tuple(
        np.array([_number_function(known, place) for place in dump.places], dtype=np.int64) for dump in dumps
    )
    weight, line = np.zeros(len(known)), np.full(len(known), np.iinfo(np.int64).max)
    for dump, functions in zip(dumps, of_places, strict=True):
        np.add.at(weight, functions, dump.counts[:, 0])
        some = dump.line > 0
        np.minimum.at(line, functions[some], dump.line[some])
    keys = list(known)
    communicates = any(is_communication_function(key[2]) for key in keys)
    library = np.array([_is_library(key, communicates) for key in keys], dtype=bool)
    nodes = tuple(_build_node(key, int(first), bool(one)) for key, first, one in zip(keys, line, library, strict=True))
    if len(nodes) <= REGION_LIMIT:
        return FunctionList(nodes, library, of_places, 0)
    return _fold_functions(nodes, library, of_places, weight)


def _number_function(known: dict[tuple[str, str, str], int], place: CodePlace) -> int:
    return known.setdefault((place.object, place.own, _DEPTH.sub("", place.function)), len(known))


def _is_library(key: tuple[str, str, str], communicates: bool) -> bool:
    """Return whether a function is no code of the program's own work: of MPI, or of the dynamic linker.

    In a program with MPI, code of which nothing is known (cachegrind names no object files) is a library's.
    """
    place, file, name = key
    if is_communication_library(place) or is_loader(place):
        return True
    nameless = communicates and place == file == name == UNKNOWN
    return (
        nameless or is_communication_function(name) or is_linking_function(name) or bool(_LINKING_FILE.fullmatch(file))
    )


def _build_node(key: tuple[str, str, str], first: int, library: bool) -> CallPathNode:
    place, file, name = key
    shown, role = classify_region(name)
    if (name == UNKNOWN or _ADDRESS.fullmatch(name)) and place != UNKNOWN:
        shown = f"{name} in {PurePath(place).name}"
    communicates = is_communication_function(name) or is_communication_library(place)
    if role == Role.IO:  # libraries read and write for themselves, and nothing tells for whom
        role = Role.USER
    if role == Role.USER and library and communicates:
        role = Role.COMM_OTHER
    return CallPathNode(
        shown, role, None if file == UNKNOWN else file, None if first == np.iinfo(np.int64).max else first
    )


def _fold_functions(
    nodes: tuple[CallPathNode, ...], library: npt.NDArray[np.bool_], of_places: tuple[IntArray, ...], weight: FloatArray
) -> FunctionList:
    kept = np.sort(np.argsort(-weight, kind="stable")[: REGION_LIMIT - 1])
    place = np.full(len(nodes), len(kept))
    place[kept] = np.arange(len(kept))
    return FunctionList(
        (*(nodes[n] for n in kept.tolist()), CallPathNode(OTHERS)),
        np.append(library[kept], False),
        tuple(place[functions] for functions in of_places),
        len(nodes) - len(kept),
    )
