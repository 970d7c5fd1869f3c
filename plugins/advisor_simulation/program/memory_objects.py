"""The memory that a program's accesses go to, as objects with names: static, allocated, and what is neither.

Memory is given to one allocation after another, and each access goes to the one that holds the place at that time. The
allocations of one name that share memory are one object, and so are many small ones, such as the nodes of a tree.
"""

from __future__ import annotations

import ctypes
import keyword
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.collect.binaries.addresses import resolve_addresses
from advisor_simulation.program.address_trace import compile_part
from advisor_simulation.program.allocation_names import choose_frames, name_allocation
from advisor_simulation.program.data_objects import DataObject, read_static_objects

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.collect.binaries.elf_files import ElfImage
    from advisor.model.records import IntArray
    from advisor_simulation.program.address_trace import TracedProcess, Words

ALLOCATE, CALLERS = 1, 7
_PLACE, _KIND, _X, _Y, _Z, _STACK, _NUMBER = 0, 2, 3, 4, 5, 6, 7
#: More allocations of one place are one object, where they lie no further apart.
_MANY: Final = 8
_NEAR_B: Final = 1 << 16
_PAGE_B: Final = 4096
#: Memory without a name is an object where so many of the accesses go to it.
_FEW: Final = 0.01


@dataclass(slots=True)
class _Block:
    """An allocation: address, bytes, its callers as traced, accesses to it, its name, and the object that it is of."""

    address: int
    size: int
    callers: list[int]
    touched: int = 0
    name: str = ""
    number: int = -1

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """The objects of a process by address, and those of the accesses of each thread, by word (-1: none)."""

    objects: tuple[DataObject, ...]
    owners: tuple[npt.NDArray[np.int32], ...]


def find_objects(image: ElfImage, process: TracedProcess, cache: Path, source: Path | None = None) -> ProcessMemory:
    """Return the objects of a process; ``cache`` holds what is compiled."""
    fixed = [replace(one, address=one.address + process.base) for one in read_static_objects(image.path)]
    blocks, owners, loose = _follow_allocations(process, cache)
    touched = [one for one in blocks if one.touched]
    _name_blocks(image, process, touched, source)
    joined = _join_blocks(touched)
    total = sum(one.touched for one in touched) + int(loose[:, 2].sum())
    fixed += _find_unnamed(loose, fixed, process, total)
    named = _name_apart([*fixed, *(DataObject(one.name, one.address, one.size, allocated=True) for one in joined)])
    order = sorted(range(len(named)), key=lambda k: named[k].address)
    objects = _mark_overlaps([named[k] for k in order])
    place = np.empty(len(named), dtype=np.int64)
    place[order] = np.arange(len(named))
    # accesses to no allocation go to what is static or has no name
    of_block = np.array(
        [place[len(fixed) + one.number] if one.touched else -1 for one in blocks] + [-1], dtype=np.int32
    )
    fixed_place = place[: len(fixed)][np.argsort([one.address for one in fixed])]
    fixed.sort(key=lambda one: one.address)
    found = [
        _find_fixed(thread.words, of_block[one], one < 0, fixed, fixed_place)
        for thread, one in zip(process.threads, owners, strict=True)
    ]
    return ProcessMemory(tuple(objects), tuple(found))


def _find_fixed(
    words: Words,
    owner: npt.NDArray[np.int32],
    free: npt.NDArray[np.bool_],
    fixed: Sequence[DataObject],
    place: IntArray,
) -> npt.NDArray[np.int32]:
    """Return the objects of a thread's words with those that have a place of their own."""
    rows = np.flatnonzero(free & (words >> np.uint64(63) == 0))
    if len(rows) and fixed:
        address = (words[rows] & np.uint64((1 << 48) - 1)).astype(np.int64)
        begin, end = (
            np.array(one, dtype=np.int64) for one in zip(*((one.address, one.end) for one in fixed), strict=True)
        )
        at = np.maximum(np.searchsorted(begin, address, "right") - 1, 0)
        inside = (begin[at] <= address) & (address < end[at])
        owner[rows[inside]] = place[at[inside]]
    return owner


def _name_apart(objects: Sequence[DataObject]) -> list[DataObject]:
    """Return objects with a name for each: the plain name goes to the largest."""
    unique: Counter[str] = Counter()
    named = list(objects)
    for k in sorted(range(len(objects)), key=lambda k: (-objects[k].size, objects[k].address)):
        one = objects[k]
        name = f"{one.name}_" if keyword.iskeyword(one.name) else one.name  # models have the words of Python
        unique[name] += 1
        named[k] = replace(one, name=f"{name}_{unique[name]}" if unique[name] > 1 else name)
    return named


def _mark_overlaps(objects: Sequence[DataObject]) -> list[DataObject]:
    """Return rising objects, those marked that share memory with one before."""
    found, end = [], 0
    for one in objects:
        found.append(replace(one, overlaps=True) if one.address < end else one)
        end = max(end, one.end)
    return found


