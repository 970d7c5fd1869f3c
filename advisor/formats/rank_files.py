"""Are the files of the ranks of one run? Profilers that write a file per rank leave it to people to keep them together.

What a file says of its own run is compared: one executable, one number of ranks, a start within a window, and no file
twice. The times in them are no business of this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.model.records import Note

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
