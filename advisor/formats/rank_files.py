"""Are the files of the ranks of one run? Profilers that write a file per rank leave it to people to keep them together.

What a file says of its own run is compared: one executable, one number of ranks, a start within a window, and no file
twice. Of the times in them only the lengths are compared: ranks of one run are there about equally long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model import policy
from advisor.model.records import Note
from advisor.model.units import format_seconds

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths

#: Processes of one run start within so many seconds of each other.
WINDOW_S: Final = 120.0
PENALTY: Final = 0.5
_ANEW: Final = "copy the files of one run into an empty folder, or run anew"


@dataclass(frozen=True, slots=True)
class Origin:
    """What the file ``name`` says of the process it is of; None and empty where it does not tell.

    ``identity`` is what no two processes share: a number of a process with its start, or the digest of the content.
    """

    name: str
    program: str = ""
    started_s: float | None = None
    ranks: int | None = None
    identity: bytes = b""


def compare_origins(origins: Sequence[Origin]) -> Iterator[Note]:
    """Yield a note where files are of different runs, and one where a file stands there twice."""
    for text in _differences(origins):
        yield Note("files of different runs", text, PENALTY, _ANEW)
        break
    seen: dict[bytes, str] = {}
    for origin in origins:
        other = seen.setdefault(origin.identity, origin.name) if origin.identity else origin.name
        if other != origin.name:
            yield Note("the same file twice", f"{origin.name} and {other} are of the same process", PENALTY, _ANEW)
            return


def iterate_copies(files: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each of ``files`` that holds the same as one before it, and that one; those of no bytes never do."""
    by_size: dict[int, list[Path]] = {}
    for file in files:
        by_size.setdefault(file.stat().st_size, []).append(file)
    for size, alike in by_size.items():
        seen: dict[bytes, Path] = {}
        for file in alike if size and len(alike) > 1 else ():
            with file.open("rb") as stream:
                other = seen.setdefault(hashlib.file_digest(stream, "sha256").digest(), file)
            if other is not file:
                yield file, other


def note_copies(files: Sequence[Path]) -> Iterator[Note]:
    """Yield a note where two of ``files``, each of a process of its own, hold the same."""
    for file, other in iterate_copies(files):
        yield Note("the same file twice", f"{file.name} and {other.name} hold the same", PENALTY, _ANEW)
        return


def check_copies(paths: CallPaths, files: Sequence[Path]) -> CallPaths:
    """Return the call paths in ``files``, a process each, with a note where two hold the same."""
    return replace(paths, notes=(*paths.notes, *note_copies(files)))


def note_lengths(lengths_s: Mapping[str, float]) -> Iterator[Note]:
    """Yield a note where the events of a rank take a small part of the seconds that those of another take.

    A unit that is wrong makes a factor of a thousand; ranks that do less make one that is far smaller.
    """
    if len(lengths_s) < 2:
        return
    shortest, longest = (choose(lengths_s, key=lambda name: lengths_s[name]) for choose in (min, max))
    if lengths_s[shortest] * policy.RANKS_UNLIKE_SAMPLED < lengths_s[longest]:
        least, most = format_seconds(lengths_s[shortest]), format_seconds(lengths_s[longest])
        text = f"events of {longest} take {most}, those of {shortest} {least}"
        text += ": of different runs, in different units, or cut off"
        yield Note("ranks unlike", text, PENALTY, _ANEW)


def _differences(origins: Sequence[Origin]) -> Iterator[str]:
    programs = {origin.program: origin.name for origin in origins if origin.program}
    if len(programs) > 1:
        (one, first), (other, second) = list(programs.items())[:2]
        yield f"{first} is of {one}, {second} of {other}"
    ranks = {origin.ranks: origin.name for origin in origins if origin.ranks is not None}
    if len(ranks) > 1:
        (few, first), (many, second) = list(ranks.items())[:2]
        yield f"{first} is of a run on {few} ranks, {second} of one on {many}"
    starts = sorted((origin.started_s, origin.name) for origin in origins if origin.started_s is not None)
    if starts and starts[-1][0] - starts[0][0] > WINDOW_S:
        apart = starts[-1][0] - starts[0][0]
        yield f"{starts[-1][1]} started {apart:,.0f} s after {starts[0][1]}"