def _follow_allocations(
    process: TracedProcess, cache: Path
) -> tuple[list[_Block], list[npt.NDArray[np.int32]], IntArray]:
    """Return the allocations of a process, those of its accesses by thread and word (-1: none), and other memory.

    Other memory is rows of (first address, last address, accesses) for each page of it.
    """
    library = _load_library(cache)
    blocks: list[_Block] = []
    latest: dict[int, _Block] = {}
    owners = [np.full(len(thread.words), -1, dtype=np.int32) for thread in process.threads]
    memory = ctypes.c_void_p(library.make_memory())
    for number, row, begin, end in _order_pieces(process):
        if row is not None and row[_KIND] == ALLOCATE:
            library.allocate(memory, row[_X], row[_Y], len(blocks))
            latest[number] = _Block(row[_X], row[_Y], [row[_Z]])
            blocks.append(latest[number])
        elif row is not None and row[_KIND] == CALLERS and number in latest:
            latest[number].callers.extend(row[_X : _Z + 1])
        if end > begin:
            words = np.ascontiguousarray(process.threads[number].words[begin:end])
            library.touch(memory, words.ctypes.data, len(words), owners[number][begin:end].ctypes.data)
    loose = np.zeros((library.list_loose(memory, None), 3), dtype=np.int64)
    library.list_loose(memory, loose.ctypes.data)
    library.free_memory(memory)
    times = sum(np.bincount(one[one >= 0], minlength=len(blocks)) for one in owners)
    for block, count in zip(blocks, np.atleast_1d(times).tolist(), strict=False):
        block.touched = count
    return blocks, owners, loose


def _load_library(cache: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(compile_part("touch.c", cache)))
    library.make_memory.restype = ctypes.c_void_p
    library.allocate.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int32)
    library.touch.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    library.free_memory.argtypes = (ctypes.c_void_p,)
    library.list_loose.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    library.list_loose.restype = ctypes.c_int64
    return library


def _order_pieces(process: TracedProcess) -> Iterator[tuple[int, list[int] | None, int, int]]:
    """Yield what was told, in its order over all threads, and where the words behind it begin and end.

    Thread, row (None for what is before the first), begin, end.
    """
    pieces: list[tuple[int, int, list[int] | None, int, int]] = []
    for number, thread in enumerate(process.threads):
        rows = thread.told.tolist()
        ends = [row[_PLACE] for row in rows] + [len(thread.words)]
        pieces.append((-1, number, None, 0, ends[0]))
        pieces += [(row[_NUMBER], number, row, row[_PLACE], end) for row, end in zip(rows, ends[1:], strict=True)]
    for _, number, row, begin, end in sorted(pieces, key=lambda one: one[:2]):
        yield number, row, begin, end


def _name_blocks(image: ElfImage, process: TracedProcess, blocks: Sequence[_Block], source: Path | None) -> None:
    wanted = sorted({at - process.base - 1 for one in blocks for at in one.callers if at > process.base})
    places = dict(zip(wanted, resolve_addresses(image.path, wanted).places, strict=True))
    known: Counter[tuple[str | None, int | None, str | None]] = Counter()
    names: dict[tuple[tuple[int, ...], int], str] = {}
    for one in blocks:
        frames = [frame for at in one.callers if (place := places.get(at - process.base - 1)) for frame in place.frames]
        chosen = choose_frames(frames, source)
        line = (chosen[0].file, chosen[0].line, chosen[0].function) if chosen else (None, None, None)
        turn = min(known[line], _MANY)
        key = tuple(one.callers), turn
        if key not in names:
            names[key] = name_allocation(chosen, known[line], source)
        one.name = names[key]
        known[line] += 1


def _join_blocks(blocks: Sequence[_Block]) -> list[_Block]:
    """Return allocations with those joined that are many of one name or share memory; each gets the number of its."""
    alike: dict[str, list[_Block]] = defaultdict(list)
    for one in blocks:
        alike[one.name].append(one)
    found: list[_Block] = []
    for same in alike.values():
        _join_near(same, _NEAR_B if len(same) > _MANY else -1, found)
    return found


def _join_near(blocks: Sequence[_Block], apart_B: int, found: list[_Block]) -> None:
    """Append blocks to those found, joined that lie no further apart; -1 for those that share memory."""
    first = len(found)
    for one in sorted(blocks, key=lambda one: one.address):
        if len(found) > first and one.address - found[-1].end <= apart_B:
            last = found[-1]
            last.size = max(last.end, one.end) - last.address
            last.touched += one.touched
        else:
            found.append(replace(one))
        one.number = len(found) - 1


def _find_unnamed(loose: IntArray, known: Sequence[DataObject], process: TracedProcess, total: int) -> list[DataObject]:
    """Return stacks, and other memory that no symbol and no allocation names, where it is much accessed."""
    stacks = np.unique(np.concatenate([thread.told[:, _STACK] for thread in process.threads]))
    spans: list[_Block] = []
    for low, high, times in loose[np.argsort(loose[:, 0])].tolist():
        if any(one.address <= high and low < one.end for one in known):
            continue
        spans.append(_Block(low & -64, (high | 63) + 1 - (low & -64), [], times))
    joined: list[_Block] = []
    _join_near(spans, _PAGE_B, joined)
    found = []
    for one in joined:
        if one.touched >= _FEW * total:
            near = (stacks > one.address - _NEAR_B) & (stacks < one.end + _NEAR_B)
            found.append(DataObject("stack" if near.any() else "unnamed", one.address, one.size, allocated=True))
    return found
