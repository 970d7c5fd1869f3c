"""Damaged files, made from sound ones: what every reader is asked to survive.

A reader either raises ``InputError`` or returns a sound profile. A file that ends too early never gives a different
profile without a note that says so.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis import soundness
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Read = Callable[[Path], Profile]

#: Every prefix and 10,000 flips of each format take more than ten minutes: ``make damage`` asks for them.
FULL = os.environ.get("GAPWATCH_DAMAGE") == "full"
#: How many prefixes, and how many flips, are tried: a sample of all, a larger one in continuous integration.
TRIED = 10_000 if FULL else 1500 if os.environ.get("CI") else 300


def every_prefix(path: Path, tmp_path: Path, read: Read, target: Path | None = None) -> None:
    """Read the file at ``path`` cut off after each byte; ``read`` is given ``target``, or the damaged file itself.

    ``target`` is for profiles of several files: a directory below ``tmp_path`` that holds ``path``'s name.
    """
    content = path.read_bytes()
    damaged = (target or tmp_path) / path.name
    damaged.write_bytes(content)
    whole = read(target or damaged)
    lengths: list[int] = list(range(len(content)))
    if not FULL and len(lengths) > TRIED:
        lengths = sorted({*random.Random(1).sample(lengths, TRIED), 0, 1, len(content) - 1})
    for length in lengths:
        damaged.write_bytes(content[:length])
        found = _read(read, target or damaged)
        assert found is None or same(found, whole) or _says_more(found, whole), (
            f"cut after byte {length}: no word of it"
        )


def bit_flips(path: Path, tmp_path: Path, read: Read, target: Path | None = None) -> int:
    """Read the file with single bits turned over; return how often the profile differed without a word of it."""
    content = path.read_bytes()
    damaged = (target or tmp_path) / path.name
    damaged.write_bytes(content)
    whole = read(target or damaged)
    silent = 0
    for bit in _bits(len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        damaged.write_bytes(changed)
        found = _read(read, target or damaged)
        silent += found is not None and not same(found, whole) and not _says_more(found, whole)
    return silent


def damage_evenly(whole: bytes, place: Path, read: Read, parts: int, mask: int) -> None:
    """Read a file at ``place`` with a byte changed by ``mask``, or cut, at the edges of equal parts in turn."""
    for at in range(1, parts):
        edge = len(whole) * at // parts
        changed = whole[:edge] + bytes([whole[edge] ^ mask]) + whole[edge + 1 :]
        place.write_bytes(changed if at % 2 else whole[:edge])
        with suppress(InputError):
            read(place)


def _bits(size: int) -> Iterator[int]:
    every = range(8 * size)
    yield from random.Random(2).sample(every, min(TRIED, len(every)))


def _read(read: Read, path: Path) -> Profile | None:
    """Return the profile, which is sound, or None where it was refused."""
    try:
        found = read(path)
    except InputError:
        return None
    contract.check_value(found, Profile)
    soundness.check_profile(found)
    return found


def _says_more(found: Profile, whole: Profile) -> bool:
    """Return whether a profile has a doubt that the sound one has not, or misses ranks that it knows of."""
    penalties = {note.name for note in found.notes if note.penalty > 0} - {note.name for note in whole.notes}
    return bool(penalties) or (found.ranks_expected or 0) > found.ranks


def same(one: Profile, other: Profile) -> bool:
    """Return whether two profiles tell the same about the run, whatever they are called."""
    if one.regions != other.regions or one.processors != other.processors or len(one.phases) != len(other.phases):
        return False
    if not np.array_equal(one.actual_s, other.actual_s, equal_nan=True) or one.program != other.program:
        return False
    tables = [(one.counts, other.counts), (one.outside, other.outside)]
    tables += [(a.arrays, b.arrays) for a, b in zip(one.phases, other.phases, strict=True)]
    return all(a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a) for a, b in tables)
